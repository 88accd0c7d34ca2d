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

-- The probability that Student's t with `freedom` degrees, a whole number, is above t: the finite series of
-- Abramowitz and Stegun 26.7.3 and 26.7.4.
function statistics.student_above(t, freedom)
  local angle = math.atan(t / math.sqrt(freedom))
  local cosine, sine = math.cos(angle), math.sin(angle)
  local is_odd = freedom % 2 == 1
  local term = is_odd and cosine or 1
  local sum = freedom == 1 and 0 or term
  for i = is_odd and 3 or 2, freedom - 2, 2 do
    term = term * (i - 1) / i * cosine * cosine
    sum = sum + term
  end
  local between = is_odd and 2 / math.pi * (angle + sine * sum) or sine * sum -- P(-t < T < t)
  return 0.5 * (1 - between)
end

-- Abramowitz and Stegun 7.1.26: the error function, to 1.5e-7.
function statistics.erf(x)
  local t = 1 / (1 + 0.3275911 * math.abs(x))
  local series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 +
    t * 1.061405429))))
  local value = 1 - series * math.exp(-x * x)
  return x < 0 and -value or value
end

local function mean_of(values)
  local sum = 0.0
  for _, value in ipairs(values) do sum = sum + value end
  return sum / #values
end

local function deviation_of(values, mean)
  local squares = 0.0
  for _, value in ipairs(values) do squares = squares + (value - mean) ^ 2 end
  return #values < 2 and 0.0 or math.sqrt(squares / (#values - 1))
end

-- { count, mean, median, min, max, standard_deviation } of at least one value; the standard deviation is that
-- of a sample (n - 1), and 0 for one value. The median of an odd number of integers is an integer.
function statistics.summarise(values)
  local ordered, middle = sorted(values), #values // 2
  local median = #ordered % 2 == 1 and ordered[middle + 1] or (ordered[middle] + ordered[middle + 1]) / 2
  local mean = mean_of(values)
  return { count = #values, mean = mean, median = median, min = ordered[1], max = ordered[#ordered],
    standard_deviation = deviation_of(values, mean) }
end

return statistics
