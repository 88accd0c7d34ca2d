-- hockney: the model time = alpha + beta * bytes of each collective and number of ranks, by least squares
-- over its calls. Kernels wait for other ranks: files of all ranks show the waiting, one file does not. A low
-- r2 means that the model does not fit. A beta that is not positive gives no bandwidth.
local per_collective = require "profile.per_collective"
local sequences = require "base.sequences"

local hockney = {}

local fewest_sizes = 3 -- a line fits any two

-- Least squares of y over x: intercept, slope, share of the variance explained (nil: y does not vary).
-- Computes sums around the means, so that large x lose no digits.
function hockney.fit(x, y)
  local mean_x, mean_y, xx, xy, yy = 0.0, 0.0, 0.0, 0.0, 0.0
  for i = 1, #x do mean_x, mean_y = mean_x + x[i] / #x, mean_y + y[i] / #x end
  for i = 1, #x do
    local dx, dy = x[i] - mean_x, y[i] - mean_y
    xx, xy, yy = xx + dx * dx, xy + dx * dy, yy + dy * dy
  end
  local slope = xy / xx
  return mean_y - slope * mean_x, slope, yy > 0 and xy * xy / (xx * yy) or nil
end

local function row(calls)
  local sized = per_collective.sized(calls)
  if #sized == 0 then return nil, per_collective.no_bytes end
  local bytes = sequences.field(sized, "bytes")
  local sizes = #sequences.distinct(bytes)
  if sizes < fewest_sizes then
    return nil, ("calls of at least %d different sizes: there are %d"):format(fewest_sizes, sizes)
  end
  local time_us = sequences.map(sized, function(call) return (call.stop - call.start) / 1e3 end)
  local alpha_us, beta_us, r2 = hockney.fit(bytes, time_us)
  return { alpha_us = alpha_us, beta_us_per_byte = beta_us, r2 = r2, calls = #sized, sizes = sizes,
    bandwidth_gbps = beta_us > 0 and 1e-3 / beta_us or nil }
end

local metric = per_collective.metric {
  by_group_size = true,
  match_ranks = true,
  columns = { { key = "group_size", title = "ranks" }, { key = "alpha_us", title = "alpha (us)" },
    { key = "beta_us_per_byte", title = "beta (us/B)" }, { key = "bandwidth_gbps", title = "1/beta (GB/s)" },
    { key = "r2", title = "r2" }, { key = "sizes", title = "sizes" }, { key = "calls", title = "calls" } },
  row = row,
}
hockney.run = metric.run

return hockney
