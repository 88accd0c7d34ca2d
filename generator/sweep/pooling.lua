-- Launches to rows: the results of several launches of the bench for one cell and strategy, as one row.
--
-- Launches of one binary differ by more than the calls within one: pages lie elsewhere, ranks run on other
-- cores. The time of a row is therefore the median of the launches' medians. Its interval is the union of the
-- launches' own intervals; with six launches or more, the nonparametric 95 % interval of the median over
-- launches. The row keeps each launch's median, in the launch's place, so that two strategies can be compared
-- launch by launch: what slows a launch slows both.
local cell_records = require "rows.cell_records"
local columns = require "lists.columns"
local rows = require "core.rows"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local statistics = require "base.statistics"

local field = sequences.field

local pooling = {}

local function sum(list)
  local total = 0
  for _, value in ipairs(list) do total = total + value end
  return total
end

-- The value of a row from those of its launches, of which some may be nil; nil if all are.
local pools = {
  median = statistics.median,
  least = function(list) return #list > 0 and math.min(table.unpack(list)) or nil end,
  sum = function(list) return #list > 0 and sum(list) or nil end,
}

-- The interval of the median over the launches; see above.
local function interval(records)
  if #records < 6 then
    return pools.least(field(records, "low_us")), math.max(table.unpack(field(records, "high_us")))
  end
  return statistics.median_interval(field(records, "time_us"))
end

-- The hash of the result's bits if all launches have the same; else "varies".
local function common_bits(records)
  local bits = records[1].bits
  return sequences.all(records, function(record) return record.bits == bits end) and bits or "varies"
end

-- The median of each launch, false without one; nil if no launch is among those that a row can hold.
local function launches(by_launch)
  local out, last = {}, 0
  for launch in pairs(by_launch) do
    if launch <= rows.LAUNCHES_MAX then last = math.max(last, launch) end
  end
  for launch = 1, last do out[launch] = by_launch[launch] and by_launch[launch].time_us or false end
  return last > 0 and out or nil
end

-- The row of one cell and strategy from { [launch] = record }, at least one.
function pooling.row(by_launch)
  local records = sequences.map(sorted_keys(by_launch), function(launch) return by_launch[launch] end)
  local first = records[1]
  local low, high = interval(records)
  local time = statistics.median(field(records, "time_us"))
  local row = cell_records.record(first, first.strategy, {
    size = first.size,
    time_us = time,
    low_us = math.min(low, time),
    high_us = math.max(high, time),
    accumulate = first.accumulate,
    placement = first.placement,
    launches = launches(by_launch),
    bits = common_bits(records),
  })
  for _, column in ipairs(columns) do
    if column.pool then row[column.key] = pools[column.pool](field(records, column.key)) end
  end
  return row
end

-- The reverse: { [launch] = record } of a row. Each launch has its own median and its share of the samples;
-- the other columns are the same for all.
function pooling.split(row)
  local times = row.launches or { row.time_us }
  local out, left, count = {}, row.samples, #sequences.map(times, function(time) return time or nil end)
  for launch, time in ipairs(times) do
    if time then
      local samples = math.max(1, left // count)
      local record = cell_records.record(row, row.strategy, { time_us = time, samples = samples })
      for name, value in pairs(row) do
        if record[name] == nil and name ~= "launches" then record[name] = value end
      end
      record.low_us, record.high_us = math.min(row.low_us, time), math.max(row.high_us, time)
      out[launch], left, count = record, left - samples, count - 1
    end
  end
  return out
end

return pooling
