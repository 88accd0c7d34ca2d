-- dominant_kernel_share: the share of the kernel with the largest sum, by name, in all kernels' time.
local kernels = require "profile.kernels"
local per_rank = require "profile.per_rank"

-- The name with the largest sum (of equal sums the first name in alphabetical order), its sum, its number of
-- launches.
local function largest(list)
  local sums, counts, best = {}, {}, nil
  for i = 1, #list.start do
    local name = list.name[i]
    sums[name] = (sums[name] or 0) + list.stop[i] - list.start[i]
    counts[name] = (counts[name] or 0) + 1
  end
  for name, sum in pairs(sums) do
    if not best or sum > sums[best] or (sum == sums[best] and name < best) then best = name end
  end
  return best, sums[best], counts[best]
end

return per_rank.metric {
  value = function(rank)
    local all, missing = kernels.time(rank)
    if not all then return nil, missing end
    local name, sum, count = largest(rank.kernels)
    return sum / all, { kernel = name, kernel_ms = sum / 1e6, launches = count }
  end,
}
