-- Finds strategies that became slower or faster as a whole between the rows of two sweeps, even if no choice
-- changed. Reads no files; used by diff.
--
-- A strategy's shift is the mean over its cells of log2(new time / old time), without the tenth of the cells
-- at either end; a cell's time is the median over its launches. The drift of the machine is the median of all
-- shifts; it is subtracted from them. Cells of one launch depend on each other, so the variance of a shift is
-- estimated from launches, not from cells: by the jackknife over the launches of both sweeps, each left out
-- once (Efron, 1982, chapter 3). Its distribution is Student's, with one degree of freedom less than the
-- smaller sweep has launches.
local cell_records = require "rows.cell_records"
local ordering = require "base.ordering"
local statistics = require "base.statistics"
local student = require "core.student"

local strategy_drift = {}

local TRIMMED = 0.1    -- of the cells, at either end
local FEWEST_CELLS = 5 -- of a strategy in both sweeps; fewer are no evidence

-- ---- statistics -------------------------------------------------------------------------------

local function trimmed_mean(values)
  table.sort(values)
  local cut = math.floor(TRIMMED * #values)
  local sum = 0
  for i = 1 + cut, #values - cut do sum = sum + values[i] end
  return sum / (#values - 2 * cut)
end

-- ---- the rows ---------------------------------------------------------------------------------

-- strategy -> cell key -> { [launch] = log2 of the time }, and the largest number of launches.
local function levels_of(records)
  local levels, most = {}, 0
  for _, record in ipairs(records) do
    local by_launch = {}
    for launch, time_us in ipairs(record.launches or {}) do
      if time_us then by_launch[launch], most = math.log(time_us, 2), math.max(most, launch) end
    end
    if next(by_launch) then
      levels[record.strategy] = levels[record.strategy] or {}
      levels[record.strategy][cell_records.key(cell_records.record(record))] = by_launch
    end
  end
  return levels, most
end

-- The median over the launches except `without` (nil: over all); nil if that is the only one.
local function level(by_launch, without)
  local values = {}
  for launch, value in pairs(by_launch) do
    if launch ~= without then values[#values + 1] = value end
  end
  return statistics.median(values)
end

-- strategy -> its shift without the drift, and the number of cells of which it is the mean.
local function estimate(old, new, old_without, new_without)
  local out, all, cells = {}, {}, {}
  for strategy, of_old in pairs(old) do
    local differences = {}
    for key, by_launch in pairs(new[strategy] or {}) do
      local before = of_old[key] and level(of_old[key], old_without)
      local after = level(by_launch, new_without)
      if before and after then differences[#differences + 1] = after - before end
    end
    if #differences >= FEWEST_CELLS then
      out[strategy], cells[strategy] = trimmed_mean(differences), #differences
      all[#all + 1] = out[strategy]
    end
  end
  local drift = statistics.median(all) or 0
  for strategy, shift in pairs(out) do out[strategy] = shift - drift end
  return out, cells, drift
end

-- Adds the jackknife's variances over the launches of one sweep to `variances`. `without`: launch -> estimate
-- without it.
local function add_jackknife(variances, launches, without)
  local sums, squares = {}, {}
  for launch = 1, launches do
    for strategy, shift in pairs(without(launch)) do
      sums[strategy] = (sums[strategy] or 0) + shift
      squares[strategy] = (squares[strategy] or 0) + shift * shift
    end
  end
  for strategy, sum in pairs(sums) do
    local spread = math.max(0, squares[strategy] - sum * sum / launches)
    variances[strategy] = (variances[strategy] or 0) + (launches - 1) / launches * spread
  end
end

-- Compares two lists of records (of core.rows). options: threshold, the share that does not matter; alpha,
-- the chance of any false alarm. Returns, by strategy name, { strategy, shift (a share: 0.1 is 10% slower
-- than the others became), cells, p, verdict = "slower", "faster" or nil }, and the drift that all share; nil
-- if there are fewer than three launches or fewer than two strategies.
function strategy_drift.compare(old_records, new_records, options)
  local old, old_launches = levels_of(old_records)
  local new, new_launches = levels_of(new_records)
  local freedom = math.min(old_launches, new_launches) - 1
  if freedom < 2 then return nil end
  local found, cells, drift = estimate(old, new)
  local variances, list = {}, {}
  add_jackknife(variances, old_launches, function(launch) return (estimate(old, new, launch)) end)
  add_jackknife(variances, new_launches, function(launch) return (estimate(old, new, nil, launch)) end)
  for strategy, shift in pairs(found) do
    local beyond = math.abs(shift) - math.log(1 + options.threshold, 2)
    local spread = math.sqrt(variances[strategy])
    local tail = beyond <= 0 and 1 or spread == 0 and 0 or student.upper_tail(beyond / spread, freedom)
    list[#list + 1] = { strategy = strategy, shift = 2 ^ shift - 1, cells = cells[strategy],
      p = math.min(1, 2 * tail) }
  end
  if #list < 2 then return nil end
  for _, entry in ipairs(statistics.holm(list, options.alpha, #list)) do
    entry.verdict = entry.shift > 0 and "slower" or "faster"
  end
  return ordering.sort(list, ordering.by "strategy"), 2 ^ drift - 1
end

return strategy_drift
