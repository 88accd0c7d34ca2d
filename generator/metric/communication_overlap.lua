-- communication_overlap: the share of the time with communication in which another kernel runs, too. Copies
-- and memsets are no kernels, except for AMD's kernels that copy.
local busy_time = require "profile.busy_time"
local kernels = require "profile.kernels"
local per_rank = require "profile.per_rank"

return per_rank.metric {
  value = function(rank)
    if #rank.collectives == 0 then return nil, kernels.no_communication end
    local communication = busy_time.union(rank.kernels, kernels.communicating(rank))
    local total = busy_time.sum(communication)
    if total == 0 then return nil, "communication with a time above zero" end
    local hidden = busy_time.common(communication, busy_time.union(rank.kernels, kernels.computing(rank)))
    return hidden / total, { communication_ms = total / 1e6, hidden_ms = hidden / 1e6,
      exposed_ms = (total - hidden) / 1e6 }
  end,
}
