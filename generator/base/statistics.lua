-- What one can say of some numbers: statistics.summarise(values) -> { count, mean, median, min, max,
-- standard_deviation }, the last as of a sample (n - 1), 0 for one value. At least one value.
local statistics = {}

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

function statistics.summarise(values)
  local ordered, middle = table.move(values, 1, #values, 1, {}), #values // 2
  table.sort(ordered)
  local median = #ordered % 2 == 1 and ordered[middle + 1] or (ordered[middle] + ordered[middle + 1]) / 2
  local mean = mean_of(values)
  return { count = #values, mean = mean, median = median, min = ordered[1], max = ordered[#ordered],
    standard_deviation = deviation_of(values, mean) }
end

return statistics
