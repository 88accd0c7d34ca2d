-- Pools the statistics of several ranks: the numbers of each part (count, sum, mean, deviation, min, max and
-- rounding, the difference that equal values may have, or nil) are enough for the whole, without its values.
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local pooled = {}

-- The sum of the squares of all values' differences from their mean.
local function squares_of(parts, mean)
  local squares = 0.0
  for _, part in ipairs(parts) do
    if part.count > 0 then
      squares = squares + part.count * (part.mean - mean) ^ 2
      if part.count > 1 then squares = squares + (part.count - 1) * (part.deviation or 0) ^ 2 end
    end
  end
  return squares
end

-- The statistics of all values together, from those of the parts. deviation (n - 1) is nil for fewer than two
-- values, and 0 for equal ones.
function pooled.together(parts)
  local all = { count = 0, sum = 0.0, rounding = 0.0 }
  for _, part in ipairs(parts) do
    if part.count > 0 then
      all.count, all.sum = all.count + part.count, all.sum + part.sum
      all.min, all.max = math.min(all.min or part.min, part.min), math.max(all.max or part.max, part.max)
      all.rounding = math.max(all.rounding, part.rounding or 0)
    end
  end
  if all.count == 0 then return all end
  all.mean = all.sum / all.count
  if all.count > 1 then
    local are_equal = all.max - all.min <= all.rounding
    all.deviation = are_equal and 0.0 or math.sqrt(squares_of(parts, all.mean) / (all.count - 1))
  end
  return all
end

-- The rows of all lists by key_of(row), in order of first appearance: the statistics of all with one key, and
-- the first of them.
function pooled.joined(lists, key_of)
  return sequences.map(pooled.by_key(lists, key_of), function(rows)
    return sequences.merged(pooled.together(rows), { first = rows[1] })
  end)
end

-- Sorts such rows by descending sum.
function pooled.ranked(rows)
  return ordering.falling(rows, function(row) return row.sum end)
end

-- The rows of all lists in groups by key_of(row); see ordering.groups.
function pooled.by_key(lists, key_of)
  return ordering.groups(sequences.join(lists), key_of)
end

return pooled
