-- How the C header finds the place of a size among ascending borders, without branches: by halving a power of
-- two of places; or, where that takes fewer steps, by the size's octave (the floor of its binary logarithm)
-- first, and halving only the places that its octave may have.
local octaves = require("core.lookup_rule").octaves

local border_search = {}

local function power_of_two(count)
  local power = 2
  while power < count do power = 2 * power end
  return power
end

local function halvings(places) return math.tointeger(math.log(places, 2)) end

-- The search for all of these lists of ascending positive borders: { places = a power of two above the length
-- of each list, by_octave, halved = the places that are halved, stored = the borders that each list is filled
-- up to, so that no read goes beyond it, starts = list -> how many of it are below each power of two }.
function border_search.plan(lists)
  local longest, most, starts = 0, 0, {}
  for _, borders in ipairs(lists) do
    local own, most_in_one = octaves(borders)
    starts[borders], longest, most = own, math.max(longest, #borders), math.max(most, most_in_one)
  end
  local places, halved = power_of_two(longest + 1), power_of_two(most + 1)
  if 1 + halvings(halved) < halvings(places) then
    return { places = places, by_octave = true, halved = halved, stored = places + halved - 2,
      starts = starts }
  end
  return { places = places, by_octave = false, halved = places, stored = places - 1, starts = starts }
end

return border_search
