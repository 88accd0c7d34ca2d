-- What a strategy's time is where it was not measured: from the points where it was.
--
-- A point is { x, y, time } of log2(tokens), log2(hidden size), log2(time). A prediction is the line of log
-- time over log bytes (x + y) through the nearest points, each with the weight 1 / distance^4, so that it
-- goes through what was measured. (Shepard's interpolation, with a local line in place of a mean.) Two
-- strategies that were measured at the same points are predicted with the same weights; what the prediction
-- of one misses, that of the other mostly misses, too.
local surface = {}

local NEAREST = 1e-3 -- closer points are taken as this far away

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

-- Returns log2(time) at `where` ({ x, y }), and the nearest point and its distance (0 at a point); nil
-- without points. `except`: a point that is left out.
function surface.predict(points, where, except)
  local sums = { weight = 0, bytes = 0, time = 0, bytes_bytes = 0, bytes_time = 0 }
  local nearest, least = nil, math.huge
  for _, point in ipairs(points) do
    if point ~= except then
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
  end
  if not nearest then return nil end
  if least < NEAREST then return nearest.time, nearest, 0 end
  return line_at(sums, where.x + where.y), nearest, least
end

return surface
