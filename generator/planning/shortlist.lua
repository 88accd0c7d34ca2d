-- The strategies that may win at a point, predicted from the measured points. The variation between launches
-- and the error of predictions are estimated from visits.
local sequences = require "base.sequences"
local sweep_points = require "planning.points"
local statistics = require "base.statistics"
local interpolation = require "choose.interpolation"

local ranked = sweep_points.ranked
local rivals = sweep_points.rivals
local scatter = sweep_points.scatter

local shortlist = {}

local LAUNCH_SPREAD = 0.03    -- prior standard deviation of a ratio of two times in one launch, in log2
local ERROR_PER_OCTAVE = 0.1  -- prior error of a ratio that is predicted from a doubling away, in log2
local PRIOR_WEIGHT = 8        -- weight of these two, in observations
local UNLIKELY = 2.6          -- standard deviations; a normal number is beyond them in 0.5 % of the cases
local DEVIATIONS = 1.4826     -- standard deviation over median deviation, of a normal distribution

-- strategy -> its measured points in the plane
local function measured_points(plane)
  local points = {}
  for _, point in ipairs(plane.points) do
    for _, entry in ipairs(ranked(point)) do
      table.insert(sequences.at(points, entry.name),
        { x = point.x, y = point.y, time = entry.time, of = point })
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
  return sequences.find(list, function(entry) return entry.of == point end)
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

-- Estimates self.error_per_octave, the standard deviation of a ratio that is predicted from a doubling away:
-- from the median error, because a few points lie beyond a kink, and points near it are visited anyway.
local function learn_error(self)
  local all = {}
  for i = 1, PRIOR_WEIGHT do all[i] = ERROR_PER_OCTAVE / DEVIATIONS end
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      for _, rival in ipairs(rivals(point)) do all[#all + 1] = missed(plane.measured, point, rival) end
    end
  end
  self.error_per_octave = DEVIATIONS * statistics.lower_median(all)
end

local function learn(self)
  if not self.stale then return end
  for _, plane in ipairs(self.planes) do
    if not plane.measured then plane.measured = measured_points(plane) end
  end
  learn_noise(self)
  learn_error(self)
  self.stale = false
end

-- strategy -> { time, distance } predicted at a point, without strategies that do not support it.
local function predictions(point)
  if point.predicted then return point.predicted end
  local out = {}
  for name, list in pairs(point.plane.measured) do
    if not point.without[name] then
      local time, _, distance = interpolation.predict(list, point)
      out[name] = { time = time, distance = distance }
    end
  end
  point.predicted = out
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

-- The strategies that may win at a point of the planner (explore.lua), as a set: those predicted to be slower
-- than the fastest by less than a rival (points.rivals) or the error of the predictions, and those without a
-- prediction.
function shortlist.at(self, point)
  learn(self)
  local at, may_win = predictions(point), {}
  local best = at[fastest(at)]
  local function variance(entry) return self.noise ^ 2 + (self.error_per_octave * entry.distance) ^ 2 end
  for _, name in ipairs(self.spec.strategies) do
    local entry = at[name]
    may_win[name] = not entry or entry.time - best.time <= math.max(sweep_points.RIVAL_LEVEL,
      UNLIKELY * math.sqrt(variance(entry) + variance(best)))
  end
  return may_win
end

-- The standard deviation of one launch's time of a strategy, in log2: that of a ratio of two times has two of
-- them.
function shortlist.launch_noise(self)
  learn(self)
  return self.noise / math.sqrt(2)
end

-- log2 of the expected time of a strategy at a point, and the standard deviation of its error: from its own
-- launches, or from the points around; nil without any.
function shortlist.expect(self, point, name)
  learn(self)
  for _, entry in ipairs(ranked(point)) do
    if entry.name == name then
      return entry.time, shortlist.launch_noise(self) / math.sqrt(sequences.count(point.visits[name]))
    end
  end
  local list = point.plane.measured[name]
  if not list then return nil end
  local time, _, distance = interpolation.predict(list, point)
  return time, math.sqrt(self.noise ^ 2 + (self.error_per_octave * distance) ^ 2) / math.sqrt(2)
end

-- Drops what depends on the results at a point.
function shortlist.forget(self, point)
  self.stale, point.plane.measured = true, nil
  for _, other in ipairs(point.plane.points) do other.predicted = nil end
  for _, plane in ipairs(self.planes) do
    for _, other in ipairs(plane.points) do other.may_win = nil end
  end
end

return shortlist
