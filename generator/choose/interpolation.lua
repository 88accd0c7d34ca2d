-- Estimates a strategy's time at unmeasured points from its measured points.
--
-- A point is { x, y, time } of log2(tokens), log2(hidden size), log2(time). A prediction is the line of log
-- time over log bytes (x + y) through the nearest points, each with the weight 1 / distance^4, so that it
-- equals the time of a measured point. (Shepard's interpolation, with a local line in place of a mean.) Two
-- strategies that were measured at the same points are predicted with the same weights, so most of their
-- prediction errors are equal.
local interpolation = {}

local NEAREST = 1e-3 -- the least distance: closer points count as this far away

function interpolation.distance(a, b)
  local dx, dy = a.x - b.x, a.y - b.y
  return math.sqrt(dx * dx + dy * dy)
end

-- Weighted least squares of time = a + b * bytes, from weighted means of both, of the squared bytes, and of
-- the product; returns the value at `bytes`.
local function line_at(mean_bytes, mean_time, mean_square, mean_product, bytes)
  local variance = mean_square - mean_bytes * mean_bytes
  local slope = 0
  if variance > 1e-6 then slope = (mean_product - mean_bytes * mean_time) / variance end
  return mean_time + math.max(0, math.min(1.2, slope)) * (bytes - mean_bytes)
end

-- Returns log2(time) at `where` ({ x, y }), and the nearest point and its distance (0 at a point); nil
-- without points. `except`: a point that is left out. `generate` spends most of its time here, hence squares
-- of distances and local variables.
function interpolation.predict(points, where, except)
  local x, y = where.x, where.y
  local weights, bytes_sum, times, squares, products = 0, 0, 0, 0, 0
  local nearest, least = nil, math.huge
  for i = 1, #points do
    local point = points[i]
    if point ~= except then
      local px, py, time = point.x, point.y, point.time
      local dx, dy = px - x, py - y
      local square = dx * dx + dy * dy
      if square < least then nearest, least = point, square end
      if square < NEAREST * NEAREST then square = NEAREST * NEAREST end
      local bytes, weight = px + py, 1 / (square * square)
      local weighted = weight * bytes
      weights, bytes_sum = weights + weight, bytes_sum + weighted
      times, squares, products = times + weight * time, squares + weighted * bytes, products + weighted * time
    end
  end
  if not nearest then return nil end
  if least < NEAREST * NEAREST then return nearest.time, nearest, 0 end
  return line_at(bytes_sum / weights, times / weights, squares / weights, products / weights, x + y), nearest,
    math.sqrt(least)
end

return interpolation
