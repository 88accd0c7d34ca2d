-- The page of trace report: its traces as runs for trace/overview/overview_page.lua.
local gpus = require "lists.gpus"
local job = require "trace.runs.job"
local ordering = require "base.ordering"
local run_folder = require "trace.runs.run_folder"
local sequences = require "base.sequences"

local report_overview = {}

-- The name of the page, and the end of the line that prints it.
report_overview.NAME, report_overview.WORDS = "overview.html", "the page to open first"

-- A note on the roofline of these runs: its GPU, or why there is none.
local function roofline_note(runs)
  local known = sequences.distinct(sequences.map(runs, function(run)
    return (not run.batch or gpus.of_ranks(run.infos)) and gpus.in_words(run.infos) or nil
  end))
  local lines = sequences.distinct(sequences.join(runs, function(run)
    return gpus.missing(run.infos, run.batch ~= nil)
  end))
  local parts = sequences.map(known, function(words) return ("Roofline: peaks of %s."):format(words) end)
  if #known > 0 then
    parts[#parts + 1] = "Roofline time is the least time by these; its share is of the mean time, and above"
      .. " 100 % if data is in a cache or a peak does not fit the kernel."
  elseif #lines == 0 then
    parts[1] = "The traces name no GPU, or not all do, so sheets have no roofline: give --gpu NAME."
  end
  for _, line in ipairs(lines) do parts[#parts + 1] = line:gsub("^%l", string.upper) .. "." end
  return table.concat(parts, " ")
end

-- Writes a page: its path, and the data as overview_page.write takes it; adds the selected parts of the
-- traces and the note on the roofline. Raises if it cannot be written.
function report_overview.write_page(path, given)
  given.selected, given.roofline = job.selected(), roofline_note(given.runs)
  require("trace.overview.overview_page").write(path, given) -- only now: reports as CSV have no page
end

-- The path of the page in an output folder.
function report_overview.path(out) return ("%s/%s"):format(out, report_overview.NAME) end

local function base_name(path) return path:match("([^/]+)/*$") or path end

-- The name of a configuration: "256 threads, 28 channels", or its folder's.
function report_overview.name_of(configuration)
  local parts = {}
  for _, field in ipairs { "threads", "channels" } do
    if configuration[field] then parts[#parts + 1] = ("%d %s"):format(configuration[field], field) end
  end
  return #parts > 0 and table.concat(parts, ", ") or base_name(configuration.folder)
end

-- Sets the label of each of { entry, info, name }: its rank, or its name if it has none or shares it.
local function label_all(list)
  local count = {}
  for _, one in ipairs(list) do
    one.rank = one.entry.rank or one.info and one.info.rank
    if one.rank then count[one.rank] = (count[one.rank] or 0) + 1 end
  end
  for _, one in ipairs(list) do
    one.label = count[one.rank] == 1 and ("rank %d"):format(one.rank) or base_name(one.name)
  end
end

-- The run of a configuration, for overview_page, with the infos of its traces. list = { { entry, info (nil:
-- not read), name, csvs (nil: no report), against (or nil) }... } in the order of the configuration's files;
-- notes are added to it.
function report_overview.run(configuration, list)
  label_all(list)
  local infos = {}
  for i, one in ipairs(list) do infos[i] = one.info end
  local notes = run_folder.check(configuration, infos)
  if configuration.problem then table.insert(notes, 1, configuration.problem) end
  return { configuration = configuration, notes = notes,
    infos = sequences.map(list, function(one) return one.info end),
    traces = sequences.map(list, function(one)
      return sequences.pick(one, { "label", "csvs", "against" })
    end) }
end

-- Gives the runs their names, if they are several.
function report_overview.name_all(runs)
  if #runs < 2 then return runs end
  for _, run in ipairs(runs) do run.name = report_overview.name_of(run.configuration) end
  return runs
end

-- Writes the page of reports: list as of `run`, of all configurations, each with `configuration` and `files`
-- beside its CSVs; `out`: the folder of the reports. Returns the page's path.
function report_overview.write(list, out, failures)
  local path, folders, files = report_overview.path(out), {}, {}
  local groups = ordering.groups(list, function(one) return one.configuration end)
  local runs = sequences.map(groups, function(group) return report_overview.run(group.key, group) end)
  for _, one in ipairs(list) do
    folders[#folders + 1] = one.csvs
    folders[#folders + 1] = one.against and one.against.csvs
    files = sequences.append(files, one.files or {})
  end
  report_overview.write_page(path, {
    title = "Trace report: " .. base_name(#list == 1 and list[1].name or out),
    runs = report_overview.name_all(runs), failures = failures, folders = folders, files = files })
  return path
end

-- Writes the page of a report over ranks: `csvs`: its folder of sheets; given = { infos (of its ranks), files
-- (paths of its other files), notes }.
function report_overview.write_batch(path, configuration, csvs, given)
  local traces = sequences.map(configuration.files, function(entry)
    return { label = ("rank %d"):format(entry.rank), rank = entry.rank }
  end)
  local run = { traces = traces, batch = csvs, collectives = #traces > 1 and csvs or nil,
    infos = given.infos, notes = given.notes }
  report_overview.write_page(path, { title = "Trace report: " .. base_name(configuration.folder),
    runs = { run }, folders = { csvs }, files = given.files })
end

return report_overview
