-- Times that a sweep was sure without: what they are as far as the points around them tell (surface.lua). A
-- table made of them says `derived` where it rests on one.
local plan = require "plan"
local surface = require "surface"

local derive = {}

local FEWEST_POINTS = 3        -- of a strategy in a plane, to tell anything
local LEAST_SPREAD = 0.02      -- of a derived time, in log2, beside a point that is sure
local SPREAD_PER_OCTAVE = 0.06 -- more of it, for each doubling from the nearest point

local function log2(number) return math.log(number, 2) end

-- plane and strategy -> the points measured
local function measured_points(records)
  local planes = {}
  for _, record in ipairs(records) do
    local key = table.concat({ record.dtype, record.fusion, record.strategy }, " ")
    planes[key] = planes[key] or {}
    table.insert(planes[key], { x = log2(record.num_tokens), y = log2(record.hidden_size),
      time = log2(record.time_us) })
  end
  return planes
end

-- The times of one TP size that are neither in `records` (rows with a time) nor in `no_time` (records with a
-- reason), of all that the spec asks for: { world_size, dtype, op, mode, fusion, hidden_size, num_tokens,
-- strategy, time_us, spread, placement }, in order.
function derive.times(spec, world_size, records, no_time)
  local known, points, out = {}, measured_points(records), {}
  for _, record in ipairs(records) do known[plan.key(record)] = true end
  for _, entry in ipairs(no_time) do
    known[plan.key(plan.record(entry, entry.strategy, { world_size = world_size }))] = true
  end
  for key, record in pairs(plan.wanted(spec, plan.cells(spec, world_size))) do
    local plane = points[table.concat({ record.dtype, record.fusion, record.strategy }, " ")]
    if not known[key] and not record.skip and plane and #plane >= FEWEST_POINTS then
      local time, _, distance = surface.predict(plane,
        { x = log2(record.num_tokens), y = log2(record.hidden_size) })
      record.time_us, record.placement = 2 ^ time, records[1].placement
      record.spread = math.sqrt(LEAST_SPREAD ^ 2 + (SPREAD_PER_OCTAVE * distance) ^ 2)
      out[#out + 1] = record
    end
  end
  table.sort(out, plan.before)
  return out
end

return derive
