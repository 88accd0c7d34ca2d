-- moe_share: the share of all kernels' time in kernels with moe or expert in their name.
local busy_time = require "profile.busy_time"
local kernels = require "profile.kernels"
local per_rank = require "profile.per_rank"

local function is_moe(name)
  local small = name:lower()
  return small:find("moe", 1, true) ~= nil or small:find("expert", 1, true) ~= nil
end

return per_rank.metric {
  value = function(rank)
    local all, missing = kernels.time(rank)
    if not all then return nil, missing end
    local count, names = 0, rank.kernels.name
    local sum = busy_time.sum(rank.kernels, function(i)
      local found = is_moe(names[i])
      if found then count = count + 1 end
      return found
    end)
    if count == 0 then return nil, "MoE kernels: no kernel with moe or expert in its name" end
    return sum / all, { moe_ms = sum / 1e6, launches = count }
  end,
}
