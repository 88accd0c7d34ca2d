-- The changes between two tables, their losses, and whether the data supports them. Used by diff and check;
-- prints nothing.
--
-- changes.compare(old, new, evidence, options) -> { changes, compared, changed, material, tested = whether
-- any was, alpha, threshold, untested }. `evidence` (nil: none) is called if any cell changed, and returns
-- rows (core.rows), and a table with old_loss and new_loss in each cell, the losses of the choices over the
-- cell's bin by these rows; either may be nil. A change has the cell's key, old and new (choices of
-- core.table, or nil), and
--   lost      the time that the old choice takes more, as a share of the new one's, over the bin for which it
--             was chosen; without such losses, at the cell's own shape; nil: unknown
--   p         probability of so large a difference where there is none; nil without intervals
--   verdict   "better"     the old choice loses time, and the data supports that
--             "worse"      the new choice does
--             "noise"      the difference is within noise
--             "unknown"    there are no times of both
--             "added", "removed"   only one table has a choice
-- "better" and "worse" are material.
--
-- The test: both times are taken as normal, with the standard errors that the 95% intervals at the cell's own
-- shape imply, or that are typical for the changed cells if that is more; the hypothesis is that neither
-- choice is slower than the other by more than `threshold`. Since the choices were made among k strategies
-- from the same rows, the probability is multiplied by k - 1, and by two for the two directions.
--
-- False alarms: among a thousand cells some differ by chance. Holm's method keeps the probability of *any*
-- wrongly material cell below `alpha`. Benjamini and Hochberg's method would only limit the share of false
-- ones, but a single one fails a build. Holm's method also holds for cells that depend on each other, such as
-- neighbours of one launch. The number of tests is that of all cells in both tables, since the changed ones
-- were found among all.
--
-- Rows without intervals (of other tools) cannot be tested: there a loss of `untested` or more is material.
local core_rows = require "core.rows"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"
local statistics = require "base.statistics"
local student = require "core.student"
local tables = require "core.table"

local changes = {}

changes.defaults = { alpha = 0.05, threshold = 0.02, untested = 0.05 }
local DEVIATIONS_OF_95_PERCENT = 1.959963984540054

-- ---- the test ---------------------------------------------------------------------------------

local function own_deviation(row)
  return row.high and (row.high - row.low) / (2 * DEVIATIONS_OF_95_PERCENT)
end

-- The median standard error of the changed cells' rows, as a share of the time. Some of many intervals are
-- too narrow by chance, and these would give false alarms.
local function typical_share(list)
  local shares = {}
  for _, change in ipairs(list) do
    for _, row in pairs { change.old_times, change.new_times } do
      local own = own_deviation(row)
      if own then shares[#shares + 1] = own / row.time end
    end
  end
  return statistics.lower_median(shares) or 0
end

local function deviation(row, typical)
  local own = own_deviation(row)
  return own and math.max(own, typical * row.time)
end

-- The probability of so large a difference of `slow` and `fast`, if the true difference is at most the
-- threshold.
local function tail(slow, fast, options)
  local factor = 1 + options.threshold
  local distance = slow.time - factor * fast.time
  local spread = math.sqrt(deviation(slow, options.typical) ^ 2
    + (factor * deviation(fast, options.typical)) ^ 2)
  if spread == 0 then return distance > 0 and 0 or 1 end
  return student.upper_tail(distance / spread)
end

-- The losses of both choices over the cell's bin; rows of other tools have no mode.
local function judged_at(change, judged)
  local other = setmetatable({ mode = "unknown" }, { __index = change })
  local cell = judged and (judged:find(change) or judged:find(other))
  if cell and cell.new_loss then return cell.old_loss, cell.new_loss end
end

-- The times and their interval, multiplied by `factor`.
local function stretched(times, factor)
  return { time = factor * times.time, low = times.low and factor * times.low,
    high = times.high and factor * times.high }
end

-- The test by the rows of the cell, and by the losses of the choices over its bin.
local function test_by_rows(change, judged, options)
  local old, new = change.old_times, change.new_times
  if not (old and new) then return end
  local old_loss, new_loss = judged_at(change, judged)
  if old_loss then
    old = stretched(old, new.time * (1 + old_loss) / (1 + new_loss) / old.time)
  end
  change.lost = old.time / new.time - 1
  if not (old.high and new.high) then return end
  local p = math.min(tail(old, new, options), tail(new, old, options))
  change.p = math.min(1, 2 * math.max(1, change.row_count - 1) * p)
end

-- The test without rows: by the figures of the new table's runner-up, if that was the old choice. The
-- difference of two strategies that tie is noise. Predicted times are no evidence.
local function test_by_table(change)
  if change.new.runner_up ~= change.old.strategy or not change.new.margin or change.new.predicted then
    return
  end
  change.lost = change.new.margin
  local new = change.new
  change.p = new.confidence and (new.state == "tie" and 1 or math.min(1, 2 * (1 - new.confidence))) or nil
end

local function verdict_of(change, options)
  if not change.old then return "added" end
  if not change.new then return "removed" end
  if not change.lost then return "unknown" end
  local is_distinct = change.supported
  if not change.p then is_distinct = math.abs(change.lost) >= options.untested end
  if not is_distinct then return "noise" end
  return change.lost > 0 and "better" or "worse"
end

function changes.is_material(change) return change.verdict == "better" or change.verdict == "worse" end

-- See the head of this file.
function changes.compare(old, new, evidence, options)
  options = setmetatable(options or {}, { __index = changes.defaults })
  local list, compared = old:changes(new)
  local result = { changes = list, compared = compared, changed = #list, material = 0, alpha = options.alpha,
    threshold = options.threshold, untested = options.untested }
  local rows, judged
  if #list > 0 and evidence then rows, judged = evidence() end
  if rows then tables.times(rows, list) end
  local test = { threshold = options.threshold, typical = typical_share(list) }
  for _, change in ipairs(list) do
    if change.old and change.new then
      if change.row_count then test_by_rows(change, judged, test) else test_by_table(change) end
    end
  end
  for _, change in ipairs(statistics.holm(list, options.alpha, compared)) do change.supported = true end
  for _, change in ipairs(list) do
    change.verdict = verdict_of(change, options)
    result.tested = result.tested or change.p ~= nil
    if changes.is_material(change) then result.material = result.material + 1 end
  end
  return result
end

-- ---- in words ---------------------------------------------------------------------------------

changes.words = {
  better = "the old choice loses time",
  worse = "the new choice loses time",
  noise = "within noise",
  unknown = "no times of both",
  added = "had no choice before",
  removed = "has no choice any more",
}

function changes.cell_in_words(change)
  local by_bytes = change.hidden_size == core_rows.HIDDEN_SIZE_NONE
  local shape = by_bytes and change.num_tokens .. " bytes"
    or "hidden " .. change.hidden_size .. ", " .. change.num_tokens .. " tokens"
  local splits = change.splits and " " .. change.splits or ""
  local words = rank_placement.words(change.world_size, change.nodes)
  return words .. " " .. change.fusion .. " " .. change.dtype .. " " .. change.op ..
    splits .. " " .. change.mode .. ", " .. shape
end

function changes.strategy(cell)
  if not cell then return "unmeasured" end
  return cell.strategy .. (cell.predicted and " (predicted)" or "")
end

function changes.percent(share) return share and ("%+.1f%%"):format(100 * share) or "unknown" end

-- The strategies that became slower or faster as a whole (strategy_drift.lua), those that became slower
-- first.
function changes.shifted(result)
  return sequences.join({ "slower", "faster" }, function(verdict)
    return sequences.filter(result.strategies or {}, function(entry) return entry.verdict == verdict end)
  end)
end

function changes.shift_in_words(entry)
  return ("%s: %.1f%% %s than the other strategies became, over %d cells"):format(entry.strategy,
    100 * math.abs(entry.shift), entry.verdict, entry.cells)
end

-- The summary of a result, in one line.
function changes.sum(result)
  local words = ("%d of %d cells differ"):format(result.changed, math.max(result.compared, result.changed))
  if result.changed == 0 then return words end
  local sure = ("at most %g%% that any is a false alarm"):format(100 * result.alpha)
  if not result.tested then
    sure = ("without intervals of the times a loss of %g%% counts"):format(100 * result.untested)
  end
  return ("%s, %d of them materially (%s)"):format(words, result.material, sure)
end

return changes
