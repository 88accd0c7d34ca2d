-- Strategies over the message size, for time_vs_size and busbw. A point is the median over the cells of one
-- size, such as 4 tokens of 1024 and 1 of 4096; with more than MOST_POINTS sizes, over those within a quarter
-- of a doubling.
local geometry = require "pages.geometry"
local lines = require "pages.lines"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local statistics = require "base.statistics"

local time_over_size = {}

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

-- The rows of a strategy by the size of their point: { { size =, rows = {} }... }, ascending.
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
        local group = sequences.entry(groups, known, size, function() return { size = size, rows = {} } end)
        table.insert(group.rows, row)
      end
    end
  end
  return ordering.sort(groups, ordering.by "size")
end

-- One number of each row: its median over the rows that have it, the least and the greatest; nil if none has.
local function over(rows, value)
  local list = sequences.map(rows, value)
  if #list == 0 then return nil end
  table.sort(list)
  return statistics.median(list), list[1], list[#list]
end

-- The point of a size, { size, median, low, high }, and its bound, { size, least =, most = } or nil.
local function point_of(group, value)
  local function of(name)
    return over(group.rows, function(row) return row[name] and value(row, row[name]) end)
  end
  local _, low_1, low_2 = of("low_us")
  local _, high_1, high_2 = of("high_us")
  local point = { group.size, (of("time_us")) }
  if low_1 and high_1 then point[3], point[4] = math.min(low_1, high_1), math.max(low_2, high_2) end
  local bound, least, most = of("bound_us")
  return point, bound and { group.size, least = least, most = most }
end

-- The series of all strategies, the bounds of their rows, and whether points are of several sizes.
-- `value(row, time_us)` is the y value of a time.
local function series_of(slice, value)
  local thinned, out, bounds = distinct_sizes(slice) > MOST_POINTS, {}, {}
  for i, strategy in ipairs(slice.strategies) do
    local series = { colour = strategy.colour, hatched = strategy.hatched, point = lines.point(i),
      points = {}, text = strategy.mark .. " " .. strategy.name }
    for p, group in ipairs(groups_of(slice, slice.rows[strategy.name], thinned)) do
      local point, bound = point_of(group, value)
      series.points[p] = point
      series.band = series.band or point[3] ~= nil
      bounds[#bounds + 1] = bound
    end
    out[i] = series
  end
  return out, bounds, thinned
end

-- The bound of each size: the best of any strategy's rows.
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

-- A note that the rows have no intervals or bounds; or nil.
local function note_of_missing(slice)
  local missing = {}
  if not slice.has_interval then missing[#missing + 1] = "intervals" end
  if not slice.has_bound then missing[#missing + 1] = "physical bounds" end
  if #missing == 0 then return nil end
  return ("These rows have no %s, so none is drawn."):format(table.concat(missing, " or "))
end

-- The model of a picture over sizes. spec: title, y (see pages/lines.lua), value(row, time_us), note, better
-- = math.min or math.max.
function time_over_size.model(slice, spec)
  local series, bounds, thinned = series_of(slice, spec.value)
  local notes = { spec.note }
  if slice.has_bound then table.insert(series, bound_series(bounds, spec.better)) end
  local legend = { table.unpack(series) }
  if slice.has_interval then
    legend[#legend + 1] = { text = "95 % interval of the median", colour = "#c8c8c8", box = true }
  end
  notes[#notes + 1] = note_of_missing(slice)
  notes[#notes + 1] = thinned
    and "A point is the median over the cells whose sizes are within a quarter of a doubling."
    or "A point is the median over the cells of this size."
  return lines.model(slice, { title = spec.title, panels = { { series = series } }, legend = legend,
    notes = notes, x = { label = "message size", ticks = geometry.byte_ticks }, y = spec.y })
end

return time_over_size
