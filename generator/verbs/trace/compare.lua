-- gentables trace compare: reports side by side, of traces, over the thread and channel counts of a sweep, or
-- over sweeps: workbooks, CSVs and a page. Reads existing reports; makes reports only for traces.
local example_of = require("trace.runs.example").of
local report_page = require "trace.compare.report_page"
local differences = require "trace.compare.differences"
local report_pairs = require "trace.compare.report_pairs"
local fail = require "base.fail"
local file = require "core.file"
local job = require "trace.runs.job"
local sequences = require "base.sequences"
local sheets = require "pages.sheets"
local side_by_side = require "pages.side_by_side"
local sources = require "trace.compare.sources"
local tree_diff = require "trace.compare.tree_diff"
local workers = require "system.workers"

local PAGE = "sweep_comparison_report.html" -- of two sweeps without --out

local function save(list, base, args)
  sheets.save(list, sheets.paths(base, args))
  job.print_written(base, args, #list)
end

local function write_page(page, path)
  fail.unless_done(page:write(path))
  print("written   " .. path)
end

-- ---- of reports and traces ---------------------------------------------------------------------

local function compare_reports(found, names, args, out)
  local reports = {}
  for i, source in ipairs(found) do
    reports[i] = sources.read(source.path, names[i])
    if reports[i].warning then fail.note(reports[i].warning) end
  end
  local changes = tree_diff.sheets(reports)
  if not out.page_only then
    local list = differences.sheets(reports)
    sequences.append(list, sequences.filter(changes, function(sheet) return #sheet.rows > 0 end))
    save(list, out.folder .. "/compare", args)
  end
  if args.html then write_page(report_page.of_reports(reports, changes), out.page) end
end

-- ---- of sweeps ---------------------------------------------------------------------------------

local function compare_all(list, args, out)
  local results = workers.map(list, function(comparison)
    save(report_pairs.sheets(comparison), out.folder .. "/" .. comparison.name, args)
    io.stdout:flush()
    return ""
  end, { jobs = args.jobs, progress = true, title = "comparisons" })
  local failed = 0
  for i, result in ipairs(results) do
    if not result.ok then
      failed = failed + 1
      fail.note("%s: %s", list[i].name, result.value)
    end
  end
  if failed > 0 then fail.work("%d of %d comparisons are not written", failed, #list) end
end

local function compare_within(sweep, args, out)
  local list = {}
  for _, field in ipairs(args.over or { "threads", "channels" }) do
    if field ~= "threads" and field ~= "channels" then
      fail.input("--over: %s is neither threads nor channels", field)
    end
    sequences.append(list, report_pairs.over(sweep, field))
  end
  if #list == 0 then
    fail.input("%s: has reports of one configuration only; give a sweep over threads or channels, or a"
      .. " second sweep", sweep.analysis)
  end
  compare_all(list, args, out)
end

local function compare_sweeps(found, names, args, out)
  local list = report_pairs.of_sweeps(found, names)
  if #list == 0 then
    fail.input("%s and %s: no configuration and rank has reports in both", found[1].analysis,
      found[2].analysis)
  end
  if not out.page_only then compare_all(list, args, out) end
  if args.html then write_page(report_page.of_sweeps(found, names), out.page) end
end

-- ---- the command -------------------------------------------------------------------------------

-- The paths of the output: a folder, or only the page.
local function out_of(args)
  local path = #args.out > 1 and args.out:gsub("/+$", "") or args.out
  if path:find("%.html?$") then
    args.html = true
    return { page_only = true, page = path }
  end
  if path:find("%.xlsx$") then fail.input("--out: %s: give a folder, or NAME.html", path) end
  fail.unless(file.make_folder(path))
  return { folder = path, page = path .. "/comparison.html" }
end

-- Selects the outputs: those that options name, by default all that can be made.
local function choose_forms(args)
  if sheets.take_formats(args) or args.html then return end
  args.html = true
  sheets.choose(args)
end

-- The kind of all sources: "sweep", or "report" for reports and traces.
local function kind_of(found)
  local kind
  for _, source in ipairs(found) do
    local mine = source.kind == "sweep" and "sweep" or "report"
    if kind and kind ~= mine then
      fail.input("%s and %s: a sweep and a report cannot be compared; give sweeps, or reports and"
        .. " traces", found[1].path, source.path)
    end
    kind = mine
  end
  return kind
end

-- Puts --sweep1 and --sweep2 in the place of A and B.
local function take_pair(args)
  local first, second = args.sweep1, args.sweep2
  if (first or second) and args[1] then fail.input("A and --sweep1 are the same; give one of them") end
  if (first == nil) ~= (second == nil) then fail.input("--sweep1 and --sweep2 belong together; give both") end
  if args.label and (args.label1 or args.label2) then
    fail.input("--label and --label1 are the same; give one of them")
  end
  args[1], args[2] = first or args[1], second or args[2]
  if first then args.out = args.out or PAGE end
  if not args[1] or not args.out then
    fail.input("trace compare needs A [B...] and --out DIR|FILE.html; see gentables trace compare --help")
  end
end

-- The labels of --label1 and --label2 for two inputs; nil without both.
local function labels_of_pair(found, args)
  if not (args.label1 or args.label2) then return nil end
  if #found ~= 2 then fail.input("--label1 and --label2 are of two inputs; here are %d", #found) end
  return { args.label1 or found[1].label, args.label2 or found[2].label }
end

return {
  summary = "Compares reports: of traces, over the threads and channels of a sweep, or over sweeps.",
  positional = { name = "A [B...]", min = 0, max = math.huge,
    help = "reports (folders of CSVs) or traces; or sweeps that trace pipeline has analysed; the first is the"
      .. " baseline" },
  options = {
    { name = "out", aliases = { "output" }, value = "DIR|FILE.html",
      help = "folder of the output; FILE.html: only the page (default, with --sweep1 and --sweep2: "
        .. "sweep_comparison_report.html)" },
    { name = "sweep1", value = "DIR", help = "the same as A" },
    { name = "sweep2", value = "DIR", help = "the same as B" },
    { name = "label1", value = "L", help = "the name of A (default: that of its folder)" },
    { name = "label2", value = "L", help = "the name of B, likewise" },
    { name = "label", value = "L", many = true,
      help = "the name of an input; once for each, in their order" },
    { name = "over", value = "threads|channels", many = true,
      help = "of one sweep: compare only over these" },
    { name = "csv", help = "write CSVs; without --csv, --xlsx, --html and --formats, these three" },
    { name = "xlsx", help = "write workbooks" },
    sheets.formats_option(),
    { name = "html", help = "write the page comparison.html" },
    job.steps[1], job.steps[2],
    { name = "jobs", value = "N", type = "whole",
      help = "comparisons at a time (default: one for each core)" },
  },
  example = example_of("trace compare \\\n    {TRACES}/rank0/trace_step19.json \\\n"
    .. "    {TRACES}/rank1/trace_step19.json \\\n    --label rank0 --label rank1 --out comparison"),
  run = function(args)
    take_pair(args)
    job.select(args)
    local found = sequences.map(args, sources.find)
    local kind = kind_of(found)
    if #found == 1 and kind == "report" then
      fail.input("%s: a second report to compare it with is missing", args[1])
    end
    if #found == 1 and args.label then fail.input("--label: one sweep is compared by its own counts") end
    local names = side_by_side.labels(found, args.label or labels_of_pair(found, args))
    choose_forms(args)
    local out = out_of(args)
    if #found == 1 then return compare_within(found[1], args, out) end
    return (kind == "sweep" and compare_sweeps or compare_reports)(found, names, args, out)
  end,
}
