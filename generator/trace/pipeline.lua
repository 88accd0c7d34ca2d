-- gentables trace pipeline: everything that is made of a sweep, in the documented tree. Each trace is read
-- once, in a child process, for its report, its collectives and its GEMMs; what was made before from the
-- same inputs and options stays. What fails is told, and does not end the rest.
local collectives = require "trace.collectives"
local collective_sheets = require "trace.collective_sheets"
local digest = require "trace.digest"
local fail = require "fail"
local file = require "core.file"
local gemm_command = require "trace.gemm_command"
local job = require "trace.job"
local merging = require "trace.merging"
local per_rank = require "trace.per_rank"
local plots = require "trace.plots"
local progress = require "progress"
local rank = require "trace.rank"
local sheets = require "sheets"
local stamps = require "trace.stamps"
local variance = require "trace.gemm_variance"
local workers = require "workers"

local ANALYSIS, SHORT_LIMIT = "tracelens_analysis", 50

-- What --without can leave out.
local STEPS = { "reports", "collectives", "variance", "plots", "comparisons", "merge" }

-- ---- what is to be made ------------------------------------------------------------------------

local function folder_of(path) return path:match("^(.*)/[^/]*$") end

local function name_of(entry)
  local name = "perf"
  if entry.channels then name = ("%s_%dch"):format(name, entry.channels) end
  if entry.rank then return ("%s_rank%d"):format(name, entry.rank) end
  return ("%s_%s"):format(name, entry.path:match("[^/]*$"))
end

local function report_base(plan, entry)
  local folder = entry.threads and ("%dthread/"):format(entry.threads) or ""
  return ("%s/%sindividual_reports/%s"):format(plan.analysis, folder, name_of(entry))
end

-- The paths of a list of sheets saved at `base`: at least one of these tells whether it is there.
local function saved(plan, base)
  local paths = {}
  if plan.xlsx then paths[#paths + 1] = base .. ".xlsx" end
  if plan.csv then paths[#paths + 1] = base .. "_csvs" end
  return paths
end

local function save(plan, list, base)
  fail.unless(file.make_folder(folder_of(base)))
  sheets.save(list, { folder = plan.csv and base .. "_csvs", xlsx = plan.xlsx and base .. ".xlsx" })
end

-- Returns what is incomplete.
local function write_report(plan, one, base)
  local list, notes = per_rank.sheets(one, plan.report_options)
  save(plan, list, base)
  return notes
end

-- Tasks have: name (of the stamp), stamp, files (that are there when it is done: a list, or a function of
-- the text that is kept), title, run() -> text that is kept with the stamp. run is called in a child.
local function trace_task(plan, entry)
  local base = report_base(plan, entry)
  local with_report = not plan.without.reports
  return { name = base:sub(#plan.analysis + 2):gsub("/", "__"), entry = entry, title = base,
    files = with_report and saved(plan, base) or {}, stamp = stamps.of({ entry.path }, plan.options_text),
    run = function()
      local one = fail.unless(rank.open(entry.path, { workers = plan.threads_each }))
      local notes = with_report and write_report(plan, one, base) or {}
      return digest.pack { info = one.trace:info(), collectives = collective_sheets.digest(one.trace),
        variance = variance.of(one.trace, { top_k = plan.top_k }),
        warning = per_rank.warning(entry.path, notes) }
    end }
end

local function paths_of(configuration)
  local paths = {}
  for i, entry in ipairs(configuration.files) do paths[i] = entry.path end
  return paths
end

-- One trace of all ranks, for a viewer.
local function merge_task(plan, configuration)
  local path = ("%s/merged_traces/%s"):format(plan.out, merging.file_name(configuration, plan.gzip))
  return { name = path:match("[^/]*$"), files = { path }, title = path, configuration = configuration,
    stamp = stamps.of(paths_of(configuration), "merge"),
    run = function()
      fail.unless(file.make_folder(folder_of(path)))
      local merged = merging.must_merge(path, configuration,
        { gzip = plan.gzip, jobs = plan.threads_each })
      return digest.pack { notes = merged.notes }
    end }
end

local function stamp_of_all(tasks, ...)
  local parts = { ... }
  for i, task in ipairs(tasks) do
    parts[#parts + 1] = ("%d %s %s"):format(i, task.stamp, task.answer and "done" or "failed")
  end
  return stamps.of({}, table.concat(parts, "\0"))
end

local function collective_task(plan, configuration, answers, tasks)
  local base = collectives.base(plan.analysis, configuration)
  local function files(kept) return digest.unpack(kept).count > 0 and saved(plan, base) or {} end
  return { name = base:sub(#plan.analysis + 2):gsub("/", "__"), files = files, title = base,
    configuration = configuration, stamp = stamp_of_all(tasks, "collectives", plan.forms),
    run = function()
      local list, notes = collectives.sheets(configuration, answers)
      if #list > 0 then save(plan, list, base) end
      local summary
      for _, sheet in ipairs(list) do
        if sheet.name == collectives.SUMMARY then summary = sheet end
      end
      return digest.pack { notes = notes, summary = summary, count = #list }
    end }
end

local function gemm_tasks(plan, found, tasks)
  local out, rows = {}, 0
  for _, one in ipairs(found) do rows = rows + #one.value.picked end
  if rows == 0 then return out end
  for _, kind in ipairs { "variance", "timestamps", "overlap" } do
    local sheet = variance.sheet(kind, found, plan.top_k)
    local path = ("%s/%s"):format(plan.analysis, sheets.csv_name(sheet))
    out[#out + 1] = { name = sheet.name, files = { path }, stamp = stamp_of_all(tasks, kind), title = path,
      run = function()
        local written, message = file.write(path, sheets.csv(sheet))
        if not written then fail.work("%s", message) end
        return ""
      end }
  end
  return out
end

-- The rows that pictures show; none where threads, channels or ranks are not told.
local function plot_rows(found)
  local rows = {}
  for _, trace in ipairs(found) do
    local entry = trace.entry
    for _, one in ipairs(trace.value.picked) do
      if entry.threads and entry.channels then
        rows[#rows + 1] = { threads = entry.threads, channel = entry.channels, rank = entry.rank,
          time_diff_us = one.most_us - one.least_us }
      end
    end
  end
  return rows
end

local function plot_task(plan, found, tasks)
  local rows, folder, files = plot_rows(found), plan.analysis .. "/plots", {}
  if #rows == 0 then return nil end
  for i, picture in ipairs(plots.list) do files[i] = ("%s/%s.png"):format(folder, picture.name) end
  return { name = "plots", files = files, stamp = stamp_of_all(tasks, "plots"), title = folder,
    run = function()
      plots.draw(rows, folder)
      return ""
    end }
end

-- ---- doing it ----------------------------------------------------------------------------------

-- Splits tasks into those that are to be done and those that are there, whose kept text is taken.
local function to_do(plan, tasks)
  local missing = {}
  for _, task in ipairs(tasks) do
    local kept = not plan.fresh and plan.stamps:kept(task.name, task.stamp, task.files)
    if kept then
      task.answer, task.was_there = kept, true
      plan.there = plan.there + 1
    else
      missing[#missing + 1] = task
    end
  end
  return missing
end

-- Does what is missing; task.answer is then what its run returned, nil where it failed.
local function do_all(plan, tasks)
  local missing = to_do(plan, tasks)
  plan.bar.total = plan.bar.total + #missing
  workers.map(missing, function(task)
    local answer = task.run()
    plan.stamps:keep(task.name, task.stamp, answer)
    return answer
  end, { jobs = plan.jobs, progress = plan.bar, title = "",
    each = function(index, result)
      local task = missing[index]
      if result.ok then
        task.answer = result.value
        plan.made = plan.made + 1
        plan.bar:show(task.title)
      else
        plan.work:fail(result.value, result.code)
      end
    end })
end

-- What is incomplete in traces, { { entry, text }... }: once where it is the same in several.
local function say_warnings(plan, warnings)
  local order, paths = {}, {}
  for _, one in ipairs(warnings) do
    local path = one[1].path
    local text = one[2]:gsub("^gentables: ", ""):gsub("\n$", "")
    if text:sub(1, #path) == path then text = text:sub(#path + 1) end
    if not paths[text] then
      paths[text] = {}
      order[#order + 1] = text
    end
    table.insert(paths[text], path)
  end
  for _, text in ipairs(order) do
    local more = #paths[text] > 1 and (" (and %d more)"):format(#paths[text] - 1) or ""
    plan.work:say(paths[text][1] .. more .. text)
  end
end

-- The traces of all configurations. Returns answers[entry], found (for tables of GEMMs), and tasks by
-- configuration.
local function read_traces(plan, configurations)
  local all, of_configuration, first = {}, {}, {}
  for _, configuration in ipairs(configurations) do
    local tasks = {}
    for i, entry in ipairs(configuration.files) do tasks[i] = trace_task(plan, entry) end
    of_configuration[configuration] = tasks
    table.move(tasks, 1, #tasks, #all + 1, all)
  end
  -- Merging takes longest, so it begins first.
  for i, configuration in ipairs(plan.without.merge and {} or configurations) do
    first[i] = merge_task(plan, configuration)
  end
  do_all(plan, table.move(all, 1, #all, #first + 1, first))
  for _, task in ipairs(first) do
    local merged = task.configuration and task.answer and not task.was_there and digest.unpack(task.answer)
    for _, note in ipairs(merged and merged.notes or {}) do plan.work:say(note) end
  end
  local answers, found, warnings = {}, {}, {}
  for _, task in ipairs(all) do
    if task.answer then
      local answer = digest.unpack(task.answer)
      answers[task.entry] = answer
      if answer.warning and not task.was_there then table.insert(warnings, { task.entry, answer.warning }) end
    end
  end
  say_warnings(plan, warnings)
  for _, configuration in ipairs(configurations) do
    for i, entry in ipairs(configuration.files) do
      if answers[entry] then
        entry.rank = entry.rank or answers[entry].info.rank or i - 1
        found[#found + 1] = { entry = entry, value = answers[entry].variance }
      end
    end
  end
  return answers, found, all, of_configuration
end

-- The summaries of all configurations side by side.
local function across_task(plan, tasks)
  local made = {}
  for _, task in ipairs(tasks) do
    local answer = task.answer and digest.unpack(task.answer)
    if answer and answer.summary then
      made[#made + 1] = { configuration = task.configuration, sheets = { answer.summary } }
    end
  end
  local sheet, base = collectives.across(made), collectives.across_base(plan.analysis)
  if not sheet then return nil end
  return { name = "collectives_across_configurations", files = saved(plan, base), title = base,
    stamp = stamp_of_all(tasks, plan.forms), run = function()
      save(plan, { sheet }, base)
      return ""
    end }
end

local function say_notes(plan, tasks)
  for _, task in ipairs(tasks) do
    local answer = task.answer and not task.was_there and digest.unpack(task.answer)
    if answer then
      for _, note in ipairs(answer.notes) do plan.work:note(task.configuration, note) end
      if answer.count == 0 then plan.work:note(task.configuration, "no collectives, so no report of them") end
    end
  end
end

-- Reports, collectives, tables, pictures: what follows from traces that are read once.
local function analyse(plan, configurations)
  local answers, found, all, of_configuration = read_traces(plan, configurations)
  if #found == 0 then return end
  local later, collective = {}, {}
  if not plan.without.plots then later[1] = plot_task(plan, found, all) end
  for _, configuration in ipairs(plan.without.collectives and {} or configurations) do
    local tasks = of_configuration[configuration]
    collective[#collective + 1] = collective_task(plan, configuration, answers, tasks)
  end
  table.move(collective, 1, #collective, #later + 1, later)
  if not plan.without.variance then
    local tables = gemm_tasks(plan, found, all)
    table.move(tables, 1, #tables, #later + 1, later)
    if #tables == 0 then plan.work:say(gemm_command.no_gemm) end
  end
  do_all(plan, later)
  say_notes(plan, collective)
  if not plan.without.comparisons then do_all(plan, { across_task(plan, collective) }) end
end

-- ---- the command -------------------------------------------------------------------------------

local function without_of(args)
  local without, known = {}, {}
  for _, step in ipairs(STEPS) do known[step] = true end
  for _, given in ipairs(args.without or {}) do
    for step in given:gmatch("[^,]+") do
      if not known[step] then
        fail.input("--without: %s is no step; %s would be right", step, table.concat(STEPS, ", "))
      end
      without[step] = true
    end
  end
  return without
end

local function plan_of(args, work)
  local out = args.out or work.sweep or work.configurations[1].folder
  local analysis = (out:gsub("(.)/+$", "%1")) .. "/" .. ANALYSIS
  local jobs = work.jobs or workers.jobs()
  local options = { include_unlinked = not args.linked_only, micro_idle = tonumber(args.micro_idle),
    short_limit = tonumber(args.short_limit) or SHORT_LIMIT }
  local forms = ("csv %s xlsx %s"):format(work.csv, work.xlsx)
  local top_k = gemm_command.top_k_of(args)
  return { work = work, out = out, analysis = analysis, jobs = jobs, top_k = top_k, csv = work.csv,
    xlsx = work.xlsx, forms = forms, fresh = args.fresh, report_options = options, made = 0, there = 0,
    without = without_of(args), gzip = args.gzip or false,
    options_text = ("%s %s %s top %d %s"):format(options.include_unlinked, options.micro_idle,
      options.short_limit, top_k, forms),
    threads_each = math.max(1, workers.jobs() // jobs), stamps = stamps.open(analysis .. "/.gentables"),
    bar = progress.new(0) }
end

local function output_folders(plan, configurations)
  local folders, seen = { plan.analysis, plan.analysis .. "/plots", plan.analysis .. "/comparisons",
    plan.stamps.folder, plan.out .. "/merged_traces" }, {}
  for _, configuration in ipairs(configurations) do
    for _, path in ipairs { collectives.base(plan.analysis, configuration),
      report_base(plan, configuration.files[1]) } do
      if not seen[path] then
        seen[path] = true
        folders[#folders + 1] = folder_of(path)
      end
    end
  end
  return folders
end

local function run(args)
  local work = job.new(args)
  local configurations = work:usable()
  if #configurations == 0 then return work:finish() end
  local plan = plan_of(args, work)
  work.bar = plan.bar
  stamps.sweep(output_folders(plan, configurations))
  analyse(plan, configurations)
  plan.bar:clear()
  work.bar = nil
  plan.stamps:close()
  print(("written   %s: %d made, %d there already"):format(plan.analysis, plan.made, plan.there))
  work.done = plan.made + plan.there
  return work:finish()
end

return {
  summary = "All of it for a sweep: reports, collectives, variance, pictures, comparisons, merged traces.",
  positional = job.positional,
  options = job.options({
    { name = "out", value = "DIR",
      help = "where tracelens_analysis/ and merged_traces/ go (default: into the sweep)" },
    { name = "top-k", value = "K", help = "so many GEMMs of each trace (default: 5)" },
    { name = "short-limit", value = "US", help = "kernels below this are short (default: 50)" },
    { name = "micro-idle", value = "US", help = "gpu_timeline: split idle time at pauses of this length" },
    { name = "linked-only", help = "gpu_timeline: without GPU events that no launch was found for" },
    { name = "without", value = "STEP...", list = true, help = "leave out: " .. table.concat(STEPS, ", ") },
    { name = "gzip", help = "pack the merged traces" },
    { name = "fresh", help = "make everything again, also what is there" },
  }, true),
  example = "gentables trace pipeline experiments/sweep_20251124_222204",
  run = run,
}
