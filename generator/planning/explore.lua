-- The planner of a sweep: which point to measure next. With --exhaustive all points in every launch;
-- otherwise those from which the table is expected to gain most for their time.
--
-- It begins with a few points far apart, with every strategy, in two launches: their repetition shows how
-- times vary. The shortest visits come first, and the repetition of long ones follows the uncertain
-- choices, so that they do not take up a short budget. Then it makes the table of the rows so far
-- (provisional_table.lua), and visits the points that inform its uncertain choices: those with the highest
-- expected losses for the time and the launches that they have. The points are the spec's grid and the
-- points halfway between its lines, where the bins of a lookup end. A visit measures the strategies that
-- may win there (shortlist.lua). After a few visits the table is made again. Each launch has a share of the
-- budget, so that others follow: launches differ.
--
-- The sweep ends when no choice is uncertain, when the points around those that are have all their launches,
-- or with its budget; visits that are not expected to fit into it are not planned.
--
-- Apart from options.now, options.fits and options.uncertain_cells the functions depend on their arguments
-- alone: no files, no measuring.
local cell_records = require "rows.cell_records"
local lists = require "lists.lists"
local points = require "planning.points"
local sequences = require "base.sequences"
local shortlist = require "planning.shortlist"
local statistics = require "base.statistics"

local explore = {}
explore.__index = explore

local FIRST_LAUNCHES = 2          -- launches that visit the first points
local COSTLY = 4                  -- medians of the times of first points; beyond, a point is costly
local SHARES = { 0.4, 0.6, 0.8 }  -- of the budget, at which the first launches end; later ones use all of it
local VISITS_BETWEEN = 10         -- fewest visits before the table is made again
local PLANNING_SHARE = 0.2        -- most time to spend on tables, as a share of that since the last one
local USUAL_SHARE = 0.4           -- of the launches of all points, in sweeps that no budget ended: 0.3 to 0.6
local LESS_UNCERTAIN = 0.5        -- factor on the expected loss of a choice for each visit that informs it

-- ---- which strategies -------------------------------------------------------------------------

-- The sum of the expected losses of the uncertain choices that a visit of a point informs: those of the cells
-- to which a lookup sends the point or one beside it. 0 if the point has all its launches.
local function loss_around(self, point)
  if sequences.count(point.launches) >= self.launches then return 0 end
  local sum = 0
  for _, cell in ipairs(point.informs) do sum = sum + (self.uncertain[cell] or 0) end
  return sum
end

-- The launches that have to visit a point whatever its choice: of a first point the first ones, in an
-- exhaustive sweep all.
local function due_launches(self, point)
  local needed = self.exhaustive and self.launches or point.is_first and FIRST_LAUNCHES or 0
  return math.min(needed, self.launches)
end

local function is_due(self, point) return sequences.count(point.launches) < due_launches(self, point) end

-- Whether the first visit of a point measures a strategy. The first points get all of them, so that none is
-- left out unseen.
local function may_win(self, point, name)
  if point.is_first or not lists.may_win(name) then return true end
  point.may_win = point.may_win or shortlist.at(self, point)
  return point.may_win[name]
end

-- The strategies to measure at a point in this launch; empty: none. Strategies that are never chosen do not
-- cause visits, but are measured in those that are made, so that they have as many launches as the best.
local function wanted(self, point, launch)
  local out = {}
  if point.launches[launch] or point.given_up then return out end
  local is_rival = points.best_and_rivals(point)
  local goes_on = is_due(self, point) or loss_around(self, point) > 0
  for _, name in ipairs(self.spec.strategies) do
    local is_wanted
    if point.visits[name] then
      is_wanted = goes_on and (self.exhaustive or is_rival[name] or not lists.may_win(name))
    else
      is_wanted = (goes_on or point.is_first or not points.was_visited(point)) and may_win(self, point, name)
    end
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

-- The points to begin with, on the grid's smallest and largest hidden size: those with the least, the middle
-- and the most tokens. An exhaustive sweep begins with all points of the grid.
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

-- Makes the table of the results so far, if there are enough new ones.
local function update_table(self)
  local now = self.now()
  if self.visits < self.next_table.visits or now < self.next_table.time then return end
  self.uncertain, self.has_table = self.uncertain_cells(), true
  local took = self.now() - now
  self.next_table = { visits = self.visits + VISITS_BETWEEN, time = now + took / PLANNING_SHARE }
end

local function table_is_due(self) self.next_table = { visits = 0, time = -math.huge } end

-- The task at the point with the highest expected losses for its time and launches; nil if no point informs
-- an uncertain choice. The strategies of a point take long to choose, so this is done only where the time of
-- one strategy makes the rate high enough.
local function most_uncertain(self, launch)
  update_table(self)
  local best, most = nil, 0
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      local gain = loss_around(self, point) / (1 + sequences.count(point.launches))
      local is_open = gain > 0 and gain / self.seconds(point.cell, 1) > most
      local task = is_open and task_at(self, point, launch)
      local rate = task and gain / self.seconds(task.cell, #task.strategies)
      if task and rate > most then best, most = task, rate end
    end
  end
  return best
end

-- The next task of one of this launch's queues that is still needed.
local function from_queue(self, queue, launch)
  while #queue > 0 do
    local task = task_at(self, table.remove(queue), launch)
    if task then return task end
  end
end

-- The expected time of a visit of a point with every strategy.
local function seconds_of(self, point) return self.seconds(point.cell, #self.spec.strategies) end

-- The expected time above which a first point is costly: COSTLY medians of all first points.
local function costly_s(self)
  local all = sequences.map(self.first, function(point) return seconds_of(self, point) end)
  return #all > 0 and not self.exhaustive and COSTLY * statistics.lower_median(all) or math.huge
end

-- The first points that lack a strategy or a launch, as two queues, of which the last point is the next one:
-- those to visit at once, and the costly ones that had a visit, which follow the uncertain choices. The
-- shortest visits come first, those of about the same time in random order; if all points are visited, the
-- whole order is random.
local function begin_launch(self, launch)
  local now, later, limit, level = {}, {}, costly_s(self), {}
  for _, point in ipairs(self.first) do
    if #wanted(self, point, launch) > 0 then
      local waits = sequences.count(point.launches) > 0 and seconds_of(self, point) > limit
      table.insert(waits and later or now, point)
    end
  end
  for _, queue in ipairs { now, later } do
    for i, point in ipairs(shuffle(self, queue)) do
      local octave = self.exhaustive and 0 or math.floor(math.log(seconds_of(self, point), 2))
      level[point] = octave + i / (#queue + 1)
    end
    table.sort(queue, function(a, b) return level[a] > level[b] end)
  end
  self.queue, self.costly_queue, self.queue_of, self.begun = now, later, launch, self.begun + 1
end

local function has_spent(self, share)
  return self.now() >= self.began_at + share * (self.ends_at - self.began_at)
end

-- options: { spec, cells (of cell_records.cells), launches (the most visits of a point), exhaustive, now (a
-- clock in seconds), ends_at (the end of the budget on that clock; nil: no budget), seconds (the expected
-- time of a visit of a cell with a number of strategies; nil: all take the same), fits (whether a visit of a
-- cell with a list of strategies ends before the budget; nil: always), uncertain_cells (makes a table of the
-- results so far, and returns the expected losses of its uncertain choices by the key of their cells) }
function explore.new(options)
  local self = setmetatable({ spec = options.spec, launches = options.launches,
    exhaustive = options.exhaustive, now = options.now, ends_at = options.ends_at or math.huge,
    fits = options.fits or function() return true end,
    seconds = options.seconds or function() return 1 end,
    uncertain_cells = options.uncertain_cells, uncertain = {},
    began_at = options.now(), begun = 0, visits = 0, point_of = {}, random = 1, stale = true }, explore)
  self.planes = points.make_planes(self, options.cells)
  self.first = mark_first_points(self)
  table_is_due(self)
  return self
end

-- Begins to measure now, until `ends_at` on its clock.
function explore:begin(ends_at) self.began_at, self.ends_at, self.begun = self.now(), ends_at, 0 end

-- The point of a record's cell; nil if the sweep has none.
local function point_of(self, record) return self.point_of[cell_records.key(cell_records.record(record))] end

-- Drops results that were computed without the new times of this point.
local function forget(self, point)
  point.ranked = nil
  shortlist.forget(self, point)
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
  if point then point.without[record.strategy], point.predicted = true, nil end
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
    sequences.at(point.visits, record.strategy)[launch] = record.time_us
  end
  for _, record in ipairs(no_time) do point.without[record.strategy] = true end
  for _, key in ipairs(point.informs) do
    self.uncertain[key] = self.uncertain[key] and LESS_UNCERTAIN * self.uncertain[key]
  end
  forget(self, point)
end

-- The next task of this launch, { cell, strategies }; nil: the launch is over.
function explore:next(launch)
  if self.queue_of ~= launch then begin_launch(self, launch) end
  if has_spent(self, 1) then return nil end
  local task = from_queue(self, self.queue, launch)
  if task or self.exhaustive or has_spent(self, SHARES[self.begun] or 1) then return task end
  return most_uncertain(self, launch) or from_queue(self, self.costly_queue, launch)
end

-- Whether first points lack a launch, or points inform uncertain choices.
local function has_task(self, launch)
  for _, point in ipairs(self.first) do
    if task_at(self, point, launch) then return true end
  end
  if self.exhaustive then return false end
  table_is_due(self)
  return most_uncertain(self, launch) ~= nil
end

-- Whether a further launch has anything to do.
function explore:wants(launch) return not has_spent(self, 1) and has_task(self, launch) end

-- Whether only the budget has ended the sweep. Removes the end of the budget.
function explore:is_cut_off(launch)
  self.ends_at, self.fits = math.huge, function() return true end
  return has_task(self, launch)
end

-- Continues as a sweep with computed visits. options: { now, ends_at, fits, uncertain_cells }, as in
-- explore.new.
function explore:pretend(options)
  self.now, self.fits, self.uncertain_cells = options.now, options.fits, options.uncertain_cells
  self:begin(options.ends_at)
end

-- log2 of the expected time of a strategy at a cell, and the standard deviation of its error; nil without a
-- prediction.
function explore:predict(cell, name) return shortlist.expect(self, point_of(self, cell), name) end

-- The standard deviation of one launch's time, in log2, without that which all strategies have in common.
function explore:launch_noise() return shortlist.launch_noise(self) end

-- The number of visits entered, those of kept rows included.
function explore:count_visits() return self.visits end

-- Whether a cell has strategies to measure, by the results so far.
function explore:is_open(cell)
  local point = point_of(self, cell)
  return point ~= nil and #wanted(self, point, 0) > 0
end

-- Whether a cell of the grid has had no visit.
function explore:is_new(cell)
  local point = point_of(self, cell)
  return point ~= nil and point.on_grid and not points.was_visited(point)
end

local function lacks_strategy(self, point)
  return sequences.any(self.spec.strategies, function(name)
    return not (point.visits[name] or point.without[name])
  end)
end

-- Whether a cell would get its first visit or, at a first point, a missing strategy, if there were time.
function explore:is_unreached(cell)
  local point = point_of(self, cell)
  if not point or point.given_up then return false end
  if point.is_first then return lacks_strategy(self, point) end
  return not points.was_visited(point) and self.uncertain[point.informs[1]] ~= nil
end

-- Calls visit(cell, strategies, launches) for each point that is known to need further visits: the number of
-- strategies, and of launches.
local function each_needed(self, visit)
  local needed = self.exhaustive and self.launches or FIRST_LAUNCHES
  for _, point in ipairs(self.first) do
    local strategies = #wanted(self, point, 0)
    local launches = math.max(1, needed - sequences.count(point.launches))
    if strategies > 0 then visit(point.cell, strategies, launches) end
  end
end

-- The expected number of further visits; of an exhaustive sweep, those that are needed. Once there is a
-- table, the points around uncertain choices are expected to get all their launches, as most do.
function explore:outlook()
  local needed, expected, count = 0, 0, 0
  each_needed(self, function(_, _, launches) needed = needed + launches end)
  if self.exhaustive then return needed end
  for _, plane in ipairs(self.planes) do
    count = count + #plane.points
    for _, point in ipairs(plane.points) do
      local is_expected = loss_around(self, point) > 0
      expected = expected + (is_expected and self.launches - sequences.count(point.launches) or 0)
    end
  end
  if not self.has_table then expected = math.ceil(USUAL_SHARE * self.launches * count) - self.visits end
  return math.max(needed, expected)
end

-- The expected time of further visits, in seconds, and the launches that they need at least; nil if the sweep
-- needs a table for that, and there is none yet. As for the outlook, points around uncertain choices get all
-- launches. seconds(cell, strategies): the likely time of a visit with a number of strategies.
function explore:expected_rest(seconds)
  if not (self.exhaustive or self.has_table) then return nil end
  local sum, most = 0, 0
  for _, plane in ipairs(self.planes) do
    for _, point in ipairs(plane.points) do
      local launches = loss_around(self, point) > 0 and self.launches or due_launches(self, point)
      local visits = launches - sequences.count(point.launches)
      local strategies = visits > 0 and #wanted(self, point, 0) or 0
      if strategies > 0 then
        sum, most = sum + visits * seconds(point.cell, strategies), math.max(most, visits)
      end
    end
  end
  return sum, most
end

-- The cost of one visit of each first point that needs further ones, by cost(cell, strategies).
function explore:cost_of_a_round(cost)
  local total = 0
  each_needed(self, function(cell, strategies) total = total + cost(cell, strategies) end)
  return total
end

return explore
