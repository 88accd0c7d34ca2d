-- stragglers: the spread of the ranks' communication times, (largest - smallest) / largest. The slowest rank
-- waits least, so it has the smallest time.
local kernels = require "profile.kernels"
local per_rank = require "profile.per_rank"

return per_rank.metric {
  at_least = 2,
  combined = "communication_ms",
  value = function(rank)
    local sum, missing = kernels.communication_time(rank)
    if not sum then return nil, missing end
    if sum == 0 then return nil, "communication with a time above zero" end
    return sum / 1e6
  end,
  combine = function(communication_ms, ranks)
    local largest, smallest, straggler = communication_ms[1], communication_ms[1], ranks[1]
    for i, time in ipairs(communication_ms) do
      if time < smallest then smallest, straggler = time, ranks[i] end
      if time > largest then largest = time end
    end
    return (largest - smallest) / largest, { straggler = straggler.label }
  end,
}
