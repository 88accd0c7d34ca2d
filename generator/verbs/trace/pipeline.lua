-- gentables trace pipeline: all reports of a sweep, in the documented tree. Each trace is read once, in a
-- child process, for its report, its collectives and its GEMMs. Earlier results of the same inputs and
-- options are kept. If one step fails, the others still run. The last product is a page over all of them.
local against = require "trace.compare.against"
local digest_folder = require "trace.digests.digest_folder"
local example_of = require("trace.runs.example").of
local pack = require "trace.runs.pack"
local fail = require "base.fail"
local gemm_command = require "trace.gemm.gemm_command"
local gpus = require "lists.gpus"
local job = require "trace.runs.job"
local per_trace = require "trace.runs.per_trace"
local pipeline_overview = require "trace.pipeline.pipeline_overview"
local progress = require "system.progress"
local report_overview = require "trace.reports.report_overview"
local run_folder = require "trace.runs.run_folder"
local sequences = require "base.sequences"
local nodes = require "trace.collectives.nodes"
local sheets = require "pages.sheets"
local stamps = require "trace.pipeline.stamps"
local tasks = require "trace.pipeline.tasks"
local trace_digest = require "trace.runs.trace_digest"
local workers = require "system.workers"

local ANALYSIS, SHORT_LIMIT = "tracelens_analysis", 50

-- The steps that --without can leave out.
local STEPS = { "reports", "collectives", "variance", "plots", "comparisons", "merge", "page" }

-- ---- the run ----------------------------------------------------------------------------------

-- Returns the open tasks. Sets `answer` of the others to their kept text, and counts them.
local function to_do(pipeline, list)
  local missing = {}
  for _, task in ipairs(list) do
    local kept = not pipeline.fresh and pipeline.stamps:kept(task.name, task.stamp, task.files)
    if kept then
      task.answer, task.was_there = kept, true
      pipeline.there = pipeline.there + 1
    else
      missing[#missing + 1] = task
    end
  end
  return missing
end

local function run_task(pipeline, task)
  local answer = task.run()
  pipeline.stamps:keep(task.name, task.stamp, answer, task.files)
  return answer
end

-- Takes the result of a task's run, as workers.map returns it.
local function finish(pipeline, task, result)
  if result.ok then
    task.answer = result.value
    pipeline.made = pipeline.made + 1
    pipeline.bar:show((task.title:gsub("^.*/tracelens_analysis/", "")))
  else
    if task.entry then task.entry.failure = result.value end
    pipeline.work:fail(result.value, result.code)
  end
end

-- Runs a task that is too quick for a process of its own.
local function run_here(pipeline, task)
  local ok, answer = pcall(run_task, pipeline, task)
  if ok then return finish(pipeline, task, { ok = true, value = answer }) end
  local known = fail.of(answer)
  if not fail.is_failure(known) then error(answer, 0) end
  finish(pipeline, task, { ok = false, value = known.message, code = known.code })
end

-- Runs the open tasks of the next step; task.answer is then the result of the run, nil if it failed.
local function do_all(pipeline, list, title)
  sequences.append(pipeline.products, list)
  local missing, others = to_do(pipeline, list), {}
  pipeline.bar.total = pipeline.bar.total - table.remove(pipeline.expected, 1) + #missing
  pipeline.bar:show(title)
  for _, task in ipairs(missing) do
    if not task.is_quick then
      others[#others + 1] = task
    else
      run_here(pipeline, task)
      pipeline.bar:step()
    end
  end
  workers.map(others, function(task) return run_task(pipeline, task) end, { jobs = pipeline.jobs,
    progress = pipeline.bar, title = title,
    each = function(index, result) finish(pipeline, others[index], result) end })
end

-- The note on the incomplete parts of a trace: { path, the text after it }, as per_trace.lines takes it.
local function warning_of(entry, warning)
  local path, text = entry.path, warning:gsub("^gentables: ", ""):gsub("\n$", "")
  return { path, text:sub(1, #path) == path and text:sub(#path + 1) or text }
end

-- The data of the traces: answers[entry], and { { entry, value = as of variance.of }... }. Reports incomplete
-- parts.
local function answers_of(pipeline, traces)
  local answers, found, warnings = {}, {}, {}
  for _, task in ipairs(traces) do
    local answer, entry = task.answer and pack.unpack(task.answer), task.entry
    if answer then
      answers[entry] = answer
      entry.rank = entry.rank or answer.info.rank or task.index - 1
      found[#found + 1] = { entry = entry, value = answer.variance }
      if not task.was_there then
        warnings[#warnings + 1] = answer.warning and warning_of(entry, answer.warning)
        sequences.append(warnings, answer.digest_notes)
      end
    end
  end
  for _, line in ipairs(per_trace.lines(warnings)) do pipeline.work:print_once(line) end
  if not pipeline.without.reports then
    local infos = sequences.map(traces, function(task)
      return answers[task.entry] and answers[task.entry].info
    end)
    for _, line in ipairs(gpus.missing(infos)) do pipeline.work:print_once(line) end
  end
  return answers, found
end

-- The incomplete parts of collectives and merged traces.
local function print_notes(pipeline, made)
  for _, task in ipairs(made) do
    local answer = task.answer and not task.was_there and pack.unpack(task.answer)
    for _, note in ipairs(answer and answer.notes or {}) do pipeline.work:print_once(note) end
  end
end

-- Reads the traces of all configurations and merges them. Returns traces (tasks), by_configuration (these),
-- answers[entry] and found, for tables of GEMMs.
local function read_traces(pipeline, configurations)
  local traces, merges, by_configuration = {}, {}, {}
  per_trace.note_changed(sequences.join(sequences.field(configurations, "files")))
  for i, configuration in ipairs(configurations) do
    by_configuration[configuration] = {}
    for k, entry in ipairs(configuration.files) do
      local task = tasks.trace(pipeline, entry)
      task.index, by_configuration[configuration][k], traces[#traces + 1] = k, task, task
    end
    if not pipeline.without.merge then merges[i] = tasks.merge(pipeline, configuration) end
  end
  -- Merging takes longest, so it begins first.
  do_all(pipeline, sequences.join { merges, traces }, "traces")
  print_notes(pipeline, merges)
  return traces, by_configuration, answers_of(pipeline, traces)
end

-- Comparisons of the products within the sweep, and with an earlier run; returns the tasks of the latter.
local function compare(pipeline, traces, collective)
  local last, changes = {}, {}
  if not pipeline.without.comparisons then
    last[1] = tasks.across(pipeline, collective)
    sequences.append(last, tasks.comparisons(pipeline, sequences.join { traces, collective }))
  end
  if pipeline.against then
    local found, made = pcall(tasks.against, pipeline, pipeline.against, traces)
    if not found and not fail.is_failure(made) then error(made, 0) end
    if found then changes = made else pipeline.work:fail(made.message, made.code) end
  end
  do_all(pipeline, sequences.join { last, changes }, "comparisons")
  return changes
end

-- Reports, collectives, tables, pictures: the results that need each trace once; then comparisons of these.
local function analyse(pipeline, configurations)
  local traces, by_configuration, answers, found = read_traces(pipeline, configurations)
  if #found == 0 then return end
  local later, wanted = {}, pipeline.without.collectives and {} or configurations
  local plots = not pipeline.without.plots and tasks.plots(pipeline, found, traces) or nil
  later[1] = plots
  local collective = sequences.map(wanted, function(configuration)
    return tasks.collectives(pipeline, configuration, answers, by_configuration[configuration])
  end)
  sequences.append(later, collective)
  local tables = {}
  if not pipeline.without.variance then
    tables = tasks.gemm(pipeline, found, traces)
    sequences.append(later, tables)
    if #tables == 0 then pipeline.work:print_once(gemm_command.no_gemm) end
  end
  do_all(pipeline, later, "collectives, tables and pictures")
  print_notes(pipeline, collective)
  local changes = compare(pipeline, traces, collective)
  if pipeline.without.page then
    -- An earlier one shows products that are replaced now.
    if pipeline.made > 0 then os.remove(pipeline_overview.path(pipeline)) end
    return
  end
  do_all(pipeline, { pipeline_overview.task(pipeline, { configurations = configurations, answers = answers,
    by_configuration = by_configuration, collectives = collective, changes = changes,
    tables = tables, plots = plots,
    products = table.move(pipeline.products, 1, #pipeline.products, 1, {}) }) }, "page")
end

-- ---- the command -------------------------------------------------------------------------------

-- Raises for wrong options before any trace is read.
local function check(args)
  if sequences.set(args.without or {}).reports and args.against then
    fail.input("--against compares reports, which --without leaves out; give one of them")
  end
  against.check(args.against)
end

local function pipeline_of(args, work)
  local out = args.out or work.sweep or work.configurations[1].folder
  local analysis = (out:gsub("(.)/+$", "%1")) .. "/" .. ANALYSIS
  local jobs = work.jobs or workers.jobs()
  local options = { include_unlinked = not args.linked_only,
    micro_idle = args.micro_idle,
    short_limit = args.short_limit or SHORT_LIMIT }
  -- Comparisons read the CSVs.
  local forms = "csv" .. (work.xlsx and " xlsx" or "") .. (work.sqlite and " sqlite" or "")
  local top_k = gemm_command.top_k_of(args)
  return { work = work, out = out, analysis = analysis, jobs = jobs, top_k = top_k, csv = true,
    xlsx = work.xlsx, sqlite = work.sqlite, forms = forms, fresh = args.fresh, report_options = options,
    made = 0, there = 0,
    gpus_per_node = args.gpus_per_node, without = sequences.set(args.without or {}),
    gzip = args.gzip or false,
    options_text = ("%s %s %s top %d %s kernels %s %s gpu %s"):format(options.include_unlinked,
      options.micro_idle, options.short_limit, top_k, forms, trace_digest.kernels(), work.selection,
      gpus.selected()),
    threads_each = math.max(1, workers.jobs() // jobs), stamps = stamps.open(analysis .. "/.gentables"),
    bar = progress.new(), against = args.against, products = {} }
end

-- Reports of single ranks and merged traces need the traces.
local function check_digests(args, configurations)
  local without = sequences.set(args.without or {})
  if without.reports and without.merge then return end
  run_folder.refuse_digests(configurations, "reports and merge need the traces; add --without reports,merge")
end

local function run(args)
  check(args)
  local work = job.new(args)
  local configurations = work:usable()
  check_digests(args, configurations)
  if #configurations == 0 then return work:finish() end
  local pipeline = pipeline_of(args, work)
  work.bar, pipeline.expected = pipeline.bar, tasks.expected(pipeline, configurations)
  for _, count in ipairs(pipeline.expected) do pipeline.bar.total = pipeline.bar.total + count end
  if args.against then tasks.refuse_own(pipeline, args.against, configurations) end
  stamps.remove_leftovers(tasks.folders(pipeline, configurations))
  analyse(pipeline, configurations)
  if pipeline.made + pipeline.there > 0 then pipeline.bar:finish() end
  pipeline.bar:clear()
  work.bar = nil
  pipeline.stamps:close()
  print(("written   %s: %d made, %d already present"):format(pipeline.analysis, pipeline.made,
    pipeline.there))
  local page = pipeline.products[#pipeline.products]
  if page and page.answer and page.title == pipeline_overview.path(pipeline) then
    print(("written   %s: %s"):format(page.title, report_overview.WORDS))
  end
  work.done = pipeline.made + pipeline.there
  return work:finish()
end

return digest_folder.command {
  summary = "All analyses of a sweep: reports, collectives, variance, pictures, comparisons, merged traces.",
  positional = job.positional,
  options = job.options({
    { name = "out", value = "DIR",
      help = "folder of tracelens_analysis/ and merged_traces/ (default: the sweep)" },
    { name = "top-k", value = "K", type = "whole", help = "GEMMs of each trace (default: 5)" },
    { name = "short-limit", value = "US", type = "number", least = 0,
      help = "kernels below this are short (default: 50)" },
    { name = "micro-idle", value = "US", type = "number", least = 0,
      help = "gpu_timeline: split idle time at pauses of this length" },
    { name = "linked-only", help = "gpu_timeline: without GPU events that have no launch" },
    { name = "without", value = "STEP", comma = true, one_of = STEPS,
      help = "leave out: " .. table.concat(STEPS, ", ") },
    against.option,
    { name = "gzip", help = "pack the merged traces" },
    { name = "csv", help = "only CSVs, no workbooks" },
    sheets.formats_option(),
    nodes.option, job.gpu,
    { name = "fresh", help = "make everything again, existing files too" },
  }),
  example = example_of "trace pipeline {SWEEP}",
  check = check,
  run = run,
}
