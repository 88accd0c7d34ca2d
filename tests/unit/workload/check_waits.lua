-- Whether a result and the traces of its ranks agree about waits: the median over steps of the length of a
-- trace's waits, those at the ends of steps included, is the rank's.
--
-- usage: gentables lua check_waits.lua RESULT.json TRACE_OF_RANK_0.json TRACE_OF_RANK_1.json...
local json = require "codec.json"
local file = require "core.file"
local median = require("base.statistics").median

local result = json.decode(file.read(arg[1]))
assert(#result.ranks == #arg - 1, "not a trace for each rank")
for rank = 1, #result.ranks do
  local steps, waits = {}, {}
  for _, event in ipairs(json.decode(file.read(arg[rank + 1])).traceEvents) do
    if event.ph == "X" and event.cat == "user_annotation" then steps[#steps + 1] = event end
    if event.name == "gentablesWait" then waits[#waits + 1] = event end
  end
  local sums = {}
  for i, step in ipairs(steps) do
    sums[i] = 0
    for _, wait in ipairs(waits) do
      if wait.ts >= step.ts and wait.ts < step.ts + step.dur then sums[i] = sums[i] + wait.dur end
    end
  end
  local waited, found = result.ranks[rank].await_us, median(sums)
  assert(math.abs(waited - found) < 0.01, ("%s: rank %d waits %g us, by its trace %g"):format(arg[1],
    rank - 1, waited, found))
end
