-- Uneven shares of an alltoallv: weights of the destinations, as bench/elements/traffic.h has them.
local splits = {}

splits.RIGHT = "up to 16 weights from 0 to 14 such as 3:1, not all of them 0,"

-- The weights of a text; nil: it is none.
function splits.read(text)
  local weights, moves = {}, false
  for word in (text .. ":"):gmatch("([^:]*):") do
    local weight = word:find("^%d+$") and math.tointeger(tonumber(word))
    if not weight or weight > 14 or #weights == 16 then return nil end
    weights[#weights + 1], moves = weight, moves or weight > 0
  end
  return moves and weights or nil
end

-- Those of so many ranks: they repeat where there are fewer.
function splits.of_ranks(weights, ranks)
  local of_ranks = {}
  for rank = 1, ranks do of_ranks[rank] = weights[(rank - 1) % #weights + 1] end
  return of_ranks
end

return splits
