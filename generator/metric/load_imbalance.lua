-- load_imbalance: the largest over the smallest time in which a rank's kernels run. Ranks that wait in a
-- collective count as active; --json has the same ratio without communication as well.
local busy_time = require "profile.busy_time"
local kernels = require "profile.kernels"
local per_rank = require "profile.per_rank"

local function ratio(values) return math.max(table.unpack(values)) / math.min(table.unpack(values)) end

local function compute_ms(rank)
  return busy_time.sum(busy_time.union(rank.kernels, kernels.computing(rank))) / 1e6
end

return per_rank.metric {
  at_least = 2,
  combined = "active_ms",
  value = function(rank)
    local active, missing = kernels.active_time(rank)
    if not active then return nil, missing end
    return active / 1e6, { compute_ms = compute_ms(rank) }
  end,
  combine = function(active_ms, ranks)
    local compute = {}
    for i, rank in ipairs(ranks) do compute[i] = compute_ms(rank) end
    local without = math.min(table.unpack(compute)) > 0 and ratio(compute) or nil
    return ratio(active_ms), { load_imbalance_of_compute = without }
  end,
}
