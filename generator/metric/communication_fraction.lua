-- communication_fraction: communication's share of all kernels' time, both as sums.
local kernels = require "profile.kernels"
local per_rank = require "profile.per_rank"

return per_rank.metric {
  value = function(rank)
    local communication, missing = kernels.communication_time(rank)
    if not communication then return nil, missing end
    local all, no_time = kernels.time(rank)
    if not all then return nil, no_time end
    return communication / all, { communication_ms = communication / 1e6, kernel_ms = all / 1e6 }
  end,
}
