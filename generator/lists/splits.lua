-- Uneven shares of an alltoallv: weights of the destinations, as in bench/elements/traffic.h.
local numbers = require "base.numbers"

local splits = {}

splits.RIGHT = "up to 16 weights from 0 to 14 such as 3:1, not all of them 0,"

-- The list of weights in a text, or nil.
function splits.read(text)
  local weights, moves = {}, false
  for word in (text .. ":"):gmatch("([^:]*):") do
    local weight = numbers.whole(word, 0, 14)
    if not weight or #weights == 16 then return nil end
    weights[#weights + 1], moves = weight, moves or weight > 0
  end
  return moves and weights or nil
end

-- The weights of `ranks` ranks; if there are fewer weights, they repeat.
function splits.of_ranks(weights, ranks)
  local of_ranks = {}
  for rank = 1, ranks do of_ranks[rank] = weights[(rank - 1) % #weights + 1] end
  return of_ranks
end

return splits
