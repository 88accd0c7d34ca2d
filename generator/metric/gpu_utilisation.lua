-- gpu_utilisation: the share of total_time in which at least one kernel runs. A running kernel may use a
-- small part of the GPU.
local busy_time = require "profile.busy_time"
local kernels = require "profile.kernels"
local per_rank = require "profile.per_rank"

return per_rank.metric {
  value = function(rank)
    local active, missing = kernels.active_time(rank)
    if not active then return nil, missing end
    local span = busy_time.span(rank.kernels, rank.copies, rank.sets)
    return active / span, { active_ms = active / 1e6, total_ms = span / 1e6 }
  end,
}
