-- The expected gain of `sweep --refine` (planning/refinement.lua) agrees with the actual one, played on
-- recorded rows: a sweep that its budget ended, then its refinement with the other recorded launches. The
-- budgets are small, because the recordings have few launches and points. With GENTABLES_NIGHTLY=1 more of
-- them are played.
local lu = require "luaunit"
local cell_records = require "rows.cell_records"
local cost = require "planning.cost"
local explore = require "planning.explore"
local lib = require "recorded.lib"
local pooling = require "sweep.pooling"
local provisional_table = require "planning.provisional_table"
local refinement = require "planning.refinement"

local NIGHTLY = os.getenv "GENTABLES_NIGHTLY" == "1"
local CELL_S, START_S = 0.06, 0.4 -- sampling time of a visit, and the time of a start

local function count(set)
  local total = 0
  for _ in pairs(set) do total = total + 1 end
  return total
end

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

-- Goes on to measure for `budget_s`. `history` gets each { cell, launch, with, without }.
local function measure(self, budget_s)
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
      self.clock = self.clock + self.costs:expect(task.cell, #task.strategies)
      self.planner:take(task.cell, self.launch, with, without)
    end
  end
end

-- The expectation after the sweep so far, by a planner with the same results.
local function expect(self, budget_s)
  local planner = planner_of(self, { now = function() return 0 end,
    uncertain_cells = function() return {} end })
  for _, visit in ipairs(self.history) do planner:take(table.unpack(visit)) end
  return refinement.expect { planner = planner, launch = self.launch, budget_s = budget_s, start_s = START_S,
    visits = self.visits, placement = self.recording.any.placement,
    seconds = function(cell, strategies) return self.costs:expect(cell, #strategies) end,
    make_table = function(visits) return table_of(self, visits) end }
end

-- Plays a sweep and its refinement. Returns the expectation, and { uncertain, settles, seconds } as played.
local function play(recording, seed, first_s, more_s)
  local self = { recording = recording, spec = lib.spec(recording), clock = 0, launch = 0, visits = {},
    history = {}, order = lib.shuffled(#recording.any.launches, seed), costs = cost.new(CELL_S) }
  self.spec.num_tokens = { 1, 4, 16, 64, 256 }
  self.planner = planner_of(self, { now = function() return self.clock end,
    fits = function(cell, names) return self.clock + self.costs:expect(cell, #names) <= self.ends_at end,
    uncertain_cells = function() return table_of(self, self.visits) end })
  measure(self, first_s)
  local before, expected, began = count(table_of(self, self.visits)), expect(self, more_s), self.clock
  lu.assertEquals(expected.uncertain, before)
  measure(self, more_s)
  return expected, { uncertain = before, settles = before - count(table_of(self, self.visits)),
    seconds = self.clock - began }
end

-- The means over `seeds` plays agree within a factor, and one choice.
local function agrees(name, seeds, first_s, more_s, factor)
  local recording = lib.read(os.getenv "SOURCE" .. "/tests/recorded/" .. name)
  local uncertain, expected_sum, settled_sum = 0, 0, 0
  for seed = 1, seeds do
    local expected, played = play(recording, seed, first_s, more_s)
    print(("%s, seed %d: of %d uncertain %d expected, %d settled; %.1f s expected, %.1f s taken"):format(name,
      seed, played.uncertain, expected.settles, played.settles, expected.seconds, played.seconds))
    lu.assertTrue(expected.seconds <= more_s + 0.1)
    lu.assertTrue(expected.settles <= played.uncertain)
    uncertain, expected_sum = uncertain + played.uncertain, expected_sum + expected.settles
    settled_sum = settled_sum + played.settles
  end
  local words = ("of %d uncertain %d expected, %d settled"):format(uncertain, expected_sum, settled_sum)
  lu.assertTrue(expected_sum <= factor * settled_sum + seeds, words)
  lu.assertTrue(settled_sum <= factor * expected_sum + seeds, words)
end

local tests = {}

function tests.test_ranks_that_share_cores()
  agrees("benchmark.tp4.host.csv", NIGHTLY and 12 or 3, 4, 8, 1.5)
end

function tests.test_a_sweep_that_hardly_began()
  if NIGHTLY then agrees("benchmark.tp2.host.csv", 8, 3, 6, 2) end
end

-- The longer the first sweep, the less is left to settle.
function tests.test_a_sweep_that_almost_ended()
  if NIGHTLY then agrees("benchmark.tp2.host.csv", 8, 12, 12, 2) end
end

return require "suites" { { "refinement", tests } }
