-- The planner of a sweep: which point to measure next. With --exhaustive all points; otherwise those that are
-- most likely to change the table.
--
-- Per TP size, dtype and fusion, it
--   begins with a few points far apart, with every strategy;
--   then, in the first launches, takes the point with the highest expected gain: where a visit is likely to
--   show that a strategy is faster than the one that the table would choose, predicted from the points
--   measured so far (choose/interpolation.lua). The points are the spec's grid and the points halfway
--   between its lines, where the bins of a lookup end;
--   in further launches visits the measured points again, in random order, with the strategies that may still
--   win: the first points in each launch, the others at least twice, and as long as a gain is expected.
-- New points get a share of the budget, and further launches the rest; when these are done, new points get
-- their share of the remaining budget. The sweep ends when no visit has an expected gain above TOLERANCE, or
-- the budget is spent; visits that are not expected to fit into it are not planned. The variation between
-- launches and the error of predictions are estimated during the sweep. (The expected gain is the knowledge
-- gradient of optimal learning: Frazier, Powell, Dayanik, 2008.)
--
-- Apart from options.now and options.fits the functions depend on their arguments alone: no files, no
-- measuring.
local cell_records = require "rows.cell_records"
local expected_gain = require "sweep.expected_gain"
local lists = require "lists.lists"
local points = require "sweep.points"

local explore = {}
explore.__index = explore

local TOLERANCE = 0.01        -- expected gain, as a share of the best time, below which no visit is made
local FEWEST_VISITS = 2       -- of a point, in as many launches
local EXPLORING_LAUNCHES = 2  -- launches that visit new points as long as any is worth it
local EXPLORING_SHARE = 0.4   -- of the budget; of the remaining one, once all points have their launches

-- ---- which strategies -------------------------------------------------------------------------

-- Whether a visited point needs further launches.
local function is_unsure(self, point)
  local visits = points.count(point.launches)
  if visits >= self.launches then return false end
  if self.exhaustive or point.is_first or visits < FEWEST_VISITS then return true end
  expected_gain.learn(self)
  return expected_gain.of_another_visit(self, point) > TOLERANCE
end

-- The strategies to measure at a point in this launch; empty: none. Strategies that are never chosen do not
-- cause visits, but are measured in those that are made, so that they have as many launches as the best.
local function wanted(self, point, launch)
  local out = {}
  if point.launches[launch] or point.given_up then return out end
  local may_win = points.best_and_rivals(point)
  local goes_on = points.was_visited(point) and is_unsure(self, point)
  for _, name in ipairs(self.spec.strategies) do
    local again = self.exhaustive or may_win[name] or not lists.may_win(name)
    local is_wanted = not point.visits[name] or (goes_on and again)
    if is_wanted and not point.without[name] and not point.finished[name] then out[#out + 1] = name end
  end
  return out
end

-- The task of a launch at a point; nil if it has none, or none that fits into the budget.
local function task_at(self, point, launch)
  local strategies = wanted(self, point, launch)
  if #strategies > 0 and self.fits(point.cell, strategies) then
    return { cell = point.cell, strategies = strategies }
  end
end

-- ---- what next --------------------------------------------------------------------------------

-- Deterministic, so that a sweep's points depend on the bench's answers alone.
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
      if points.was_visited(point) and #wanted(self, point, launch) > 0 then out[#out + 1] = point end
    end
  end
  return out
end

-- Whether this share of the time is over, counted from when new points last got their share.
local function has_spent(self, share)
  return self.now() >= self.began_at + share * (self.ends_at - self.began_at)
end

-- Whether new points may be visited, if there is time.
local function may_explore(self) return not self.exhaustive and self.explored < EXPLORING_LAUNCHES end

local function is_exploring(self) return may_explore(self) and not has_spent(self, EXPLORING_SHARE) end

-- point -> the expected gain of its first visit
local function gains(self, plane)
  expected_gain.learn(self)
  if not plane.gain then
    plane.gain = {}
    for _, point in ipairs(plane.points) do
      plane.gain[point] = points.was_visited(point) and 0 or expected_gain.of_first_visit(self, plane, point)
    end
  end
  return plane.gain
end

-- The task at the point with the highest expected gain; nil if no point is worth a visit.
local function most_uncertain(self, launch)
  local best, most = nil, TOLERANCE
  for _, plane in ipairs(self.planes) do
    local of_points = gains(self, plane)
    for _, point in ipairs(plane.points) do
      local task = of_points[point] > most and task_at(self, point, launch)
      if task then best, most = task, of_points[point] end
    end
  end
  return best
end

-- The next task of this launch's queue that is still needed.
local function from_queue(self, launch)
  while self.queue and #self.queue > 0 do
    local task = task_at(self, table.remove(self.queue), launch)
    if task then return task end
  end
end

local function fill_queue(self, launch)
  local list = due_points(self, launch)
  for _, point in ipairs(self.first) do
    if not points.was_visited(point) and #wanted(self, point, launch) > 0 then list[#list + 1] = point end
  end
  self.queue, self.queue_of = shuffle(self, list), launch
end

-- options: { spec, cells (of cell_records.cells), launches (visits that a point needs), exhaustive, now (a
-- clock in seconds), ends_at (the end of the budget on that clock; nil: no budget), fits (whether a visit of
-- a cell with a list of strategies ends before that; nil: always) }
function explore.new(options)
  local self = setmetatable({ spec = options.spec, launches = options.launches,
    exhaustive = options.exhaustive, now = options.now, ends_at = options.ends_at or math.huge,
    fits = options.fits or function() return true end,
    began_at = options.now(), visits = 0, explored = 0, point_of = {}, random = 1 }, explore)
  self.planes = points.make_planes(self, options.cells)
  self.first, self.stale = mark_first_points(self), true
  return self
end

-- Begins to measure now, until `ends_at` on its clock.
function explore:begin(ends_at) self.began_at, self.ends_at = self.now(), ends_at end

-- The point of a record's cell; nil if the sweep has none.
local function point_of(self, record) return self.point_of[cell_records.key(cell_records.record(record))] end

-- Drops what was computed without the new results of this point.
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

-- Marks a strategy as permanently without a time at a point.
function explore:keep_without(record)
  local point = point_of(self, record)
  if point then point.without[record.strategy] = true end
end

-- Marks a point as one that cannot be measured: it gets no more visits.
function explore:give_up(cell)
  local point = point_of(self, cell)
  if point then point.given_up = true end
end

-- Enters the results of a launch at a point: its rows, and the strategies without a time.
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
  task = most_uncertain(self, launch)
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
  return is_exploring(self) and most_uncertain(self, launch) ~= nil
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

-- The number of visits entered, those of kept rows included.
function explore:count_visits() return self.visits end

-- Whether a strategy of the spec has neither a time nor a reason at this cell.
function explore:is_open(cell)
  local point = point_of(self, cell)
  return point ~= nil and #wanted(self, point, 0) > 0
end

-- Whether a cell with a strategy that has neither a time nor a reason would get a visit, if there were time.
function explore:is_unreached(cell)
  local point, unknown = point_of(self, cell), false
  if not point or point.given_up then return false end
  for _, name in ipairs(self.spec.strategies) do
    unknown = unknown or not (point.visits[name] or point.without[name])
  end
  if not unknown or points.was_visited(point) or point.is_first then return unknown end
  return gains(self, point.plane)[point] > TOLERANCE
end

-- Calls visit(cell, strategies, launches) for each point that is known to need further visits: the number of
-- strategies, and of launches.
local function each_needed(self, visit)
  local function add(point)
    local strategies = #wanted(self, point, 0)
    if strategies > 0 then visit(point.cell, strategies, self.launches - points.count(point.launches)) end
  end
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      if points.was_visited(point) then add(point) end
    end
  end
  for _, point in ipairs(self.first) do
    if not points.was_visited(point) then add(point) end
  end
end

-- The number of further visits that are known to be needed.
function explore:outlook()
  local total = 0
  each_needed(self, function(_, _, launches) total = total + launches end)
  return total
end

-- The cost of one visit of each cell that needs further ones, by cost(cell, strategies).
function explore:cost_of_a_round(cost)
  local total = 0
  each_needed(self, function(cell, strategies) total = total + cost(cell, strategies) end)
  return total
end

return explore
