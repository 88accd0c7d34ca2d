-- gentables trace report: the work of one rank, from its trace: the GPU's time line, ops, kernels and
-- collectives, a workbook and a folder of CSVs for each trace, with the sheets of
-- trace/reports/rank_report.lua. With -b one report for each folder of traces, over its ranks:
-- trace/reports/workbooks.lua. A page over all traces of the command is what a person opens first.
local against = require "trace.compare.against"
local digest_folder = require "trace.digests.digest_folder"
local example_of = require("trace.runs.example").of
local fail = require "base.fail"
local gpus = require "lists.gpus"
local job = require "trace.runs.job"
local nodes = require "trace.collectives.nodes"
local ordering = require "base.ordering"
local pack = require "trace.runs.pack"
local rank_report = require "trace.reports.rank_report"
local progress = require "system.progress"
local rank = require "trace.ops.rank"
local run_folder = require "trace.runs.run_folder"
local sheets = require "pages.sheets"
local workers = require "system.workers"
local report_overview = require "trace.reports.report_overview"
local sequences = require "base.sequences"

local EXTENSIONS = { "%.json$", "%.json%.gz$", "%.json%.zst$" }

-- The options of trace/reports/rank_report.lua on the command line.
local function options_of(args)
  if args.kernel_summary and args.no_kernel_summary then
    fail.input("--kernel-summary and --no-kernel-summary are both given; give one of them")
  end
  return { include_unlinked = args.include_unlinked, micro_idle = args.micro_idle,
    short_limit = args.short_limit or rank_report.defaults.short_limit,
    bins = args.bins or rank_report.defaults.bins, top_short = args.top_short,
    kernel_summary = not args.no_kernel_summary, collectives = not args.no_collectives,
    by_kernel_count = args.by_kernel_count, stacks = args.stacks }
end

-- ---- Paths of reports ------------------------------------------------------------------------------------

local function base_name(path)
  local name = path:match("([^/]+)$")
  for _, extension in ipairs(EXTENSIONS) do name = name:gsub(extension, "") end
  return name
end

-- The report's path without its extension: a sweep's report as in its tree, else the trace's own name.
local function base_of(entry)
  if not entry.threads and not entry.channels then return base_name(entry.path) end
  local name = "perf"
  if entry.channels then name = ("%s_%dch"):format(name, entry.channels) end
  if entry.rank then name = ("%s_rank%d"):format(name, entry.rank) end
  if not entry.threads then return name end
  return ("%dthread/individual_reports/%s"):format(entry.threads, name)
end

-- The name with one more folder of the path in front.
local function longer(path, name)
  local folders, depth = {}, select(2, name:gsub("__", "")) + 1
  for part in path:gmatch("[^/]+") do folders[#folders + 1] = part end
  local folder = folders[#folders - depth]
  return folder and folder .. "__" .. name
end

-- Gives each entry its own base: traces of the same name are distinguished by their folders.
local function name_all(entries)
  local clashes = true
  for _, entry in ipairs(entries) do entry.base = base_of(entry) end
  while clashes do
    clashes = false
    for _, same in ipairs(ordering.groups(entries, function(entry) return entry.base end)) do
      for _, entry in ipairs(#same > 1 and same or {}) do
        entry.base = longer(entry.path, same.key)
        if not entry.base then fail.input("%s is given twice; give it once", entry.path) end
        clashes = true
      end
    end
  end
end

-- ---- The work --------------------------------------------------------------------------------------------

-- Writes the report of one trace; returns, packed, the number of its sheets, its notes as text or nil, its
-- rank and world size.
local function report(entry, args, options, threads)
  local path, base = entry.path, args.out .. "/" .. entry.base
  local one = fail.unless(rank.open(path, { workers = threads, frames = options.stacks }))
  local list, notes = rank_report.sheets(one, sequences.merged(options, { rank = entry.rank }))
  fail.unless(require("core.file").make_folder(base:match("^(.*)/[^/]*$")))
  rank_report.write(list, sheets.paths(base, args))
  local info = sequences.pick(one.trace:info(), { "rank", "world_size", "device_name", "multiprocessors" })
  return pack.pack { count = #list, warning = rank_report.warning(path, notes), info = info }
end

-- The traces to read, and whether a configuration was left out, with a message. Several traces of one rank
-- are a problem only if the tree has one name for them.
local function entries_of(args)
  local entries, is_whole = {}, true
  local configurations = job.new(args).configurations
  run_folder.refuse_digests(configurations, "reports of single ranks need the traces; -b -e digest makes the "
    .. "report over ranks")
  for _, configuration in ipairs(configurations) do
    local files = configuration.files
    if configuration.problem and (#files == 0 or configuration.threads or configuration.channels) then
      fail.note(configuration.problem)
      is_whole = false
    else
      for _, entry in ipairs(files) do entry.configuration = configuration end
      table.move(files, 1, #files, #entries + 1, entries)
    end
  end
  name_all(entries)
  return entries, is_whole
end

-- Prints the written paths or the reason of the failure. Returns the result, or nil.
local function print_result(entry, result, args)
  if not result.ok then return fail.note(result.value) end
  local written = pack.unpack(result.value)
  if written.warning then fail.note(written.warning) end
  job.print_written(("%s/%s"):format(args.out, entry.base), args, written.count)
  return written
end

-- Reads a single trace in this process, with all threads; several traces each in its own process.
local function report_all(entries, args, options)
  if #entries == 1 then
    return { { ok = true, value = report(entries[1], args, options) } }
  end
  local jobs = args.jobs or workers.jobs()
  local threads = math.max(1, workers.jobs() // math.min(jobs, #entries))
  local bar = progress.new(#entries)
  local results = workers.map(entries, function(entry)
    return report(entry, args, options, threads)
  end, { jobs = jobs, progress = bar, title = "reports" })
  bar:clear()
  return results
end

-- Prints a line on each GPU without known peaks. made: the results of print_result, or false.
local function note_gpus(made)
  local infos = sequences.map(made, function(written) return written and written.info or nil end)
  for _, line in ipairs(gpus.missing(infos)) do fail.note(line) end
end

-- ---- The page --------------------------------------------------------------------------------------------

-- Sets args.page if no form of output is selected; raises for options that do not go together.
local function choose_page(args)
  if not sheets.take_formats(args) then
    args.page = true
  elseif args.page and not args.csv then
    fail.input("--page: the page shows CSVs; add --csv")
  end
  if args.against and not args.page then fail.input("--against: the page shows changes; add --page") end
end

-- The earlier reports of --against: { [base] = path }; none without the option.
local function earlier_of(entries, args)
  if not args.against then return {} end
  local bases = sequences.field(entries, "base")
  against.refuse_own(args.against, args.out, bases)
  return against.find(args.against, bases)
end

-- Writes the comparison of a report with its earlier one. Returns it as a trace of the page has it, or nil.
local function compare(entry, base, earlier, args)
  if not earlier then return nil end
  local csvs, count = against.write(base .. "_csvs", earlier, args.against, base .. "_against", args,
    sequences.merged(options_of(args), { rank = entry.rank }))
  job.print_written(base .. "_against", { xlsx = args.xlsx, sqlite = args.sqlite }, count)
  print(("written   %s/: %s against %s"):format(csvs, entry.base, against.base(args.against)))
  return against.of_page(args.against, csvs)
end

-- The workbook and the database at `base`, those that are written.
local function files_of(base, args)
  local paths = sheets.paths(base, args)
  return sequences.join { { paths.xlsx or nil }, { paths.sqlite or nil } }
end

-- Writes the page of these traces; written[i]: the result of the i-th one, or false; earlier[base]: the
-- report to compare with, or nil.
local function write_page(entries, written, earlier, failures, args)
  local list = sequences.map(entries, function(entry, i)
    local base, done = args.out .. "/" .. entry.base, written[i]
    local change = done and compare(entry, base, earlier[entry.base], args) or nil
    local files = done and files_of(base, args) or {}
    if change then sequences.append(files, files_of(base .. "_against", args)) end
    return { entry = entry, configuration = entry.configuration, info = done and done.info or nil,
      name = entry.base, csvs = done and base .. "_csvs" or nil, against = change, files = files }
  end)
  local path = report_overview.write(list, args.out, failures)
  print(("written   %s: %s"):format(path, report_overview.WORDS))
end

-- ---- The batch -------------------------------------------------------------------------------------------

-- The options for -b, and those that do not go with it.
local of_batch = { "pattern", "extension", "filter", "dry_run", "all_kernels", "output", "replay", "budget",
  "gpus_per_node", "digests", "verify" }
local of_traces = { "against", "out", "include_unlinked", "micro_idle", "short_limit", "bins", "top_short",
  "kernel_summary", "no_kernel_summary", "no_collectives", "by_kernel_count", "stacks", "threads",
  "channels", "ranks", "trace_name", "base_path", "tracelens_path" }

-- The options, marked with these: a project's defaults of the one kind do not reach the other.
local function marked(list)
  local with, without = sequences.set(of_batch), sequences.set(of_traces)
  return sequences.map(list, function(option)
    local key = option.name:gsub("-", "_")
    return sequences.merged(option, { with = with[key] and "base" or nil,
      without = without[key] and { "base" } or option.without })
  end)
end

local function refuse(args, names, why)
  for _, name in ipairs(names) do
    if args[name] ~= nil then fail.input("--%s %s", name:gsub("_", "-"), why) end
  end
end

local function run_batch(args)
  refuse(args, of_traces, "does not go with -b; see gentables trace report --help")
  if args.budget and not args.replay then fail.input("--budget requires -r, the replay") end
  if #args > 0 then fail.input("-b names the traces' folder; remove %s", args[1]) end
  if args.output and not args.output:find("%.xlsx$") then
    fail.input("-o: %s: a name that ends in .xlsx is required", args.output)
  end
  choose_page(args)
  sheets.choose(args)
  digest_folder.use(args)
  job.select(args)
  return require("trace.reports.workbooks").run { base = args.base, pattern = args.pattern,
    extension = args.extension, page = args.page and args.csv,
    filters = args.filter, dry_run = args.dry_run, all_kernels = args.all_kernels, output = args.output,
    csv = args.csv, xlsx = args.xlsx, sqlite = args.sqlite, jobs = args.jobs,
    gpus_per_node = args.gpus_per_node,
    replay = args.replay and require("replay.replay_run").options(args) }
end

local function check_traces(args)
  refuse(args, of_batch, "requires -b, the folder above the traces' folders")
  if #args == 0 and not args.base_path and not args.tracelens_path then
    fail.input("trace report takes PATH..., or -b DIR; see gentables trace report --help")
  end
  if not args.out then fail.input("trace report needs --out DIR; see gentables trace report --help") end
end

return {
  summary = "The work of each rank: time line, ops, kernels and collectives, as xlsx and CSV.",
  positional = setmetatable({ min = 0 }, { __index = job.positional }),
  options = marked(job.options(sequences.join { {
    { name = "base", short = "b", value = "DIR", arguments = false,
      help = "a report over ranks for each folder of traces below DIR, beside the traces" },
    { name = "out", value = "DIR",
      help = "folder of the reports, NAME.xlsx and NAME_csvs/; of a sweep, in its tree of folders" },
    { name = "include-unlinked", help = "gpu_timeline: also GPU events without a launch" },
    { name = "micro-idle", value = "US", type = "number", least = 0,
      help = "gpu_timeline: split idle time; pauses shorter than this are micro_idle_time" },
    { name = "short-limit", value = "US", type = "number", least = 0,
      help = "kernels below this are short (default: 10)" },
    { name = "bins", value = "N", type = "whole", most = 100000,
      help = "bins of short_kernel_histogram (default: 100)" },
    { name = "top-short", value = "K", type = "whole",
      help = "only the first K rows of short_kernels_summary" },
    { name = "kernel-summary", help = "write the sheet kernel_summary (the default)" },
    { name = "no-kernel-summary", help = "leave the sheet kernel_summary out" },
    { name = "no-collectives", help = "leave the sheet nccl_summary_long out" },
    { name = "by-kernel-count", help = "ops_unique_args: a row for each num_kernels" },
    { name = "stacks", help = "write the sheet call_stacks: GPU time by op, its entry point and the stack of"
      .. " Python functions" },
    { name = "pattern", short = "p", value = "TEXT",
      help = "-b: the text before the rank in a file's name (default: rank_, rank-, rank[ or rank)" },
    { name = "extension", short = "e", value = "json|gz|digest",
      help = "-b: the ending of the traces' names (default: json); digest: of their digests" },
    { name = "filter", short = "f", value = "TEXT", list = true,
      help = "-b: texts that a trace's path must contain (default: rank_0, rank-0, rank[0 or rank0)" },
    { name = "dry-run", short = "d", help = "-b: only list the traces" },
    { name = "all-kernels", short = "a", help = "-b: every GPU event, sheets kernels_0 ... kernels_n" },
    { name = "output", short = "o", value = "FILE.xlsx",
      help = "-b: the report's name; for one configuration only" },
    { name = nodes.option.name, value = "N", type = "whole", help = "-b: " .. nodes.option.help },
    { name = "replay", short = "r",
      help = "-b: also run the GEMMs and convolutions with most of the time again, with their own report" },
    { name = "budget", value = "SECONDS", type = "number", above = 0,
      help = "-b -r: time for all; the report lists those that it did not reach" },
    { name = "page", help = "write the page also with --csv" },
    against.option, job.gpu,
  }, sequences.map(digest_folder.options, function(option)
    return sequences.merged(option, { help = "-b: " .. option.help })
  end) }, true)),
  example = example_of "trace report {SWEEP} --out reports",
  run = function(args)
    if args.base then return run_batch(args) end
    check_traces(args)
    choose_page(args)
    local options = options_of(args)
    local entries, is_whole = entries_of(args)
    local earlier = earlier_of(entries, args)
    local written, made, failures, code = 0, {}, {}, is_whole and 0 or 2
    for i, result in ipairs(report_all(entries, args, options)) do
      made[i] = print_result(entries[i], result, args) or false
      if made[i] then
        written = written + 1
      else
        failures[#failures + 1] = result.value
        if code == 0 then code = result.code or 1 end
      end
    end
    if written == 0 then return code end
    note_gpus(made)
    if args.page and args.csv then
      write_page(entries, made, earlier, failures, args)
    elseif args.csv then
      os.remove(report_overview.path(args.out)) -- an earlier one shows CSVs that are replaced now
    end
    return (written < #entries or not is_whole) and 1 or 0
  end,
}
