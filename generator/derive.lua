-- Times that a sweep was sure without: what they are as far as the points around them tell (surface.lua). A
-- table made of them says `derived` where it rests on one.
local plan = require "plan"
local surface = require "surface"

local derive = {}

local FEWEST_POINTS = 3        -- of a strategy in a plane, to tell anything
local LEAST_SPREAD = 0.02      -- of a derived time, in log2, beside a point that is sure
local SPREAD_PER_OCTAVE = 0.06 -- more of it, for each doubling from the nearest point

local function log2(number) return math.log(number, 2) end

local function plane_of(record)
  return table.concat({ record.op, record.mode, record.dtype, record.fusion, record.strategy }, " ")
end

-- plane and strategy -> the points measured
local function measured_points(records)
  local planes = {}
  for _, record in ipairs(records) do
    local key = plane_of(record)
    planes[key] = planes[key] or {}
    table.insert(planes[key], { x = log2(record.num_tokens), y = log2(record.hidden_size),
      time = log2(record.time_us) })
  end
  return planes
end

-- Whether a shape lies between the points, on either axis.
local function is_within(points, where)
  for _, axis in ipairs { "x", "y" } do
    local least, most = math.huge, -math.huge
    for _, point in ipairs(points) do
      least, most = math.min(least, point[axis]), math.max(most, point[axis])
    end
    if where[axis] < least or where[axis] > most then return false end
  end
  return true
end

-- plane and strategy -> the points that the bench refused, as `fewer tokens than ranks`: what it refuses goes
-- by one of the two sizes.
local function refused_points(no_time)
  local planes = {}
  for _, entry in ipairs(no_time) do
    if not entry.failed and not entry.skipped then
      local key = plane_of(entry)
      planes[key] = planes[key] or {}
      table.insert(planes[key], { x = log2(entry.num_tokens), y = log2(entry.hidden_size) })
    end
  end
  return planes
end

-- Whether a refused point has the same number of tokens, or the same hidden size, and no measured one lies
-- closer on that line.
local function is_refused(refused, points, where)
  for along, across in pairs { x = "y", y = "x" } do
    local function nearest(list)
      local least = math.huge
      for _, point in ipairs(list) do
        if point[along] == where[along] then
          least = math.min(least, math.abs(point[across] - where[across]))
        end
      end
      return least
    end
    local closest = nearest(refused)
    if closest < math.huge and closest <= nearest(points) then return true end
  end
  return false
end

-- The times of one TP size that are neither in `records` (rows with a time) nor in `no_time` (records with a
-- reason), of all that the spec asks for: { world_size, dtype, op, mode, fusion, hidden_size, num_tokens,
-- strategy, time_us, spread, placement }, in order. What lies beyond the points that were measured, or where
-- the bench refused a neighbour, stays without.
function derive.times(spec, world_size, records, no_time)
  local known, out = {}, {}
  local points, refused = measured_points(records), refused_points(no_time)
  for _, record in ipairs(records) do known[plan.key(record)] = true end
  for _, entry in ipairs(no_time) do
    known[plan.key(plan.record(entry, entry.strategy, { world_size = world_size }))] = true
  end
  for key, record in pairs(plan.wanted(spec, plan.cells(spec, world_size))) do
    local plane = points[plane_of(record)]
    local where = { x = log2(record.num_tokens), y = log2(record.hidden_size) }
    if not known[key] and not record.skip and plane and #plane >= FEWEST_POINTS and is_within(plane, where)
      and not is_refused(refused[plane_of(record)] or {}, plane, where) then
      local time, _, distance = surface.predict(plane, where)
      record.time_us, record.placement = 2 ^ time, records[1].placement
      record.spread = math.sqrt(LEAST_SPREAD ^ 2 + (SPREAD_PER_OCTAVE * distance) ^ 2)
      out[#out + 1] = record
    end
  end
  table.sort(out, plan.before)
  return out
end

return derive
