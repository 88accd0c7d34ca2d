-- The expected gain of a visit of a point, as a share of the best time: the model of explore.lua. The
-- variation between launches and the error of predictions from other points are estimated from visits.
local sweep_points = require "sweep.points"
local student = require "core.student"
local statistics = require "base.statistics"
local interpolation = require "choose.interpolation"

local count = sweep_points.count
local ranked = sweep_points.ranked
local rivals = sweep_points.rivals
local scatter = sweep_points.scatter

local expected_gain = {}

local LAUNCH_SPREAD = 0.03    -- prior standard deviation of a ratio of two times in one launch, in log2
local DOUBT_PER_OCTAVE = 0.1  -- prior error of a ratio that is predicted from a doubling away, in log2
local PRIOR_WEIGHT = 8        -- weight of these two, in observations
local DEVIATIONS = 1.4826     -- standard deviation over median deviation, of a normal distribution

-- The mean of max(0, d) for a normal d.
local function expected_excess(mean, spread)
  if spread <= 0 then return math.max(0, mean) end
  local z = mean / spread
  local below, density = student.upper_tail(-z), math.exp(-z * z / 2)
  return mean * below + spread * density / math.sqrt(2 * math.pi)
end

-- The expected gain of one more comparison of two strategies, as a share of the best time. `slower`: the
-- estimated log2 of the choice's time over the other's; `spread`: its standard deviation; `noise`: the
-- standard deviation of the comparison.
local function gain_of_comparison(slower, spread, noise)
  local moves = spread * spread / math.sqrt(spread * spread + noise * noise) -- change of the estimate
  return math.log(2) * (expected_excess(slower, moves) - math.max(0, slower))
end

-- strategy -> its measured points in the plane
function expected_gain.measured(plane)
  local points = {}
  for _, point in ipairs(plane.points) do
    for _, entry in ipairs(ranked(point)) do
      local list = points[entry.name] or {}
      points[entry.name] = list
      list[#list + 1] = { x = point.x, y = point.y, time = entry.time, of = point }
    end
  end
  return points
end

-- Estimates self.noise, the standard deviation of one launch's ratio of two times, in log2.
local function learn_noise(self)
  local squares, freedom = PRIOR_WEIGHT * LAUNCH_SPREAD ^ 2, PRIOR_WEIGHT
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      for _, rival in ipairs(rivals(point)) do
        local sum, both = scatter(point, rival.name, ranked(point)[1].name)
        if both > 1 then squares, freedom = squares + sum, freedom + both - 1 end
      end
    end
  end
  self.noise = math.sqrt(squares / freedom)
end

-- The point of a list that is of `point`.
local function entry_of(list, point)
  for _, entry in ipairs(list) do
    if entry.of == point then return entry end
  end
end

-- The error of a rival's ratio to the best at a point as the other points predict it, in log2 for each
-- doubling of distance; nil without others. Within a doubling the error counts as noise.
local function missed(points, point, rival)
  local best = ranked(point)[1]
  local function predict(name)
    return interpolation.predict(points[name], point, entry_of(points[name], point))
  end
  local time_of_best, _, distance = predict(best.name)
  local time_of_rival = predict(rival.name)
  if not time_of_best or not time_of_rival then return nil end
  return math.abs((time_of_rival - time_of_best) - (rival.time - best.time)) / math.max(1, distance)
end

-- Estimates self.doubt, the standard deviation of a ratio that is predicted from a doubling away: from the
-- median error, because a few points lie beyond a kink, and points near it are visited anyway.
local function learn_doubt(self)
  local all = {}
  for i = 1, PRIOR_WEIGHT do all[i] = DOUBT_PER_OCTAVE / DEVIATIONS end
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      for _, rival in ipairs(rivals(point)) do all[#all + 1] = missed(plane.measured, point, rival) end
    end
  end
  self.doubt = DEVIATIONS * statistics.lower_median(all)
end

function expected_gain.learn(self)
  if not self.stale then return end
  for _, plane in ipairs(self.planes) do
    if not plane.measured then plane.measured = expected_gain.measured(plane) end
  end
  local noise, doubt = self.noise, self.doubt
  learn_noise(self)
  learn_doubt(self)
  self.stale = false
  if self.noise == noise and self.doubt == doubt then return end
  for _, plane in ipairs(self.planes) do plane.gain = nil end -- all expected gains have changed
end

-- The expected gain of one more visit of a visited point: the highest of its rivals'.
function expected_gain.of_another_visit(self, point)
  local best, most = ranked(point)[1], 0
  for _, rival in ipairs(rivals(point)) do
    local squares, both = scatter(point, rival.name, best.name)
    local freedom = PRIOR_WEIGHT + math.max(0, both - 1)
    local noise = math.sqrt((PRIOR_WEIGHT * self.noise ^ 2 + squares) / freedom)
    local spread = noise / math.sqrt(math.max(1, both))
    most = math.max(most, gain_of_comparison(best.time - rival.time, spread, noise))
  end
  return most
end

-- strategy -> { time, nearest, distance } predicted at a point, without strategies that do not support it.
local function predictions(points, point)
  local out = {}
  for name, list in pairs(points) do
    if not point.without[name] then
      local time, nearest, distance = interpolation.predict(list, point)
      out[name] = { time = time, nearest = nearest, distance = distance }
    end
  end
  return out
end

local function fastest(at)
  local best
  for name, entry in pairs(at) do
    local before = best and at[best].time or math.huge
    if entry.time < before or (entry.time == before and name < best) then best = name end
  end
  return best
end

-- The point of the grid that a lookup returns for `point`.
local function node_of(plane, point)
  if point.on_grid then return point end
  local nearest, least
  for _, node in ipairs(plane.points) do
    local distance = node.on_grid and interpolation.distance(node, point)
    if distance and (not least or distance < least) then nearest, least = node, distance end
  end
  return nearest or point
end

-- The expected gain of the first visit of a point: the highest of the strategies that the table does not
-- choose there.
function expected_gain.of_first_visit(self, plane, point)
  local at = predictions(plane.measured, point)
  local taken = fastest(predictions(plane.measured, node_of(plane, point)))
  local choice, most = taken and at[taken], 0
  if not choice then return 1 end -- no prediction, or the choice does not support this point
  for name, entry in pairs(at) do
    if name ~= taken then
      local launches = count(entry.nearest.of.visits[name])
      local spread = math.sqrt(self.noise ^ 2 / launches + (self.doubt * entry.distance) ^ 2)
      most = math.max(most, gain_of_comparison(choice.time - entry.time, spread, self.noise))
    end
  end
  return most
end

return expected_gain
