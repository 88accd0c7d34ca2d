-- A run against an earlier one, report by report: the option --against PATH of trace report and trace
-- pipeline. PATH is the folder that an earlier run of that command wrote, with reports of the same names; of
-- a single trace it is also any other report (a folder of CSVs) or trace. Without that option, the modules
-- that compare are not loaded.
local fail = require "base.fail"
local file = require "core.file"
local sequences = require "base.sequences"
local sheets = require "pages.sheets"

local against = {}

against.option = { name = "against", value = "PATH",
  help = "also compare with an earlier run: its output folder, or, for one trace, a report or trace" }

-- The label of these reports beside an earlier one.
against.LABEL = "now"

-- The label of the earlier run.
function against.base(path)
  local name = path:match("([^/]+)/*$") or path
  name = name:gsub("_csvs$", ""):gsub("%.gz$", ""):gsub("%.zst$", ""):gsub("%.json$", "")
  return name == against.LABEL and path or name
end

-- The folders in which an earlier run's reports are.
local function roots_of(path) return { path, path .. "/tracelens_analysis" } end

local function folder_of(path, name)
  for _, root in ipairs(roots_of(path)) do
    local folder = ("%s/%s_csvs"):format(root, name)
    if file.status(folder) == "folder" then return folder end
  end
end

-- Raises if --against is given and its path does not exist.
function against.check(path)
  if path then fail.unless(file.status(path)) end
end

-- Raises if `path` is the output folder `out` of the command, or the report that it writes there: the earlier
-- report would be overwritten before it is read. `names`: as of against.find.
function against.refuse_own(path, out, names)
  local outputs = { file.real_path(out) or nil }
  for _, name in ipairs(names) do outputs[#outputs + 1] = file.real_path(("%s/%s_csvs"):format(out, name)) end
  local is_output = sequences.set(outputs)
  local earlier = roots_of(path)
  for _, name in ipairs(names) do earlier[#earlier + 1] = folder_of(path, name) end
  for _, one in ipairs(earlier) do
    if is_output[file.real_path(one) or ""] then
      fail.input("--against %s: is the output of this command itself; give an earlier run's folder, or"
        .. " another --out", path)
    end
  end
end

-- The earlier reports of the reports with these names (paths below the output folder, without extension):
-- { [name] = path }. Raises if there is none.
function against.find(path, names)
  against.check(path)
  local found = {}
  for _, name in ipairs(names) do found[name] = folder_of(path, name) end
  if next(found) then return found end
  if #names == 1 then
    local source = require("trace.compare.sources").find(path)
    if source.kind ~= "sweep" then return { [names[1]] = source.path } end
  end
  fail.input("--against %s: has no report of these traces, such as %s_csvs/; give the output folder of an"
    .. " earlier run", path, names[1])
end

-- Writes the comparison of two reports, the folder `csvs` with the earlier one of --against `path`, at `base`
-- in the forms of sheets.paths, always as CSVs. An earlier trace is reported with `options`, those of the
-- report in `csvs`. Returns the folder of the CSVs and their number.
function against.write(csvs, earlier, path, base, forms, options)
  local sources = require "trace.compare.sources"
  local list = require("trace.compare.differences").sheets {
    sources.read(earlier, against.base(path), options), sources.read(csvs, against.LABEL) }
  if #list == 0 then fail.input("--against %s: no row is in both reports", earlier) end
  local paths = sheets.paths(base, { csv = true, xlsx = forms.xlsx, sqlite = forms.sqlite })
  sheets.save(list, paths)
  return paths.folder, #list
end

-- The field `against` of a trace on the page: the comparison in the folder `csvs`.
function against.of_page(path, csvs)
  return { csvs = csvs, base = against.base(path), label = against.LABEL }
end

-- The CSVs of an earlier report, for its stamp; of a trace that itself.
function against.inputs(earlier)
  local names = file.status(earlier) == "folder" and file.list(earlier)
  return names and sequences.map(names, function(name)
    return name:find("%.csv$") and earlier .. "/" .. name or nil
  end) or { earlier }
end

return against
