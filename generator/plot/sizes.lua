-- Strategies over the message size: what time_vs_size and busbw share. Cells of the same size, such as 4 tokens of
-- 1024 and 1 of 4096, make one point: the median; where sizes are very many, those within a quarter of a doubling do.
local layout = require "plot.layout"
local lines = require "plot.lines"

local sizes = {}

local MOST_POINTS, PER_DOUBLING = 64, 4

local function distinct_sizes(slice)
  local seen, count = {}, 0
  for _, grid in pairs(slice.rows) do
    for h = 1, #slice.hidden_sizes do
      for _, row in pairs(grid[h]) do
        if not seen[row.size_bytes] then count = count + 1 end
        seen[row.size_bytes] = true
      end
    end
  end
  return count
end

-- The rows of a strategy by the size that they are shown at: { { size =, rows = {} }... }, ascending.
local function groups_of(slice, grid, is_thinned)
  local groups, known = {}, {}
  for h = 1, #slice.hidden_sizes do
    for t = 1, #slice.num_tokens do
      local row = grid[h][t]
      if row then
        local size = row.size_bytes
        if is_thinned then
          size = 2.0 ^ (math.floor(math.log(size, 2) * PER_DOUBLING + 0.5) / PER_DOUBLING)
        end
        if not known[size] then
          known[size] = { size = size, rows = {} }
          groups[#groups + 1] = known[size]
        end
        table.insert(known[size].rows, row)
      end
    end
  end
  table.sort(groups, function(a, b) return a.size < b.size end)
  return groups
end

-- One number of each row: the median over the rows that have it, the least and the most; nil where none has it.
local function over(rows, value)
  local list = {}
  for _, row in ipairs(rows) do list[#list + 1] = value(row) end
  if #list == 0 then return nil end
  local median = lines.median(list)
  return median, list[1], list[#list]
end

-- The series of all strategies and, where rows have one, of the bound. `value(row, time_us)` is what y shows of a
-- time. Also returns whether points are put together.
local function series_of(slice, value)
  local thinned, out = distinct_sizes(slice) > MOST_POINTS, {}
  local bounds = {}
  for i, strategy in ipairs(slice.strategies) do
    local series = { colour = strategy.colour, hatched = strategy.hatched, point = lines.point(i), points = {},
      text = strategy.mark .. " " .. strategy.name }
    for _, group in ipairs(groups_of(slice, slice.rows[strategy.name], thinned)) do
      local middle = over(group.rows, function(row) return value(row, row.time_us) end)
      local _, a, b = over(group.rows, function(row) return row.low_us and value(row, row.low_us) end)
      local _, c, d = over(group.rows, function(row) return row.high_us and value(row, row.high_us) end)
      local low, high = a and c and math.min(a, c), b and d and math.max(b, d)
      table.insert(series.points, { group.size, middle, low or nil, high or nil })
      series.band = series.band or low ~= nil
      local bound, least, most = over(group.rows, function(row) return row.bound_us and value(row, row.bound_us) end)
      if bound then bounds[#bounds + 1] = { group.size, bound, least = least, most = most } end
    end
    out[i] = series
  end
  return out, bounds, thinned
end

-- The bound of each size: the best that any strategy's rows tell of it.
local function bound_series(bounds, better)
  local best, list = {}, {}
  for _, bound in ipairs(bounds) do
    local value = better == math.min and bound.least or bound.most
    best[bound[1]] = best[bound[1]] and better(best[bound[1]], value) or value
  end
  for size, value in pairs(best) do list[#list + 1] = { size, value } end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return { colour = "#000000", plain = true, points = list, text = "physical bound" }
end

-- The model of a picture over sizes. spec: title, y (see lines.lua), value(row, time_us), better = math.min or
-- math.max, note.
function sizes.model(slice, spec)
  local series, bounds, thinned = series_of(slice, spec.value)
  local notes = { spec.note }
  if slice.has_bound then
    table.insert(series, bound_series(bounds, spec.better))
  end
  local legend = { table.unpack(series) }
  if slice.has_interval then
    legend[#legend + 1] = { text = "95 % interval of the median", colour = "#c8c8c8", box = true }
  end
  if not slice.has_interval or not slice.has_bound then
    local missing = not slice.has_interval and not slice.has_bound and "intervals or physical bounds"
      or not slice.has_interval and "intervals" or "physical bounds"
    notes[#notes + 1] = ("These rows have no %s, so none is drawn."):format(missing)
  end
  notes[#notes + 1] = thinned
    and "A point is the median over the cells whose sizes are within a quarter of a doubling."
    or "A point is the median over the cells of this size."
  return lines.model(slice, { title = spec.title, panels = { { series = series } }, legend = legend, notes = notes,
    x = { label = "message size", ticks = layout.byte_ticks }, y = spec.y })
end

return sizes
