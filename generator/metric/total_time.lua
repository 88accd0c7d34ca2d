-- total_time: from the first start to the last end of GPU activity, in ms.
local busy_time = require "profile.busy_time"
local per_rank = require "profile.per_rank"

return per_rank.metric {
  value = function(rank) return busy_time.span(rank.kernels, rank.copies, rank.sets) / 1e6 end,
}
