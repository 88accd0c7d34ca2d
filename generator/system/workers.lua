-- workers.map: the same work on many items, each in a child process of its own (workers.c), as many at once
-- as there are processors. Changes in a child's memory do not reach this process; its result is one text.
-- For work of at least some milliseconds: starting a child takes about one.
local core = require "core.workers"
local fail = require "base.fail"
local progress = require "system.progress"

local workers = {}

-- A child's answer: the exit code as one character, and the text.
local DONE = "\0"

-- Runs in the child.
local function answer(fn, item, index)
  local ok, result = xpcall(fn, fail.trace, item, index)
  if ok and type(result) ~= "string" then ok, result = false, "it returned no text" end
  if ok then return DONE .. result end
  result = fail.of(result)
  if fail.is_failure(result) then return string.char(result.code & 255) .. result.message end
  return "\1internal error: " .. result
end

local function result_of(text, reason)
  if not text then return { ok = false, value = reason, code = 1 } end
  local code = text:byte(1)
  return { ok = code == 0, value = text:sub(2), code = code }
end

-- The progress bar for options.progress: a new one for true, or the given one.
local function bar_of(wanted, count, title)
  if not wanted then return nil end
  local bar = type(wanted) == "table" and wanted or progress.new(count)
  bar:show(title or "")
  return bar
end

-- The default number of children that run at once: one for each processor that this process may use.
function workers.jobs() return core.cores() end

-- workers.map(items, fn, options) -> results, one for each item, in their order:
--   { ok = true, value = the text that fn(item, index) returned in its child, code = 0 } or
--   { ok = false, value = reason, code = exit code: 2 for input, 1 for anything else }.
-- A child that crashes or is killed fails its item only. Options:
--   jobs      the number of children that run at once (default: workers.jobs())
--   progress  true, or a progress object with its total set: a step for each item
--   title     the text of the bar
--   each      each(index, result): called in this process as soon as an item is done
-- SIGINT, SIGTERM and SIGHUP end all children and raise an error with exit code 128 + their number.
function workers.map(items, fn, options)
  options = options or {}
  local results, bar = {}, bar_of(options.progress, #items, options.title)
  local function done(index, text, reason)
    results[index] = result_of(text, reason)
    if bar then bar:step() end
    if options.each then options.each(index, results[index]) end
  end
  local ok, number, name = core.map(#items, options.jobs or workers.jobs(), function(index)
    return answer(fn, items[index], index)
  end, done)
  if bar and (bar ~= options.progress or number or not ok) then bar:clear() end
  if number then fail.with(128 + number, "interrupted by %s; complete results are kept", name) end
  if not ok then fail.work("no process can be started: %s", name) end
  return results
end

return workers
