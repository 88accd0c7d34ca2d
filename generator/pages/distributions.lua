-- Distributions of numbers: quartiles, whiskers and outliers for boxes, density for violins.
local distributions = {}

-- The quantile of a sorted list, interpolated linearly between neighbours.
function distributions.quantile(sorted, share)
  local position = share * (#sorted - 1) + 1
  local below = math.floor(position)
  local above = math.min(below + 1, #sorted)
  return sorted[below] + (sorted[above] - sorted[below]) * (position - below)
end

-- { count, low, q1, median, q3, high, outliers = {} } of a list, not empty: low and high are the last
-- values within 1.5 times the distance of the quartiles from them, as J. Tukey drew boxes.
function distributions.box(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  local quantile = distributions.quantile
  local box = { count = #sorted, q1 = quantile(sorted, 0.25), median = quantile(sorted, 0.5),
    q3 = quantile(sorted, 0.75), outliers = {} }
  local reach = 1.5 * (box.q3 - box.q1)
  for _, value in ipairs(sorted) do
    if value < box.q1 - reach or value > box.q3 + reach then
      table.insert(box.outliers, value)
    else
      box.low = box.low or value
      box.high = value
    end
  end
  return box
end

local function deviation(values)
  local sum, squares = 0, 0
  for _, value in ipairs(values) do sum = sum + value end
  local mean = sum / #values
  for _, value in ipairs(values) do squares = squares + (value - mean) ^ 2 end
  return math.sqrt(squares / math.max(1, #values - 1))
end

-- The density of a list, { { position, density }... }, at `points` positions from its least to its largest
-- value, with Gaussian kernels of Scott's width, count^(-1/5) standard deviations; nil if all values are the
-- same.
function distributions.density(values, points)
  local low, high = math.huge, -math.huge
  for _, value in ipairs(values) do low, high = math.min(low, value), math.max(high, value) end
  local width = deviation(values) * (#values) ^ -0.2
  if #values < 2 or low == high or width == 0 then return nil end
  local out = {}
  for i = 0, points - 1 do
    local position, sum = low + (high - low) * i / (points - 1), 0
    for _, value in ipairs(values) do sum = sum + math.exp(-0.5 * ((position - value) / width) ^ 2) end
    out[i + 1] = { position, sum / (#values * width * math.sqrt(2 * math.pi)) }
  end
  return out
end

return distributions
