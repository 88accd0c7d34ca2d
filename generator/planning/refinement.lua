-- The expected gain of `sweep --refine`, and its time: the uncertain choices that it settles, and the cells
-- that it is the first to measure. The planner of a sweep that its budget ended continues in memory, with
-- times drawn from its own predictions in place of measured ones, and the results make a table by the rule of
-- all tables.
--
-- A strategy's time at a point is its median there or, without one, predicted from the points around
-- (shortlist.lua). The errors of both are drawn, and the noise of each launch. A visit takes its expected
-- time (cost.lua), a launch as long as the last start. The draws are the same in each run. Nothing here
-- measures.
local cell_records = require "rows.cell_records"
local sequences = require "base.sequences"

local refinement = {}
refinement.__index = refinement

local TABLES = 4 -- made between the visits, at most; a sweep makes more of them

-- ---- drawn times ------------------------------------------------------------------------------

-- Uniform in (0, 1].
local function draw(self)
  self.random = self.random * 48271 % 0x7fffffff
  return self.random / 0x7fffffff
end

-- Of the standard normal distribution, by Box and Muller.
local function draw_normal(self)
  return math.sqrt(-2 * math.log(draw(self))) * math.cos(2 * math.pi * draw(self))
end

-- log2 of the time of a strategy at a cell without the noise of launches: drawn once, then the same.
local function level_of(self, cell, name)
  local key = cell_records.key(cell_records.record(cell, name))
  if not self.levels[key] then
    local level, deviation = self.planner:predict(cell, name)
    self.levels[key] = level and level + deviation * draw_normal(self)
  end
  return self.levels[key]
end

-- The record of a strategy in a launch; nil if nothing predicts its time.
local function record_of(self, cell, name)
  local level = level_of(self, cell, name)
  if not level then return nil end
  local time_us = 2 ^ (level + self.noise * draw_normal(self))
  local record = cell_records.record(cell, name, { size = cell.size, samples = 1,
    placement = self.placement })
  local _, like = next(self.visits[cell_records.key(record)] or {})
  for field, value in pairs(like or {}) do record[field] = value end
  record.time_us, record.min_us, record.low_us, record.high_us = time_us, time_us, time_us, time_us
  return record
end

local function visit(self, task, launch)
  local with, without = {}, {}
  if self.planner:is_new(task.cell) then self.measures = self.measures + 1 end
  for _, name in ipairs(task.strategies) do
    local record = record_of(self, task.cell, name)
    if record then
      sequences.at(self.visits, cell_records.key(record))[launch] = record
      with[#with + 1] = record
    else
      without[#without + 1] = cell_records.record(task.cell, name, { reason = "no prediction" })
    end
  end
  self.clock = self.clock + self.seconds(task.cell, task.strategies)
  self.planner:take(task.cell, launch, with, without)
end

-- ---- the refinement of a sweep ----------------------------------------------------------------

-- The number of choices that are uncertain before, and not after. Others may become uncertain meanwhile.
local function count_settled(before, after)
  local settled = 0
  for key in pairs(before) do settled = settled + (after[key] and 0 or 1) end
  return settled
end

-- The expected losses of the uncertain choices; computed again after a part of the budget has passed.
local function uncertain_cells(self)
  if self.clock >= self.next_table then
    self.planner.uncertain = self.make_table(self.visits)
    self.next_table = self.clock + self.budget_s / TABLES
  end
  return self.planner.uncertain
end

local function copy(visits)
  local out = {}
  for key, by_launch in pairs(visits) do
    out[key] = sequences.merged(by_launch)
  end
  return out
end

-- { settles (the number of uncertain choices that are settled afterwards), uncertain (their number before),
-- measures (the number of the grid's cells that get a first visit), seconds } of a sweep that continues.
-- options: { planner (explore.lua; a sweep cannot use it afterwards), launch (the last one), budget_s,
-- start_s (of a launch), seconds (the expected time of a visit of a cell with a list of strategies), visits
-- (by key and launch), placement, make_table (of visits: what explore.new's uncertain_cells returns), tick
-- (called after each visit with the part of the budget that has passed; nil: nothing) }
function refinement.expect(options)
  local self = setmetatable(sequences.merged({ levels = {}, random = 1, clock = 0, measures = 0 }, options,
    { visits = copy(options.visits) }), refinement)
  self.planner.uncertain = self.make_table(self.visits)
  local before, launch = self.planner.uncertain, options.launch
  self.next_table = self.budget_s / TABLES
  self.planner:pretend { now = function() return self.clock end, ends_at = self.budget_s,
    fits = function(cell, strategies) return self.clock + self.seconds(cell, strategies) <= self.budget_s end,
    uncertain_cells = function() return uncertain_cells(self) end }
  self.noise = self.planner:launch_noise()
  while self.clock + self.start_s < self.budget_s and self.planner:wants(launch + 1) do
    launch, self.clock = launch + 1, self.clock + self.start_s
    for task in function() return self.planner:next(launch) end do
      visit(self, task, launch)
      if self.tick then self.tick(math.min(1, self.clock / self.budget_s)) end
    end
  end
  return { settles = count_settled(before, self.make_table(self.visits)), uncertain = sequences.count(before),
    measures = self.measures, seconds = math.ceil(10 * self.clock) / 10 }
end

return refinement
