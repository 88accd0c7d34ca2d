-- Rows by message size: which strategy for which bytes, for readers that know no shapes (NCCL, Open MPI,
-- MPICH, thresholds). It renders nothing.
--
-- sizes.worlds(source, may_win) gives, per TP size: { tp, mode, points, segments }; of the plain sums (fusion
-- NONE) of source.axes.
--   points    ascending { size, badness = { strategy -> share lost }, best }
--   segments  ascending { first, last = bytes, both inclusive, strategy = row of lists.strategies, points };
--             the first starts at 0, the last has no `last`
--
-- The rule: shapes of equal bytes count alike; at each size a strategy's badness is the share of time that it
-- loses against the best there, as a mean over the shapes. The segments are those of the least total badness,
-- where every border costs as much as BORDER_COST lost at one size: a table follows what was measured, and
-- not its noise. A strategy that has no time for some shape of a size is not chosen there. Between two sizes
-- the border is their geometric mean: what is nearer to one, as a ratio, does as that one.
local lists = require "lists"

local sizes = {}

sizes.BORDER_COST = 0.02

-- The largest number whose square is at most a * b.
local function geometric_mean(a, b)
  local root = math.tointeger(math.floor(math.sqrt(a) * math.sqrt(b)))
  while root > a and root / a > b / root do root = root - 1 end
  while root + 1 < b and (root + 1) / a <= b / (root + 1) do root = root + 1 end
  return root
end

-- The slice of each TP size that has the axes; rows of other tools do not say their mode and stand in.
local function find_slices(source)
  local found = {}
  for _, slice in ipairs(source.rows:slices()) do
    local axes = source.axes
    if slice.dtype == axes.dtype and slice.op == axes.op and slice.fusion == "NONE" then
      if slice.mode == axes.mode or slice.mode == "unknown" and not found[slice.world_size] then
        found[slice.world_size] = slice
      end
    end
  end
  local ordered = {}
  for _, slice in pairs(found) do ordered[#ordered + 1] = slice end
  table.sort(ordered, function(a, b) return a.world_size < b.world_size end)
  return ordered
end

-- size -> shape -> strategy -> time, of the strategies that may win.
local function times_of(rows, slice, may_win, loopback)
  local columns, by_size = rows:slice(slice), {}
  for i = 1, columns.count do
    local name = columns.strategy[i]
    if may_win[name] and (loopback or columns.placement[i] ~= "loopback") then
      local size, shape = columns.size[i], columns.num_tokens[i] << 32 | columns.hidden_size[i]
      by_size[size] = by_size[size] or {}
      by_size[size][shape] = by_size[size][shape] or {}
      by_size[size][shape][name] = columns.time_us[i]
    end
  end
  return by_size
end

-- strategy -> mean share lost over the shapes, of the strategies that have a time for each.
local function badness_of(shapes)
  local sum, seen, count = {}, {}, 0
  for _, times in pairs(shapes) do
    local best = math.huge
    for _, time in pairs(times) do best = math.min(best, time) end
    for name, time in pairs(times) do
      sum[name], seen[name] = (sum[name] or 0) + time / best - 1, (seen[name] or 0) + 1
    end
    count = count + 1
  end
  local badness = {}
  for name, total in pairs(sum) do
    if seen[name] == count then badness[name] = total / count end
  end
  return badness
end

-- The first of `ordered` with the least cost; nil where none has one.
local function cheapest(cost, ordered)
  local best
  for _, name in ipairs(ordered) do
    if cost[name] and (not best or cost[name] < cost[best]) then best = name end
  end
  return best
end

-- The strategy of each point, by the rule above: the cheapest way through all points, from left to right.
local function choose(points, ordered)
  local cost, came_from = {}, {}
  for i, point in ipairs(points) do
    local before, next_cost = i > 1 and cheapest(cost, ordered), {}
    came_from[i] = {}
    for name, badness in pairs(point.badness) do
      local stays, changes = cost[name] or math.huge, before and cost[before] + sizes.BORDER_COST or 0
      came_from[i][name] = stays <= changes and name or before
      next_cost[name] = badness + (i == 1 and 0 or math.min(stays, changes))
    end
    cost = next_cost
  end
  local chosen = {}
  local name = cheapest(cost, ordered)
  for i = #points, 1, -1 do
    chosen[i] = name
    name = came_from[i][name]
  end
  return chosen
end

local function segments_of(points, chosen)
  local segments = {}
  for i, point in ipairs(points) do
    local open = segments[#segments]
    if not open or open.strategy.name ~= chosen[i] then
      if open then open.last = geometric_mean(points[i - 1].size, point.size) end
      segments[#segments + 1] = { first = open and open.last + 1 or 0, points = {},
        strategy = lists.find("strategies", chosen[i]) }
    end
    table.insert(segments[#segments].points, point)
  end
  return segments
end

-- The points of { size -> shape -> strategy -> time }.
local function points_of(by_size)
  local points = {}
  for size, shapes in pairs(by_size) do
    local badness = badness_of(shapes)
    if next(badness) then points[#points + 1] = { size = size, badness = badness } end
  end
  table.sort(points, function(a, b) return a.size < b.size end)
  return points
end

-- The segments of points { size, badness }, ascending.
function sizes.segments(points)
  local ordered = lists.names("strategies")
  for _, point in ipairs(points) do point.best = cheapest(point.badness, ordered) end
  return segments_of(points, choose(points, ordered))
end

-- See the head of this file; may_win(row of lists.strategies). Worlds without any such row are left out.
function sizes.worlds(source, may_win)
  local allowed, worlds = {}, {}
  for _, strategy in ipairs(lists.strategies) do
    allowed[strategy.name] = strategy.candidate ~= false and may_win(strategy) or nil
  end
  for _, slice in ipairs(find_slices(source)) do
    local points = points_of(times_of(source.rows, slice, allowed, source.loopback))
    if #points > 0 then
      worlds[#worlds + 1] = { tp = slice.world_size, mode = slice.mode, points = points,
        segments = sizes.segments(points) }
    end
  end
  return worlds
end

return sizes
