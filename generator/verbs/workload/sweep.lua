-- gentables workload sweep: measures a workload over channels and threads, each configuration in its own
-- processes, and writes traces, logs and a summary in the documented tree (workload/store.lua). In an
-- existing folder it measures missing and failed configurations. If one fails, the others still run.
local child_process = require "system.child_process"
local common_options = require "workload.common_options"
local configurations = require "trace.runs.configurations"
local fail = require "base.fail"
local file = require "core.file"
local options = require "base.options"
local ordering = require "base.ordering"
local process = require "core.process"
local progress = require "system.progress"
local configuration = require "workload.configuration"
local quantities = require "base.quantities"
local sequences = require "base.sequences"
local store = require "workload.store"
local findings = require "workload.findings"

local sweep = {}

sweep.summary = "Measures a workload over channels and threads: times, traces, logs, in the documented tree."
sweep.options = options.with(common_options.options, {
  { name = "channels", short = "c", value = "N,N...", comma = true,
    help = "slices in flight (default: 1,2,4); on GPUs NCCL's channels or our blocks (28,42,56,70)" },
  { name = "threads", short = "t", value = "N,N...", comma = true,
    help = "communication threads (default: 1,2); on GPUs those of a block (256,512)" },
  { name = "out", short = "o", value = "DIR",
    help = "the sweep's folder (default: experiments/sweep_YYYYMMDD_HHMMSS); resumes an unfinished sweep" },
  { name = "fresh", help = "measure everything again; replaces a sweep with other settings" },
})
sweep.example = "gentables workload sweep -f small -p 2 -c 1,2 -t 1 -o experiments/a"

-- ---- log and summary ---------------------------------------------------------------------------

-- The time in the names of log and summary: the folder's, that of an existing log, or now.
local function stamp_of(folder)
  return folder:match("sweep_(%d%d%d%d%d%d%d%d_%d%d%d%d%d%d)/*$")
    or sequences.first(file.list(folder) or {}, function(name)
      return name:match("^nccl_thread_sweep_(%d+_%d+)%.log$")
    end) or os.date("%Y%m%d_%H%M%S")
end

local function log_line(job, format, ...)
  local text = select("#", ...) > 0 and format:format(...) or format
  job.log:write(os.date("%Y-%m-%d %H:%M:%S "), text, "\n")
  job.log:flush()
  return text
end

-- A line of the summary: the settings of a configuration, and its result or the reason; `marks`: of its
-- notes.
local function summary_row(entry, marks)
  local result, used, found = entry.result, entry.used or {}, entry.reason or ""
  if result then
    found = ("%s, hidden %s"):format(findings.time(result.times.overlapped.median),
      findings.has_hidden(result) and ("%.0f %%"):format(100 * result.ratios.hidden.median) or "-")
  end
  return (("%-7d %-8d %-11s %8s %-9s %-9s %s%s"):format(entry.threads, entry.channels, entry.status,
    entry.seconds and ("%.1f"):format(entry.seconds) or "-", used.threads or "-", used.channels or "-", found,
    marks):gsub(" +$", ""))
end

-- The notes on configurations that were begun, such as values that NCCL rejected: { { text, entries }... },
-- each text once, and the number of begun configurations. A note may contain several (engine.h).
local function notes_of(entries)
  local out, begun = {}, 0
  for _, entry in ipairs(entries) do
    if entry.used then begun = begun + 1 end
    for text in ((entry.note or "") .. "; "):gmatch("(.-); ") do
      local note = out[text] or { text = text, entries = {} }
      if text ~= "" and not out[text] then out[text], out[#out + 1] = note, note end
      note.entries[#note.entries + 1] = entry
    end
  end
  return out, begun
end

-- "250 threads x 28, 42 channels; 256 threads x 28 channels", of entries in order.
local function names_of(entries)
  local groups = ordering.groups(entries, function(entry) return entry.threads end)
  return table.concat(sequences.map(groups, function(group)
    local channels = table.concat(sequences.field(group, "channels"), ", ")
    return ("%s x %s channel%s"):format(quantities.counted(group.key, "thread"), channels,
      channels == "1" and "" or "s")
  end), "; ")
end

-- The lines under the table, "[1] 250 threads x 28, 42 channels: NCCL: ...", and the marks of each entry's
-- notes.
local function lines_of(entries)
  local notes, begun = notes_of(entries)
  local lines, marks = {}, {}
  for i, note in ipairs(notes) do
    local all = begun > 1 and #note.entries == begun
    lines[i] = ("[%d] %s: %s"):format(i, all and "all" or names_of(note.entries), note.text)
    for _, entry in ipairs(note.entries) do marks[entry] = (marks[entry] or "") .. (" [%d]"):format(i) end
  end
  return lines, marks
end

local function summary_of(job, entries, lines, marks)
  local settings = job.store.settings
  local waiting = settings.backend == "host" and (", %s waiting"):format(settings.wait) or ""
  local out = { ("workload %s, %d ranks, %d steps of each kind, %s transport%s"):format(settings.name,
    settings.ranks, settings.steps, settings.transport, waiting), "",
    "threads channels status       seconds threads   channels  overlapped step (median)",
    "(given) (given)                       (used)    (used)" }
  for _, entry in ipairs(entries) do out[#out + 1] = summary_row(entry, marks[entry] or "") end
  if #lines > 0 then out[#out + 1] = "" end
  return table.concat(table.move(lines, 1, #lines, #out + 1, out), "\n") .. "\n"
end

-- The entries of the sweep's configurations, including requested ones without a result; `refused`: the one
-- among these that was rejected.
local function entries_of(job, refused)
  local entries = store.read(job.folder).entries
  local there = sequences.set(sequences.map(entries, configurations.key))
  for _, one in ipairs(job.configurations) do
    local is_refused = refused and configurations.key(one) == configurations.key(refused)
    if not there[configurations.key(one)] then
      entries[#entries + 1] = is_refused and refused
        or { threads = one.threads, channels = one.channels, status = "not begun" }
    end
  end
  return ordering.sort(entries, configurations.before)
end

-- Writes the summary. Returns its path, and the lines under its table.
local function write_summary(job, refused)
  local path = ("%s/nccl_thread_sweep_summary_%s.txt"):format(job.folder, job.stamp)
  local entries = entries_of(job, refused)
  local lines, marks = lines_of(entries)
  fail.unless_done(file.write(path, summary_of(job, entries, lines, marks)))
  return path, lines
end

-- ---- measuring ---------------------------------------------------------------------------------

-- The command that resumes an interrupted sweep: with its folder and all options.
local function resume_hint(job)
  local more = {}
  if not job.has_out then more[1] = "with -o " .. job.folder end
  if job.fresh then more[#more + 1] = "without --fresh" end
  return ("to resume, run the same command%s"):format(
    #more > 0 and " " .. table.concat(more, " and ") or "")
end

-- Keeps the result of a failed configuration. Ends the sweep if it was interrupted or rejected.
local function keep_failure(job, threads, channels, failure, seconds, bar)
  local name = findings.name { threads = threads, channels = channels }
  local text = log_line(job, "%s: failed after %.1f s: %s", name, seconds, failure.reason)
  if failure.refused then
    job.store:keep_log(threads, channels, failure.log)
  else
    job.store:keep(threads, channels, { status = failure.signal and "interrupted" or "failed",
      reason = failure.reason, seconds = seconds, used = failure.used, note = failure.note }, failure.log)
  end
  if not failure.signal and not failure.refused then return bar:print("gentables: " .. text) end
  bar:clear()
  write_summary(job, failure.refused and { threads = threads, channels = channels, status = "refused",
    reason = failure.reason, seconds = seconds })
  child_process.raise_if_interrupted(resume_hint(job))
  fail.input("%s", failure.reason)
end

-- Measures one configuration; returns whether that succeeded.
local function measure(job, threads, channels, bar)
  local name = findings.name { threads = threads, channels = channels }
  local began = process.now()
  log_line(job, "%s: begins", name)
  job.store:prepare(threads, channels)
  local result, failure = configuration.measure(common_options.measurement(job, channels, threads, {
    path = job.store:trace(threads, channels),
    check = function(so_far) return job.store:refusal(so_far) end,
    progress = function(done, of)
      bar:within(done, of, ("%s: %d of %d rounds"):format(name, done, of))
    end }))
  if result then
    local log = result.log
    result.log, result.status = nil, "ok"
    job.store:keep(threads, channels, result, log)
    log_line(job, "%s: ok, %.1f s%s", name, result.seconds, result.note and "; " .. result.note or "")
    return true
  end
  keep_failure(job, threads, channels, failure, process.now() - began, bar)
  return false
end

-- Removes all results at once, so that after an interrupt no old result counts as new.
local function forget_all(job)
  for _, one in ipairs(job.configurations) do job.store:forget(one.threads, one.channels) end
end

-- Measures all missing configurations. Returns the numbers of kept, measured and failed ones.
local function measure_all(job)
  local there, made, failed, missing = 0, 0, 0, {}
  for _, one in ipairs(job.configurations) do
    local finished, problem = job.store:finished(one.threads, one.channels)
    if finished then there = there + 1 else missing[#missing + 1] = one end
    if problem then
      fail.note(log_line(job, "%s; it is measured again", problem))
    end
  end
  local bar = progress.new()
  bar.total = #missing
  bar:in_turn()
  for _, one in ipairs(missing) do
    bar:show(findings.name(one))
    if measure(job, one.threads, one.channels, bar) then made = made + 1 else failed = failed + 1 end
    bar:step()
  end
  bar:clear()
  return there, made, failed
end

local function default_folder() return "experiments/sweep_" .. os.date("%Y%m%d_%H%M%S") end

-- { { threads, channels }... }, in the order of measurement.
local function configurations_of(threads, channels)
  return sequences.join(threads, function(t)
    return sequences.map(channels, function(c) return { threads = t, channels = c } end)
  end)
end

-- Measures the sweep of the options. Returns its folder, and the number of failed configurations.
function sweep.measure(args)
  local folder = (args.out or default_folder()):gsub("(.)/+$", "%1")
  local decided = common_options.settle(args, not args.fresh and store.begun(folder) or nil)
  local channels, threads = common_options.counts(args, "sweep")
  local job = common_options.read(args)
  job.folder = folder
  job.configurations = configurations_of(threads, channels)
  job.has_out, job.fresh = args.out ~= nil, args.fresh
  job.store = store.open(job.folder, job, args.fresh)
  job.stamp = stamp_of(job.folder)
  local message
  job.log, message = io.open(("%s/nccl_thread_sweep_%s.log"):format(job.folder, job.stamp), "a")
  if not job.log then fail.work("%s", message) end
  print("folder    " .. job.folder)
  if decided then print("backend   " .. log_line(job, "%s", decided)) end
  io.stdout:flush() -- the measurement takes long
  log_line(job, "workload %s, %d ranks: threads %s, channels %s", job.workload.name, job.ranks,
    table.concat(threads, ","), table.concat(channels, ","))
  if args.fresh then forget_all(job) end
  local there, made, failed = measure_all(job)
  local summary, lines = write_summary(job)
  print("written   " .. summary)
  for _, line in ipairs(lines) do print("          " .. line) end
  local text = log_line(job, "%d measured, %d already present, %d failed", made, there, failed)
  print(("written   %s: %s"):format(job.folder, text))
  job.log:close()
  job.store:close()
  return job.folder, failed
end

function sweep.run(args)
  local _, failed = sweep.measure(args)
  return failed > 0 and 1 or 0
end

return sweep
