-- Launches to rows: what several launches of the bench said of one cell and strategy, as the row of a file.
--
-- Launches of one binary differ, by more than the calls within one: pages lie elsewhere, ranks run on other
-- cores. So the time of a row is the median of the launches' medians, and its interval what the launches
-- allow: from the lowest end to the highest of the launches' own intervals, and from six launches on the
-- nonparametric 95% interval of the median over launches. Each launch's median stays in the row, in the
-- launch's place, so that two strategies can be compared launch by launch: what slows a launch slows both.
local plan = require "rows.cells"
local sorted_keys = require "base.sorted_keys"
local statistics = require "base.statistics"

local visits = {}

visits.MOST_LAUNCHES = 16 -- that a row can tell of

local function field(records, name)
  local out = {}
  for i, record in ipairs(records) do out[i] = record[name] end
  return out
end

-- The median of a number that not every backend tells; nil where none does.
local function median_told(records, name)
  local told = {}
  for _, record in ipairs(records) do told[#told + 1] = record[name] end
  return statistics.median(told)
end

local function sum(list)
  local total = 0
  for _, value in ipairs(list) do total = total + value end
  return total
end

-- The interval of the median over the launches; see above.
local function interval(records)
  local count = #records
  if count < 6 then
    return math.min(table.unpack(field(records, "low_us"))), math.max(table.unpack(field(records, "high_us")))
  end
  local sorted = field(records, "time_us")
  table.sort(sorted)
  local half_width = 0.98 * math.sqrt(count) -- 1.96 standard deviations of a binomial(count, 1/2)
  local low = math.max(1, math.floor(count / 2 - half_width))
  local high = math.min(count, math.ceil(count / 2 + 1 + half_width))
  return sorted[math.tointeger(low)], sorted[math.tointeger(high)]
end

-- The bits that all launches agree on; else that they vary.
local function common_bits(records)
  for _, record in ipairs(records) do
    if record.bits ~= records[1].bits then return "varies" end
  end
  return records[1].bits
end

-- The median of each launch, false where there is none; nil where all of them are past those that a row can
-- tell of.
local function launches(by_launch)
  local out, last = {}, 0
  for launch in pairs(by_launch) do
    if launch <= visits.MOST_LAUNCHES then last = math.max(last, launch) end
  end
  for launch = 1, last do out[launch] = by_launch[launch] and by_launch[launch].time_us or false end
  return last > 0 and out or nil
end

-- The row of one cell and strategy from { [launch] = record }, at least one.
function visits.row(by_launch)
  local records = {}
  for i, launch in ipairs(sorted_keys(by_launch)) do records[i] = by_launch[launch] end
  local first = records[1]
  local low, high = interval(records)
  local time = statistics.median(field(records, "time_us"))
  return plan.record(first, first.strategy, {
    size = first.size,
    time_us = time,
    low_us = math.min(low, time),
    high_us = math.max(high, time),
    samples = sum(field(records, "samples")),
    min_us = math.min(table.unpack(field(records, "min_us"))),
    p95_us = statistics.median(field(records, "p95_us")),
    p99_us = statistics.median(field(records, "p99_us")),
    skew_us = median_told(records, "skew_us"),
    bound_us = statistics.median(field(records, "bound_us")),
    floor_us = median_told(records, "floor_us"),
    calls = median_told(records, "calls"),
    accumulate = first.accumulate,
    placement = first.placement,
    launches = launches(by_launch),
    bits = common_bits(records),
  })
end

-- The other way round: { [launch] = record } of a row. Each launch has its own median; what a row tells of
-- all launches alone, each has the same of, and its share of the samples.
function visits.split(row)
  local times, count = row.launches or { row.time_us }, 0
  for _, time in ipairs(times) do count = count + (time and 1 or 0) end
  local out, left = {}, row.samples
  for launch, time in ipairs(times) do
    if time then
      local samples = math.max(1, left // count)
      local record = plan.record(row, row.strategy, { time_us = time, samples = samples })
      for name, value in pairs(row) do
        if record[name] == nil and name ~= "launches" then record[name] = value end
      end
      record.low_us, record.high_us = math.min(row.low_us, time), math.max(row.high_us, time)
      out[launch], left, count = record, left - samples, count - 1
    end
  end
  return out
end

return visits
