-- communication_time: the sum of the durations of kernels that communicate, in ms. Their waiting for other
-- ranks is included.
local kernels = require "profile.kernels"
local per_rank = require "profile.per_rank"

return per_rank.metric {
  value = function(rank)
    local sum, missing = kernels.communication_time(rank)
    if not sum then return nil, missing end
    return sum / 1e6, { calls = #rank.collectives }
  end,
}
