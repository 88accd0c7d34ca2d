-- Statistics of lists of numbers, and distributions. The lists are not changed.
local statistics = {}

-- Sorted copy.
local function sorted(values)
  local ordered = table.move(values, 1, #values, 1, {})
  table.sort(ordered)
  return ordered
end

-- The median; of an even number of values the mean of the two in the middle, of no values nil.
function statistics.median(values)
  if #values == 0 then return nil end
  local ordered = sorted(values)
  return (ordered[(#ordered + 1) // 2] + ordered[#ordered // 2 + 1]) / 2
end

-- The median; of an even number of values the lower one of the two in the middle, so that it is one of them.
function statistics.lower_median(values) return sorted(values)[(#values + 1) // 2] end

-- The nonparametric 95 % interval of the median, from order statistics: its ends, which are two of the
-- values. Of less than six values it has all, and covers less.
function statistics.median_interval(values)
  local ordered, count = sorted(values), #values
  local half_width = 0.98 * math.sqrt(count) -- 1.96 standard deviations of a binomial(count, 1/2)
  local low = math.max(1, math.floor(count / 2 - half_width))
  local high = math.min(count, math.ceil(count / 2 + 1 + half_width))
  return ordered[math.tointeger(low)], ordered[math.tointeger(high)]
end

-- Holm's method, for tests that may depend on each other. Returns the significant ones of the entries with a
-- probability `p`, smallest p first; the probability that any of them is false is at most `alpha`. `tests`:
-- the number of all tests, also of those that are not in the list.
function statistics.holm(list, alpha, tests)
  local ordered, significant = {}, {}
  for _, entry in ipairs(list) do
    if entry.p then ordered[#ordered + 1] = entry end
  end
  table.sort(ordered, function(a, b) return a.p < b.p end)
  for i, entry in ipairs(ordered) do
    if entry.p > alpha / math.max(1, tests - i + 1) then break end
    significant[i] = entry
  end
  return significant
end

-- The probability of at least `least` successes in `trials` independent trials, each with the probability p
-- (above 0, below 1).
function statistics.binomial_tail(least, trials, p)
  local log_term, tail = trials * math.log(1 - p), least <= 0 and 1.0 or 0.0
  for k = 1, least > 0 and trials or 0 do
    log_term = log_term + math.log((trials - k + 1) / k * (p / (1 - p)))
    if k >= least then tail = tail + math.exp(log_term) end
  end
  return math.min(tail, 1.0)
end

-- The sum, as a float.
function statistics.sum(values)
  local sum = 0.0
  for _, value in ipairs(values) do sum = sum + value end
  return sum
end

-- 0 for equal values, from which their mean may differ by rounding.
local function deviation_of(values, mean, are_equal)
  if are_equal then return 0.0 end
  local squares = 0.0
  for _, value in ipairs(values) do squares = squares + (value - mean) ^ 2 end
  return math.sqrt(squares / (#values - 1))
end

-- { count, mean, median, min, max, standard_deviation } of at least one value; the standard deviation is that
-- of a sample (n - 1), and 0 for one value. The median of an odd number of integers is an integer.
function statistics.summarise(values)
  local ordered, middle = sorted(values), #values // 2
  local median = #ordered % 2 == 1 and ordered[middle + 1] or (ordered[middle] + ordered[middle + 1]) / 2
  local mean = statistics.sum(values) / #values
  return { count = #values, mean = mean, median = median, min = ordered[1], max = ordered[#ordered],
    standard_deviation = deviation_of(values, mean, ordered[1] == ordered[#ordered]) }
end

return statistics
