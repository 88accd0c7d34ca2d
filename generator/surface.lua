-- What a strategy's time is where it was not measured: from the points where it was.
--
-- A point is { x, y, time } of log2(tokens), log2(hidden size), log2(time); `spread` is how far off the time
-- may be, in log2. A prediction is the line of log time over log bytes (x + y) through the nearest points,
-- each with the weight 1 / distance^4, so that it goes through what was measured; it grows less sure with the
-- distance to the nearest point. (Shepard's interpolation, with a local line in place of a mean.)
local surface = {}

local NEAREST = 1e-3          -- closer points are taken as this far away
local DOUBT_PER_OCTAVE = 0.06 -- of the time, for each doubling between a point and where it is asked for

function surface.distance(a, b)
  local dx, dy = a.x - b.x, a.y - b.y
  return math.sqrt(dx * dx + dy * dy)
end

-- Weighted least squares of time = a + b * bytes; returns the value at `bytes`.
local function line_at(sums, bytes)
  local mean_bytes, mean_time = sums.bytes / sums.weight, sums.time / sums.weight
  local variance = sums.bytes_bytes / sums.weight - mean_bytes * mean_bytes
  local slope = 0
  if variance > 1e-6 then
    slope = (sums.bytes_time / sums.weight - mean_bytes * mean_time) / variance
  end
  return mean_time + math.max(0, math.min(1.2, slope)) * (bytes - mean_bytes)
end

-- Returns log2(time) at `where` ({ x, y }) and its spread; nil without points.
function surface.predict(points, where)
  local sums = { weight = 0, bytes = 0, time = 0, bytes_bytes = 0, bytes_time = 0 }
  local nearest, least = nil, math.huge
  for _, point in ipairs(points) do
    local distance = surface.distance(point, where)
    if distance < least then nearest, least = point, distance end
    local weight = 1 / math.max(distance, NEAREST) ^ 4
    local bytes = point.x + point.y
    sums.weight = sums.weight + weight
    sums.bytes = sums.bytes + weight * bytes
    sums.time = sums.time + weight * point.time
    sums.bytes_bytes = sums.bytes_bytes + weight * bytes * bytes
    sums.bytes_time = sums.bytes_time + weight * bytes * point.time
  end
  if not nearest then return nil end
  if least < NEAREST then return nearest.time, nearest.spread end
  local doubt = DOUBT_PER_OCTAVE * least
  return line_at(sums, where.x + where.y), math.sqrt(nearest.spread ^ 2 + doubt ^ 2)
end

return surface
