-- gentables report: report.html, one file with the best strategy of each cell, its confidence and all
-- numbers. report/report_html.lua makes the page.
local data_folder = require "surroundings.data_folder"
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local gaps = require "formats.gaps"
local model = require "formats.model"
local sequences = require "base.sequences"
local tables = require "core.table"

-- The table at each path of --against, by the arch that it is for.
local function read_incumbents(paths, archs)
  local by_arch = {}
  for _, path in ipairs(paths) do
    local incumbent, arch = tables.read(path)
    if not incumbent then fail.input("%s", arch) end
    if not lists.contains(archs, arch) then
      fail.input("--against %s: a table for %s; the rows are of %s", path, arch, table.concat(archs, ", "))
    end
    by_arch[arch] = incumbent
  end
  return by_arch
end

local function check(args)
  local dirs, archs = #args.data_dir, #args.arch
  if dirs ~= 1 and dirs ~= archs then
    fail.input("report has %d --data-dir and %d --arch; one folder for all, or one for each, is required",
      dirs, archs)
  end
end

-- Raises if workbooks cannot be written, before any file is.
local function check_xlsx()
  local can, why = require("pages.sheets").has_xlsx()
  if not can then fail.work("--xlsx: %s", why) end
end

-- Writes report.ARCH.xlsx, and prints what did not fit into it.
local function write_workbook(source, out)
  local path = ("%s/report.%s.xlsx"):format(out, source.arch)
  local notes = fail.unless_done(require("report.workbook").write(source, path))
  io.stdout:write("written   ", path, "\n")
  for _, note in ipairs(notes) do
    fail.note("%s: %s: %s", path, note[1], note[2])
  end
end

return {
  summary = "Writes report.html: the best strategy of each cell, its confidence, and all numbers.",
  positional = sequences.merged(data_folder.positional, { name = "DIR...", max = math.huge }),
  options = {
    { name = "data-dir", value = "DIR", many = true, required = true,
      help = "folder of benchmark.tp{N}.{arch}.csv; once for all --arch, or once for each" },
    { name = "arch", value = "ARCH", many = true,
      help = "host, host-NAME, sm90 ...; repeat it for several in one page (default: that of the rows of each"
        .. " folder)" },
    { name = "out", value = "DIR", help = "folder of the page (default: the first folder of rows)" },
    { name = "against", value = "TABLE", many = true,
      help = "the incumbent, a table.csv; the page shows its choices beside the new ones" },
    { name = "xlsx", help = "write report.ARCH.xlsx, too: summary, table and rows" },
  },
  example = "gentables report --data-dir tables/host --arch host --out build/report",
  run = function(args)
    args.arch = args.arch or sequences.map(args.data_dir, function(folder)
      return data_folder.arch(folder)
    end)
    check(args)
    local incumbents = read_incumbents(args.against or {}, args.arch)
    local sources = {}
    for i, arch in ipairs(args.arch) do
      local source = model.load(args.data_dir[i] or args.data_dir[1], arch)
      source.incumbent = incumbents[arch]
      sources[i] = source
    end
    local out = (args.out or args.data_dir[1]):gsub("(.)/+$", "%1")
    if args.xlsx then check_xlsx() end
    local page = require("report.report_html").page(sources)
    fail.unless_done(file.make_folder(out))
    fail.unless_done(page:write(out .. "/report.html"))
    io.stdout:write("written   ", out, "/report.html\n")
    gaps.print(sources)
    for _, source in ipairs(args.xlsx and sources or {}) do write_workbook(source, out) end
  end,
}
