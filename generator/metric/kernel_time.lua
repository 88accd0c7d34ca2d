-- kernel_time: the sum of all kernels' durations, in ms; kernels that run at once count each.
local busy_time = require "profile.busy_time"
local per_rank = require "profile.per_rank"

return per_rank.metric {
  value = function(rank)
    if #rank.kernels.start == 0 then return nil, "kernels: there are only copies" end
    return busy_time.sum(rank.kernels) / 1e6, { kernels = #rank.kernels.start,
      busy_ms = busy_time.sum(busy_time.union(rank.kernels)) / 1e6 }
  end,
}
