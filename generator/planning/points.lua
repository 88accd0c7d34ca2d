-- The points that a sweep may visit, and the results of its visits. See explore.lua.
local cell_records = require "rows.cell_records"
local lists = require "lists.lists"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local statistics = require "base.statistics"

local points = {}

points.RIVAL_RATIO = 1.25 -- rivals, which take up to this many times the best, are measured in every launch
points.RIVAL_LEVEL = math.log(points.RIVAL_RATIO, 2)

-- ---- points -----------------------------------------------------------------------------------

local function log2(number) return math.log(number, 2) end

local function new_point(plane, cell, on_grid)
  return { plane = plane, cell = cell, on_grid = on_grid,
    x = log2(cell.num_tokens), y = log2(cell.hidden_size),
    visits = {}, launches = {}, without = {}, finished = {} }
end

-- The multiple of `step` halfway between two sizes, as a ratio; nil where there is none. Hidden sizes of
-- models are multiples of 64.
local function halfway(from, to, step)
  local middle = math.floor(math.sqrt(from * to) / step + 0.5) * step
  if middle > from and middle < to then return middle end
end

-- The values and those halfway between them.
local function with_halves(values, step)
  local out = {}
  for i, value in ipairs(values) do
    out[#out + 1] = { value = value, on_grid = true }
    local between = values[i + 1] and halfway(value, values[i + 1], step)
    if between then out[#out + 1] = { value = between } end
  end
  return out
end

local function off_grid_cell(cell, hidden_size, num_tokens)
  local copy = sequences.merged(cell, { hidden_size = hidden_size, num_tokens = num_tokens })
  copy.skip = nil
  copy.size = hidden_size * num_tokens * lists.find("dtypes", cell.dtype).bytes
  return copy
end

-- The points of one dtype and fusion. `grid` has its cells by hidden size and tokens.
local function add_points(self, plane, grid)
  local limit = self.spec.limits.message_bytes
  for _, hidden in ipairs(with_halves(self.spec.hidden_sizes, 64)) do
    for _, tokens in ipairs(with_halves(self.spec.num_tokens, 1)) do
      local on_grid = hidden.on_grid and tokens.on_grid
      local cell = on_grid and grid[hidden.value][tokens.value]
        or off_grid_cell(plane.any, hidden.value, tokens.value)
      local is_between = not on_grid
      if not cell.skip and cell.size <= limit and not (is_between and self.exhaustive) then
        local point = new_point(plane, cell, on_grid)
        plane.points[#plane.points + 1] = point
        self.point_of[cell_records.key(cell_records.record(cell))] = point
      end
    end
  end
end

-- Sets `informs` of each point: the keys of the cells that have it in their bin or on the border of it.
local function find_bins(self, plane)
  local tokens, hidden_sizes = self.spec.num_tokens, self.spec.hidden_sizes
  -- The values of a list around one: itself, or the two between which it lies.
  local function around(list, value)
    local out = {}
    for i, other in ipairs(list) do
      local is_below = other < value and list[i + 1] and list[i + 1] > value
      local is_above = other > value and i > 1 and list[i - 1] < value
      if other == value or is_below or is_above then out[#out + 1] = other end
    end
    return out
  end
  for _, point in ipairs(plane.points) do
    point.informs = {}
    for _, hidden_size in ipairs(around(hidden_sizes, point.cell.hidden_size)) do
      for _, num_tokens in ipairs(around(tokens, point.cell.num_tokens)) do
        local cell = cell_records.record(plane.grid[hidden_size][num_tokens])
        table.insert(point.informs, cell_records.key(cell))
      end
    end
  end
end

function points.make_planes(self, cells)
  local planes, by_name = {}, {}
  for _, cell in ipairs(cells) do
    local plane = sequences.entry(planes, by_name, cell.dtype .. " " .. cell.fusion, function()
      return { any = cell, points = {}, grid = {} }
    end)
    sequences.at(plane.grid, cell.hidden_size)[cell.num_tokens] = cell
  end
  for _, plane in ipairs(planes) do
    add_points(self, plane, plane.grid)
    find_bins(self, plane)
  end
  return planes
end

-- ---- results of a point -----------------------------------------------------------------------

-- log2 of the median over a strategy's launches.
local function level(visits)
  local times = {}
  for _, time in pairs(visits) do times[#times + 1] = log2(time) end
  return statistics.median(times)
end

-- The strategies of a point that have a time and may win, the fastest first: { name, time }.
function points.ranked(point)
  if not point.ranked then
    local out = {}
    for name, visits in pairs(point.visits) do
      if lists.may_win(name) then out[#out + 1] = { name = name, time = level(visits) } end
    end
    table.sort(out, ordering.by("time", "name"))
    point.ranked = out
  end
  return point.ranked
end

-- The candidates beside the best that may still win there: { name, time }.
function points.rivals(point)
  local order, out = points.ranked(point), {}
  for i = 2, #order do
    if order[i].time - order[1].time <= points.RIVAL_LEVEL then out[#out + 1] = order[i] end
  end
  return out
end

-- The best and its rivals, as a set.
function points.best_and_rivals(point)
  local out, best = {}, points.ranked(point)[1]
  if best then out[best.name] = true end
  for _, entry in ipairs(points.rivals(point)) do out[entry.name] = true end
  return out
end

function points.was_visited(point) return next(point.visits) ~= nil or next(point.without) ~= nil end

-- The variation, over the launches at a point, of the ratio of two strategies' times: the sum of squared
-- deviations of its log2 from the mean, and the number of launches with both. Effects on a whole launch
-- cancel.
function points.scatter(point, name, other)
  local sum, squares, both = 0, 0, 0
  for launch, time in pairs(point.visits[name]) do
    local of_other = point.visits[other][launch]
    if of_other then
      local slower = log2(time / of_other)
      sum, squares, both = sum + slower, squares + slower * slower, both + 1
    end
  end
  return both > 0 and math.max(0, squares - sum * sum / both) or 0, both
end

return points
