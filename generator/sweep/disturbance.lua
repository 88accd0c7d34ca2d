-- Disturbed results: the samples of a strategy in one launch scatter so far that their median is unknown, for
-- example because another guest of the machine ran meanwhile.
--
-- A result is disturbed if the ends of the interval of its median differ by a factor of LEAST_RATIO or more,
-- and by far more than is usual in its regime. A sweep measures it again, once, if the strategy may win, and
-- keeps the narrower interval (launches.lua). A row is marked in its provenance if half of its launches or
-- more are disturbed even so; fewer do not move its time, which is the median over launches.
local cell_records = require "rows.cell_records"
local lists = require "lists.lists"
local points = require "planning.points"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local statistics = require "base.statistics"

local disturbance = {}
disturbance.__index = disturbance

local LEAST_RATIO = 2
local USUAL_WIDTHS = 5 -- widths of the usual interval, on a logarithmic scale
local ENOUGH = 8       -- results, so that the usual width is known before anything is measured again

-- The width of a record's interval, on a logarithmic scale.
local function width(record)
  return record.low_us > 0 and math.log(record.high_us / record.low_us) or math.huge
end

-- The results of a regime.
function disturbance.new() return setmetatable({ widths = {} }, disturbance) end

-- Enters the rows of a visit.
function disturbance:take(rows)
  for _, record in ipairs(rows) do table.insert(self.widths, width(record)) end
end

function disturbance:is_disturbed(record)
  local of_record = width(record)
  if of_record < math.log(LEAST_RATIO) then return false end
  return of_record >= USUAL_WIDTHS * (statistics.median(self.widths) or 0)
end

-- The strategies of a visit's rows that are to be measured again.
function disturbance:to_repeat(rows)
  local best_us = math.huge
  if #self.widths < ENOUGH then return {} end
  for _, record in ipairs(rows) do
    if lists.may_win(record.strategy) then best_us = math.min(best_us, record.time_us) end
  end
  return sequences.map(rows, function(record)
    local may_win = lists.may_win(record.strategy) and record.low_us <= points.RIVAL_RATIO * best_us
    return may_win and self:is_disturbed(record) and record.strategy or nil
  end)
end

-- Enters the results of a repeated measurement, { rows, no_time }, into the first one: the narrower interval
-- of both stays. A strategy that has no time now, such as one with a wrong result, has none.
function disturbance.combine(result, repeated)
  local by_strategy, rows = {}, {}
  for _, record in ipairs(repeated.rows) do by_strategy[record.strategy] = record end
  for _, record in ipairs(repeated.no_time) do by_strategy[record.strategy] = record end
  for _, record in ipairs(result.rows) do
    local other = by_strategy[record.strategy]
    if other and other.reason then
      table.insert(result.no_time, other)
    else
      local bits = other and other.bits ~= record.bits and "varies" or record.bits
      if other and width(other) < width(record) then record = other end
      record.bits = bits
      rows[#rows + 1] = record
    end
  end
  result.rows = rows
end

local fields = { "dtype", "op", "mode", "fusion", "hidden_size", "num_tokens", "strategy", "low_us",
  "high_us", "samples" }

-- The marks of the rows `all` (key -> row), in their order: of those with visits in the regime, and of those
-- that stay, which earlier marks (nil: none) name. `ranks`: { world_size, nodes } of all rows.
function disturbance.marks(regime, all, earlier, ranks)
  local out = {}
  for key, by_launch in pairs(regime.visits) do
    local disturbed, launches = 0, sequences.count(by_launch)
    for _, record in pairs(by_launch) do
      if regime.disturbance:is_disturbed(record) then disturbed = disturbed + 1 end
    end
    if 2 * disturbed >= launches then out[key] = all[key] end
  end
  for _, mark in ipairs(earlier or {}) do
    local key = cell_records.key(cell_records.record(mark, mark.strategy, ranks))
    if all[key] and not regime.visits[key] then out[key] = all[key] end
  end
  local marked = sequences.map(sorted_keys(out), function(key) return out[key] end)
  table.sort(marked, cell_records.before)
  return sequences.map(marked, function(row) return sequences.pick(row, fields) end)
end

return disturbance
