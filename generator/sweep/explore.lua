-- Which point a sweep measures next: everything (--exhaustive), or what is likeliest to change the table.
--
-- Otherwise, per TP size, dtype and fusion, a sweep
--   begins with a few points far apart, with every strategy;
--   goes on, in its first launches, at the point that is expected to gain the table most: where a visit may
--   well show that a strategy is faster than the one that the table would take, as far as the points measured
--   so far tell (choose/interpolation.lua). The candidates are the spec's grid and the points halfway between
--   its lines, where the bins of a lookup end;
--   visits the points it has in further launches, in random order, with the strategies that may still win:
--   the first ones in each launch, the others at least twice, and for as long as that is expected to gain.
-- Of a budget new points get a share only, so that further launches have the rest; once these are done, new
-- points get their share of what is left. It ends where no visit is expected to gain more than TOLERANCE, or
-- the budget is spent; a visit that is not expected to fit into what is left of it is not asked for. How far
-- strategies differ from launch to launch, and how well points tell of each other, it learns as it goes. (The
-- expected gain is the knowledge gradient of optimal learning: Frazier, Powell, Dayanik, 2008.)
--
-- Pure but for options.now and options.fits: it measures nothing, reads and writes nothing.
local lists = require "lists.lists"
local plan = require "rows.cells"
local statistics = require "base.statistics"
local surface = require "choose.interpolation"

local explore = {}
explore.__index = explore

local TOLERANCE = 0.01        -- expected gain, as a share of the best time, that no visit is worth
local CONTENDS = 1.25         -- times the best: a strategy up to this far off is measured in every launch
local FEWEST_VISITS = 2       -- of a point, in as many launches
local LAUNCH_SPREAD = 0.03    -- of how two strategies compare in one launch, in log2, before launches tell
local DOUBT_PER_OCTAVE = 0.1  -- of how they compare a doubling away from a point, before points tell
local PRIOR_WEIGHT = 8        -- observations that the two numbers above count as
local DEVIATIONS = 1.4826     -- of a normal distribution, a standard deviation over the median deviation
local EXPLORING_LAUNCHES = 2  -- launches in which new points are looked for until there are none
local EXPLORING_SHARE = 0.4   -- of the budget; of what is left of it, once all points have their launches

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
  local copy = {}
  for name, value in pairs(cell) do copy[name] = value end
  copy.hidden_size, copy.num_tokens, copy.skip = hidden_size, num_tokens, nil
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
        self.point_of[plan.key(plan.record(cell))] = point
      end
    end
  end
end

local function make_planes(self, cells)
  local planes, by_name = {}, {}
  for _, cell in ipairs(cells) do
    local name = cell.dtype .. " " .. cell.fusion
    local plane = by_name[name]
    if not plane then
      plane = { any = cell, points = {}, grid = {} }
      by_name[name], planes[#planes + 1] = plane, plane
    end
    plane.grid[cell.hidden_size] = plane.grid[cell.hidden_size] or {}
    plane.grid[cell.hidden_size][cell.num_tokens] = cell
  end
  for _, plane in ipairs(planes) do add_points(self, plane, plane.grid) end
  return planes
end

-- ---- what is known of a point -----------------------------------------------------------------

local function count(map)
  local total = 0
  for _ in pairs(map) do total = total + 1 end
  return total
end

-- log2 of the median over a strategy's launches.
local function level(visits)
  local times = {}
  for _, time in pairs(visits) do times[#times + 1] = log2(time) end
  table.sort(times)
  return (times[(#times + 1) // 2] + times[#times // 2 + 1]) / 2
end

-- The strategies of a point that have a time and may win, the fastest first: { name, time }.
local function ranked(point)
  if not point.ranked then
    local out = {}
    for name, visits in pairs(point.visits) do
      if lists.may_win(name) then out[#out + 1] = { name = name, time = level(visits) } end
    end
    table.sort(out, function(a, b)
      if a.time ~= b.time then return a.time < b.time end
      return a.name < b.name
    end)
    point.ranked = out
  end
  return point.ranked
end

-- Those that may still win there beside the best: { name, time }.
local function rivals(point)
  local order, out = ranked(point), {}
  for i = 2, #order do
    if order[i].time - order[1].time <= log2(CONTENDS) then out[#out + 1] = order[i] end
  end
  return out
end

-- The best and its rivals, as a set.
local function contenders(point)
  local out, best = {}, ranked(point)[1]
  if best then out[best.name] = true end
  for _, entry in ipairs(rivals(point)) do out[entry.name] = true end
  return out
end

local function was_visited(point) return next(point.visits) ~= nil or next(point.without) ~= nil end

-- How two strategies compare at a point, launch by launch, which leaves out what slowed both: the sum of the
-- squares of what the launches differ by, in log2, and how many launches have both.
local function scatter(point, name, other)
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

-- ---- expected gain ----------------------------------------------------------------------------

-- The mean of max(0, d) for a normal d.
local function expected_excess(mean, spread)
  if spread <= 0 then return math.max(0, mean) end
  local z = mean / spread
  local below, density = 0.5 * (1 + statistics.erf(z / math.sqrt(2))), math.exp(-z * z / 2)
  return mean * below + spread * density / math.sqrt(2 * math.pi)
end

-- What one more comparison of two strategies is expected to gain, as a share of the best time. The choice
-- is thought to be `slower` than the other, in log2, give or take `spread`; the comparison will be off by
-- `noise`.
local function expected_gain(slower, spread, noise)
  local moves = spread * spread / math.sqrt(spread * spread + noise * noise) -- the thought, by as much
  return math.log(2) * (expected_excess(slower, moves) - math.max(0, slower))
end

-- strategy -> its measured points in the plane
local function measured(plane)
  local points = {}
  for _, point in ipairs(plane.points) do
    for _, entry in ipairs(ranked(point)) do
      local list = points[entry.name] or {}
      points[entry.name] = list
      list[#list + 1] = { x = point.x, y = point.y, time = entry.time, of = point }
    end
  end
  return points
end

-- Learns self.noise, how far one launch's comparison of two strategies is off, in log2.
local function learn_noise(self)
  local squares, freedom = PRIOR_WEIGHT * LAUNCH_SPREAD ^ 2, PRIOR_WEIGHT
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      for _, rival in ipairs(rivals(point)) do
        local sum, both = scatter(point, rival.name, ranked(point)[1].name)
        if both > 1 then squares, freedom = squares + sum, freedom + both - 1 end
      end
    end
  end
  self.noise = math.sqrt(squares / freedom)
end

-- The point of a list that is of `point`.
local function entry_of(list, point)
  for _, entry in ipairs(list) do
    if entry.of == point then return entry end
  end
end

-- How far the others' word on a rival at a point is off, in log2 for each doubling from where they speak; nil
-- without others. What is nearer than a doubling tells of noise.
local function missed(points, point, rival)
  local best = ranked(point)[1]
  local function predict(name) return surface.predict(points[name], point, entry_of(points[name], point)) end
  local time_of_best, _, distance = predict(best.name)
  local time_of_rival = predict(rival.name)
  if not time_of_best or not time_of_rival then return nil end
  return math.abs((time_of_rival - time_of_best) - (rival.time - best.time)) / math.max(1, distance)
end

-- Learns self.doubt, how far a comparison of two strategies is off a doubling away from where it was made:
-- from the median, since a few points lie beyond a kink, and near those it looks anyway.
local function learn_doubt(self)
  local all = {}
  for i = 1, PRIOR_WEIGHT do all[i] = DOUBT_PER_OCTAVE / DEVIATIONS end
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      for _, rival in ipairs(rivals(point)) do all[#all + 1] = missed(plane.measured, point, rival) end
    end
  end
  table.sort(all)
  self.doubt = DEVIATIONS * all[(#all + 1) // 2]
end

local function learn(self)
  if not self.stale then return end
  for _, plane in ipairs(self.planes) do
    if not plane.measured then plane.measured = measured(plane) end
  end
  local noise, doubt = self.noise, self.doubt
  learn_noise(self)
  learn_doubt(self)
  self.stale = false
  if self.noise == noise and self.doubt == doubt then return end
  for _, plane in ipairs(self.planes) do plane.gain = nil end -- what is expected of every plane has changed
end

-- What one more visit of a visited point is expected to gain: the most of any rival.
local function gain_at(self, point)
  local best, gain = ranked(point)[1], 0
  for _, rival in ipairs(rivals(point)) do
    local squares, both = scatter(point, rival.name, best.name)
    local freedom = PRIOR_WEIGHT + math.max(0, both - 1)
    local noise = math.sqrt((PRIOR_WEIGHT * self.noise ^ 2 + squares) / freedom)
    local spread = noise / math.sqrt(math.max(1, both))
    gain = math.max(gain, expected_gain(best.time - rival.time, spread, noise))
  end
  return gain
end

-- strategy -> { time, nearest, distance } at a point, but for those that cannot do it.
local function predictions(points, point)
  local out = {}
  for name, list in pairs(points) do
    if not point.without[name] then
      local time, nearest, distance = surface.predict(list, point)
      out[name] = { time = time, nearest = nearest, distance = distance }
    end
  end
  return out
end

local function fastest(at)
  local best
  for name, entry in pairs(at) do
    local before = best and at[best].time or math.huge
    if entry.time < before or (entry.time == before and name < best) then best = name end
  end
  return best
end

-- The point of the grid that a lookup would ask about `point`.
local function node_of(plane, point)
  if point.on_grid then return point end
  local nearest, least
  for _, node in ipairs(plane.points) do
    local distance = node.on_grid and surface.distance(node, point)
    if distance and (not least or distance < least) then nearest, least = node, distance end
  end
  return nearest or point
end

-- What the first visit of a point is expected to gain the table: the most of any strategy that the table does
-- not take there.
local function gain_of_first_visit(self, plane, point)
  local at = predictions(plane.measured, point)
  local taken = fastest(predictions(plane.measured, node_of(plane, point)))
  local choice, gain = taken and at[taken], 0
  if not choice then return 1 end -- nothing is known, or the choice cannot do this point
  for name, entry in pairs(at) do
    if name ~= taken then
      local launches = count(entry.nearest.of.visits[name])
      local spread = math.sqrt(self.noise ^ 2 / launches + (self.doubt * entry.distance) ^ 2)
      gain = math.max(gain, expected_gain(choice.time - entry.time, spread, self.noise))
    end
  end
  return gain
end

-- ---- which strategies -------------------------------------------------------------------------

-- Whether further launches at a visited point would tell more.
local function is_unsure(self, point)
  local visits = count(point.launches)
  if visits >= self.launches then return false end
  if self.exhaustive or point.is_first or visits < FEWEST_VISITS then return true end
  learn(self)
  return gain_at(self, point) > TOLERANCE
end

-- The strategies to ask for at a point in this launch; empty: none. What is never chosen steers nothing and
-- comes along, so that it has as many launches as the best, to which it is compared.
local function wanted(self, point, launch)
  local out = {}
  if point.launches[launch] or point.given_up then return out end
  local contends = contenders(point)
  local goes_on = was_visited(point) and is_unsure(self, point)
  for _, name in ipairs(self.spec.strategies) do
    local again = self.exhaustive or contends[name] or not lists.may_win(name)
    local is_wanted = not point.visits[name] or (goes_on and again)
    if is_wanted and not point.without[name] and not point.finished[name] then out[#out + 1] = name end
  end
  return out
end

-- The task that a launch has at a point; nil where it has none, or none that fits.
local function task_at(self, point, launch)
  local strategies = wanted(self, point, launch)
  if #strategies > 0 and self.fits(point.cell, strategies) then
    return { cell = point.cell, strategies = strategies }
  end
end

-- ---- what next --------------------------------------------------------------------------------

-- Deterministic, so that a sweep's plan depends on its answers alone.
local function next_random(self, limit)
  self.random = (self.random * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (self.random >> 33) % limit + 1
end

local function shuffle(self, list)
  for i = #list, 2, -1 do
    local j = next_random(self, i)
    list[i], list[j] = list[j], list[i]
  end
  return list
end

-- The points to begin with, which are visited in every launch: the corners of the grid, and its middle
-- columns.
local function mark_first_points(self)
  local out = {}
  local tokens, hidden = self.spec.num_tokens, self.spec.hidden_sizes
  local function is_edge(list, value) return value == list[1] or value == list[#list] end
  local middle = tokens[(#tokens + 1) // 2]
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      local cell = point.cell
      local starts = is_edge(hidden, cell.hidden_size) and (is_edge(tokens, cell.num_tokens) or
        cell.num_tokens == middle)
      if point.on_grid and (starts or self.exhaustive) then
        point.is_first, out[#out + 1] = true, point
      end
    end
  end
  return out
end

-- Points visited before that need more launches.
local function due_points(self, launch)
  local out = {}
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      if was_visited(point) and #wanted(self, point, launch) > 0 then out[#out + 1] = point end
    end
  end
  return out
end

-- Whether this share of the time is over, from when new points were last given theirs.
local function has_spent(self, share)
  return self.now() >= self.began_at + share * (self.ends_at - self.began_at)
end

-- Whether new points are looked for, if there is time.
local function may_explore(self) return not self.exhaustive and self.explored < EXPLORING_LAUNCHES end

local function is_exploring(self) return may_explore(self) and not has_spent(self, EXPLORING_SHARE) end

-- point -> what its first visit is expected to gain the table
local function gains(self, plane)
  learn(self)
  if not plane.gain then
    plane.gain = {}
    for _, point in ipairs(plane.points) do
      plane.gain[point] = was_visited(point) and 0 or gain_of_first_visit(self, plane, point)
    end
  end
  return plane.gain
end

-- The task at the point that is expected to gain the table most; nil where none is worth a visit.
local function most_doubtful(self, launch)
  local best, most = nil, TOLERANCE
  for _, plane in ipairs(self.planes) do
    local gain = gains(self, plane)
    for _, point in ipairs(plane.points) do
      local task = gain[point] > most and task_at(self, point, launch)
      if task then best, most = task, gain[point] end
    end
  end
  return best
end

-- The next of this launch's queue that is still wanted.
local function from_queue(self, launch)
  while self.queue and #self.queue > 0 do
    local task = task_at(self, table.remove(self.queue), launch)
    if task then return task end
  end
end

local function fill_queue(self, launch)
  local list = due_points(self, launch)
  for _, point in ipairs(self.first) do
    if not was_visited(point) and #wanted(self, point, launch) > 0 then list[#list + 1] = point end
  end
  self.queue, self.queue_of = shuffle(self, list), launch
end

-- options: { spec, cells (of plan.cells), launches (visits that a point needs), exhaustive, now (a clock in
-- seconds), ends_at (when on it; nil: whenever it is sure), fits (whether a visit of a cell with a list
-- of strategies can be over by then; nil: any can) }
function explore.new(options)
  local self = setmetatable({ spec = options.spec, launches = options.launches,
    exhaustive = options.exhaustive, now = options.now, ends_at = options.ends_at or math.huge,
    fits = options.fits or function() return true end,
    began_at = options.now(), visits = 0, explored = 0, point_of = {}, random = 1 }, explore)
  self.planes = make_planes(self, options.cells)
  self.first, self.stale = mark_first_points(self), true
  return self
end

-- The point of a record's cell; nil where it is none of this plan's.
local function point_of(self, record) return self.point_of[plan.key(plan.record(record))] end

-- What was learned without this point's news.
local function forget(self, point)
  point.ranked, self.stale = nil, true
  point.plane.measured, point.plane.gain = nil, nil
end

-- Takes a row of an earlier sweep, which needs no further launches. Its time is of no launch of this one.
function explore:keep(record)
  local point = point_of(self, record)
  if not point then return end
  if not next(point.finished) then self.visits = self.visits + #(record.launches or { record.time_us }) end
  point.visits[record.strategy], point.finished[record.strategy] = { [0] = record.time_us }, true
  forget(self, point)
end

-- Takes it that a strategy has no time at a point, for a reason that stays.
function explore:keep_without(record)
  local point = point_of(self, record)
  if point then point.without[record.strategy] = true end
end

-- A point that cannot be measured: it is not asked for again.
function explore:give_up(cell)
  local point = point_of(self, cell)
  if point then point.given_up = true end
end

-- Takes what a launch said of a point: its rows, and the strategies without a time.
function explore:take(cell, launch, rows, no_time)
  local point = point_of(self, cell)
  if not point then return end
  point.launches[launch], self.visits = true, self.visits + 1
  for _, record in ipairs(rows) do
    point.visits[record.strategy] = point.visits[record.strategy] or {}
    point.visits[record.strategy][launch] = record.time_us
  end
  for _, record in ipairs(no_time) do point.without[record.strategy] = true end
  forget(self, point)
end

-- The next task of this launch, { cell, strategies }; nil: the launch is over.
function explore:next(launch)
  if has_spent(self, 1) then return nil end
  if self.queue_of ~= launch then fill_queue(self, launch) end
  local task = from_queue(self, launch)
  if task or not is_exploring(self) then return task end
  task = most_doubtful(self, launch)
  if not task then self.explored = self.explored + 1 end
  return task
end

-- Whether points that were visited, or have to be, lack a launch.
local function lacks_launches(self, launch)
  for _, list in ipairs { due_points(self, launch), self.first } do
    for _, point in ipairs(list) do
      if task_at(self, point, launch) then return true end
    end
  end
  return false
end

-- Whether a further launch has anything to do.
function explore:wants(launch)
  if has_spent(self, 1) then return false end
  if lacks_launches(self, launch) then return true end
  if has_spent(self, EXPLORING_SHARE) then self.began_at = self.now() end
  return is_exploring(self) and most_doubtful(self, launch) ~= nil
end

-- Whether nothing but the time has ended it: a point lacks a launch, or a cell was not reached. From here on
-- it has no end.
function explore:is_cut_off(launch)
  self.ends_at, self.fits = math.huge, function() return true end
  if lacks_launches(self, launch) then return true end
  for _, plane in ipairs(may_explore(self) and self.planes or {}) do
    for _, point in ipairs(plane.points) do
      if point.on_grid and self:is_unreached(point.cell) then return true end
    end
  end
  return false
end

-- How many visits it has taken, those that were kept included.
function explore:count_visits() return self.visits end

-- Whether a strategy of the spec has neither a time nor a reason at this cell.
function explore:is_open(cell)
  local point = point_of(self, cell)
  return point ~= nil and #wanted(self, point, 0) > 0
end

-- Whether it would go on to a cell that has a strategy with neither a time nor a reason: what is unknown
-- there does not follow from what is known.
function explore:is_unreached(cell)
  local point, unknown = point_of(self, cell), false
  if not point or point.given_up then return false end
  for _, name in ipairs(self.spec.strategies) do
    unknown = unknown or not (point.visits[name] or point.without[name])
  end
  if not unknown or was_visited(point) or point.is_first then return unknown end
  return gains(self, point.plane)[point] > TOLERANCE
end

-- The visits that are known to be needed still, as calls of visit(cell, strategies, launches): how many
-- strategies, in how many launches.
local function each_needed(self, visit)
  local function add(point)
    local strategies = #wanted(self, point, 0)
    if strategies > 0 then visit(point.cell, strategies, self.launches - count(point.launches)) end
  end
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      if was_visited(point) then add(point) end
    end
  end
  for _, point in ipairs(self.first) do
    if not was_visited(point) then add(point) end
  end
end

-- How many visits are known to be needed still.
function explore:outlook()
  local total = 0
  each_needed(self, function(_, _, launches) total = total + launches end)
  return total
end

-- What one visit of each cell that needs some costs, by cost(cell, strategies).
function explore:cost_of_a_round(cost)
  local total = 0
  each_needed(self, function(cell, strategies) total = total + cost(cell, strategies) end)
  return total
end

return explore
