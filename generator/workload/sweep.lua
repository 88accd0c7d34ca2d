-- gentables workload sweep: measures a workload over channels and threads, each configuration in processes
-- of its own, and leaves traces, logs and a summary in the documented tree (store.lua). On a folder that is
-- there it does what is missing or failed. What fails is told and does not end the rest.
local asked = require "workload.asked"
local fail = require "fail"
local file = require "core.file"
local options = require "options"
local process = require "core.process"
local progress = require "progress"
local session = require "workload.session"
local store = require "workload.store"
local words = require "workload.words"

local sweep = {}

sweep.summary = "Measures a workload over channels and threads: times, traces, logs, in the documented tree."
sweep.options = options.with(asked.options, {
  { name = "channels", short = "c", value = "N,N...",
    help = "slices in flight (default: 1,2,4); on GPUs NCCL's channels or our blocks (28,42,56,70)" },
  { name = "threads", short = "t", value = "N,N...",
    help = "communication threads (default: 1,2); on GPUs those of a block (256,512)" },
  { name = "out", short = "o", value = "DIR",
    help = "the sweep's folder (default: experiments/sweep_YYYYMMDD_HHMMSS); what is there is gone on with" },
  { name = "fresh", help = "measure anew what is there; a sweep with other settings is taken away" },
})
sweep.example = "gentables workload sweep -f dense -c 1,2,4 -t 1,2 -p 2 -o experiments/sweep_dense"

-- ---- log and summary ---------------------------------------------------------------------------

-- The time that names log and summary: the folder's own, that of a log that is there, or now.
local function stamp_of(folder)
  local stamp = folder:match("sweep_(%d%d%d%d%d%d%d%d_%d%d%d%d%d%d)/*$")
  if stamp then return stamp end
  for _, name in ipairs(file.list(folder) or {}) do
    stamp = name:match("^nccl_thread_sweep_(%d+_%d+)%.log$")
    if stamp then return stamp end
  end
  return os.date("%Y%m%d_%H%M%S")
end

local function say(job, format, ...)
  local text = select("#", ...) > 0 and format:format(...) or format
  job.log:write(os.date("%Y-%m-%d %H:%M:%S "), text, "\n")
  job.log:flush()
  return text
end

local function summary_row(entry)
  local result = entry.result
  if not result then
    return ("%-7d %-8d %-6s %8.1f %-9s %-9s %s"):format(entry.threads, entry.channels, "failed",
      entry.seconds or 0, "-", "-", entry.reason)
  end
  local hidden = words.knows_hidden(result) and ("%.0f %%"):format(100 * result.ratios.hidden.median) or "-"
  return ("%-7d %-8d %-6s %8.1f %-9d %-9d %.3f ms, hidden %s"):format(entry.threads, entry.channels, "ok",
    result.seconds, result.used.threads, result.used.channels, result.times.overlapped.median / 1e3, hidden)
end

local function summary_of(job, entries)
  local settings = job.store.settings
  local waiting = settings.backend == "host" and (", %s waiting"):format(settings.wait) or ""
  local out = { ("workload %s, %d ranks, %d steps of each kind, %s transport%s"):format(settings.name,
    settings.ranks, settings.steps, settings.transport, waiting), "",
    "threads channels status  seconds threads   channels  overlapped step (median)",
    "(asked) (asked)                  (used)    (used)" }
  for _, entry in ipairs(entries) do out[#out + 1] = summary_row(entry) end
  local said = {}
  for _, entry in ipairs(entries) do
    local note = entry.result and entry.result.note
    if note and not said[note] then table.insert(said, note) end
    if note then said[note] = true end
  end
  if #said > 0 then out[#out + 1] = "" end
  return table.concat(table.move(said, 1, #said, #out + 1, out), "\n") .. "\n"
end

local function write_summary(job)
  local path = ("%s/nccl_thread_sweep_summary_%s.txt"):format(job.folder, job.stamp)
  local entries = store.read(job.folder).entries
  local written, message = file.write(path, summary_of(job, entries))
  if not written then fail.work("%s", message) end
  return path
end

-- ---- measuring ---------------------------------------------------------------------------------

-- What a failure leaves of a configuration. One that was cut off, or does not belong here, ends the sweep.
local function keep_failure(job, threads, channels, failure, seconds, bar)
  local name = words.name { threads = threads, channels = channels }
  local text = say(job, "%s: failed after %.1f s: %s", name, seconds, failure.reason)
  if not failure.signal and not failure.refused then
    job.store:keep(threads, channels, { status = "failed", reason = failure.reason, seconds = seconds },
      failure.log)
    bar:say("gentables: " .. text)
    return
  end
  bar:clear()
  job.store:keep_log(threads, channels, failure.log)
  write_summary(job)
  session.raise(failure)
  fail.input("%s", failure.reason)
end

-- Measures one configuration; returns whether that went well.
local function measure(job, threads, channels, bar)
  local name = words.name { threads = threads, channels = channels }
  local began = process.now()
  say(job, "%s: begins", name)
  job.store:prepare(threads, channels)
  local steps = job.warm_up + job.steps
  local result, failure = session.measure(asked.session(job, channels, threads, {
    path = job.store:trace(threads, channels),
    check = function(so_far) return job.store:refusal(so_far) end,
    progress = function(done) bar:show(("%s: %d of %d rounds"):format(name, done, steps)) end }))
  if result then
    local log = result.log
    result.log, result.status = nil, "ok"
    job.store:keep(threads, channels, result, log)
    say(job, "%s: ok, %.1f s", name, result.seconds)
    return true
  end
  keep_failure(job, threads, channels, failure, process.now() - began, bar)
  return false
end

-- At once: where this is cut off, nothing old counts as new.
local function forget_all(job, threads, channels)
  for _, t in ipairs(threads) do
    for _, c in ipairs(channels) do job.store:forget(t, c) end
  end
end

-- All that is missing. Returns how many were there, are made, and failed.
local function measure_all(job, threads, channels)
  local there, made, failed, missing = 0, 0, 0, {}
  for _, t in ipairs(threads) do
    for _, c in ipairs(channels) do
      local finished, problem = job.store:finished(t, c)
      if finished then there = there + 1 else missing[#missing + 1] = { t, c } end
      if problem then io.stderr:write("gentables: ", say(job, "%s; it is measured anew", problem), "\n") end
    end
  end
  local bar = progress.new(#missing)
  for _, one in ipairs(missing) do
    bar:show(words.name { threads = one[1], channels = one[2] })
    if measure(job, one[1], one[2], bar) then made = made + 1 else failed = failed + 1 end
    bar:step()
  end
  bar:clear()
  return there, made, failed
end

local function default_folder() return "experiments/sweep_" .. os.date("%Y%m%d_%H%M%S") end

-- Measures what args ask for. Returns the sweep's folder, and how many configurations failed.
function sweep.measure(args)
  local channels, threads = asked.counts(args, "sweep")
  local job = asked.read(args)
  job.folder = (args.out or default_folder()):gsub("(.)/+$", "%1")
  job.store = store.open(job.folder, job, args.fresh)
  job.stamp = stamp_of(job.folder)
  local message
  job.log, message = io.open(("%s/nccl_thread_sweep_%s.log"):format(job.folder, job.stamp), "a")
  if not job.log then fail.work("%s", message) end
  say(job, "workload %s, %d ranks: threads %s, channels %s", job.workload.name, job.ranks,
    table.concat(threads, ","), table.concat(channels, ","))
  if args.fresh then forget_all(job, threads, channels) end
  local there, made, failed = measure_all(job, threads, channels)
  print("written   " .. write_summary(job))
  local text = say(job, "%d measured, %d there already, %d failed", made, there, failed)
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
