-- kernel_time: the sum of all kernels' durations, in ms; kernels that run at once count each.
local intervals = require "profile.busy_time"
local per_rank = require "profile.per_rank"

return per_rank.metric {
  value = function(rank)
    if #rank.kernels.start == 0 then return nil, "kernels: there are only copies" end
    return intervals.sum(rank.kernels) / 1e6, { kernels = #rank.kernels.start,
      busy_ms = intervals.sum(intervals.union(rank.kernels)) / 1e6 }
  end,
}
