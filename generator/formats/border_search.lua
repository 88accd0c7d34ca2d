-- How the C header finds the place of a size among ascending borders, without branches: by halving a power of
-- two of places; or, where that takes fewer steps, by the size's octave (the floor of its binary logarithm)
-- first, and halving only the places that its octave may have.
local border_search = {}

local OCTAVES = 31 -- of a positive int

local function power_of_two(count)
  local power = 2
  while power < count do power = 2 * power end
  return power
end

local function halvings(places) return math.tointeger(math.log(places, 2)) end

-- How many of the ascending borders are below each power of two, 2^0 to 2^30.
function border_search.starts(borders)
  local starts, below = {}, 0
  for octave = 0, OCTAVES - 1 do
    while borders[below + 1] and borders[below + 1] < 1 << octave do below = below + 1 end
    starts[octave + 1] = below
  end
  return starts
end

-- The most borders that any list has in one octave.
local function most_in_an_octave(lists)
  local most = 0
  for _, borders in ipairs(lists) do
    local starts = border_search.starts(borders)
    for octave = 1, OCTAVES do
      most = math.max(most, (starts[octave + 1] or #borders) - starts[octave])
    end
  end
  return most
end

-- The search for all of these lists of ascending positive borders: { places = a power of two above the length
-- of each list, by_octave, halved = the places that are halved, stored = the borders that each list is filled
-- up to, so that no read goes beyond it }.
function border_search.plan(lists)
  local longest = 0
  for _, borders in ipairs(lists) do longest = math.max(longest, #borders) end
  local places, halved = power_of_two(longest + 1), power_of_two(most_in_an_octave(lists) + 1)
  if 1 + halvings(halved) < halvings(places) then
    return { places = places, by_octave = true, halved = halved, stored = places + halved - 2 }
  end
  return { places = places, by_octave = false, halved = places, stored = places - 1 }
end

return border_search
