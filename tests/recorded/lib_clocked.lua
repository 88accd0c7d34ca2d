-- A sweep with a budget, played on recorded rows and a clock of its own: visits and starts take computed
-- times. Used by tests of this folder and by tests/perf/planner.lua.
local cell_records = require "rows.cell_records"
local cost = require "planning.cost"
local explore = require "planning.explore"
local lib = require "recorded.lib"
local pooling = require "sweep.pooling"
local provisional_table = require "planning.provisional_table"
local refinement = require "planning.refinement"

local clocked = {}
clocked.__index = clocked

local CELL_S, START_S = 0.06, 0.4 -- sampling time of a visit, and the time of a start

local function planner_of(self, options)
  options.spec, options.cells = self.spec, cell_records.cells(self.spec, self.recording.world_size)
  options.launches = #self.order
  options.seconds = function(cell, strategies) return self.costs:expect(cell, strategies) end
  local planner = explore.new(options)
  for _, plane in ipairs(planner.planes) do
    for _, point in ipairs(plane.points) do
      if not self.recording.of[cell_records.key(cell_records.record(point.cell))] then
        planner:give_up(point.cell)
      end
    end
  end
  return planner
end

local function table_of(self, visits)
  local with = {}
  for key, by_launch in pairs(visits) do with[key] = pooling.row(by_launch) end
  return provisional_table.uncertain(self.spec, self.recording.world_size, with, {})
end

-- The expected losses of the uncertain choices of the results so far, by the key of their cells.
function clocked:uncertain() return table_of(self, self.visits) end

-- `byte_s`: of a visit, for each byte of a strategy's message; nil: as a sweep expects.
-- Has visits (of each cell and strategy, by launch), first_visits (the number of the grid's visited cells),
-- launch (the last one), clock (seconds).
function clocked.new(recording, spec, order, byte_s)
  local self = setmetatable({ recording = recording, spec = spec, order = order, byte_s = byte_s, clock = 0,
    launch = 0, first_visits = 0, visits = {}, history = {}, costs = cost.new(CELL_S) }, clocked)
  self.planner = planner_of(self, { now = function() return self.clock end,
    fits = function(cell, names) return self.clock + self.costs:expect(cell, #names) <= self.ends_at end,
    uncertain_cells = function() return self:uncertain() end })
  return self
end

-- The recorded results of a task in a launch: rows, and records without a time.
local function results_of(self, task, launch)
  local of, with, without = self.recording.of[cell_records.key(cell_records.record(task.cell))], {}, {}
  for _, name in ipairs(task.strategies) do
    local record = of[name] and lib.record_of(of[name], self.order[launch])
    if record then
      with[#with + 1] = record
    else
      without[#without + 1] = cell_records.record(task.cell, name, { reason = "not recorded" })
    end
  end
  return with, without
end

-- Lets the clock go on by the time of a visit.
local function spend(self, task)
  local count = #task.strategies
  local took = self.byte_s and CELL_S + self.byte_s * task.cell.size * count or
    self.costs:expect(task.cell, count)
  self.clock = self.clock + took
  if self.byte_s then self.costs:take(task.cell, count, took) end
end

-- Measures on for `budget_s`.
function clocked:measure(budget_s)
  self.ends_at = self.clock + budget_s
  self.planner:begin(self.ends_at)
  while self.clock + START_S < self.ends_at and self.launch < #self.order
    and self.planner:wants(self.launch + 1) do
    self.launch, self.clock = self.launch + 1, self.clock + START_S
    for task in function() return self.planner:next(self.launch) end do
      local with, without = results_of(self, task, self.launch)
      for _, record in ipairs(with) do
        local key = cell_records.key(record)
        self.visits[key] = self.visits[key] or {}
        self.visits[key][self.launch] = record
      end
      table.insert(self.history, { task.cell, self.launch, with, without })
      spend(self, task)
      if self.planner:is_new(task.cell) then self.first_visits = self.first_visits + 1 end
      self.planner:take(task.cell, self.launch, with, without)
    end
  end
end

-- What `budget_s` more are expected to gain (planning/refinement.lua), by a planner with the same results.
function clocked:expect(budget_s)
  local planner = planner_of(self, { now = function() return 0 end,
    uncertain_cells = function() return {} end })
  for _, visit in ipairs(self.history) do planner:take(table.unpack(visit)) end
  return refinement.expect { planner = planner, launch = self.launch, budget_s = budget_s, start_s = START_S,
    visits = self.visits, placement = self.recording.any.placement,
    seconds = function(cell, strategies) return self.costs:expect(cell, #strategies) end,
    make_table = function(visits) return table_of(self, visits) end }
end

return clocked
