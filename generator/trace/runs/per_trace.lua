-- Calls a function for many traces, each opened once, in its own child process.
local pack = require "codec.pack"
local fail = require "base.fail"
local opening = require "trace.analysis.opening"
local workers = require "system.workers"

local per_trace = {}

-- files = { { path, ... }... } -> for each { ok = true, value = the result of fn(t, file), as codec/pack.lua
-- can pack it } or { ok = false, message, code }. `options` are those of workers.map, and open(path, options)
-- in place of opening.open.
function per_trace.map(files, fn, options)
  local jobs, open = options.jobs or workers.jobs(), options.open or opening.open
  local threads = math.max(1, workers.jobs() // math.max(1, math.min(jobs, #files)))
  local results = workers.map(files, function(entry)
    local t = fail.unless(open(entry.path, { workers = threads }))
    return pack.pack(fn(t, entry))
  end, options)
  for i, result in ipairs(results) do
    results[i] = result.ok and { ok = true, value = pack.unpack(result.value) }
      or { ok = false, message = result.value, code = result.code }
    result.value = nil
  end
  return results
end

return per_trace
