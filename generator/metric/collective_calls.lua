-- collective_calls: number of kernels of each collective, and their time in ms.
local busy_time = require "profile.busy_time"
local per_collective = require "profile.per_collective"

-- The calls as intervals.
local function columns_of(calls)
  local list = { start = {}, stop = {} }
  for i, call in ipairs(calls) do list.start[i], list.stop[i] = call.start, call.stop end
  return list
end

return per_collective.metric {
  columns = { { key = "calls", title = "calls" }, { key = "time_ms", title = "time (ms)" },
    { key = "mean_ms", title = "mean (ms)" } },
  row = function(calls)
    local time_ms = busy_time.sum(columns_of(calls)) / 1e6
    return { calls = #calls, time_ms = time_ms, mean_ms = time_ms / #calls }
  end,
}
