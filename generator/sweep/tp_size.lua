-- The state of one TP size of a sweep, on one node or on several: its finished rows and unfinished journal,
-- the results of launches, and the records to write (sweep/writing.lua).
--
-- Results of launches are kept by the regime of the machine (launches.lua): { roundtrip_us, planner, visits
-- (key -> { [launch] = row }), why (key -> record without a time), launch (the last one), before (launches of
-- earlier sweeps among them), keeps (whether the finished rows are of it), disturbance (its disturbed
-- results) }. Rows of two regimes are never mixed: if a spec has grown, and the machine is in another regime
-- than that of its rows, all of it is measured again.
local disturbance = require "sweep.disturbance"
local explore = require "planning.explore"
local fail = require "base.fail"
local file = require "core.file"
local journal = require "sweep.journal"
local lists = require "lists.lists"
local cost = require "planning.cost"
local device_states = require "sweep.device_states"
local cell_records = require "rows.cell_records"
local process = require "core.process"
local machines = require "machine.machines"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local provisional_table = require "planning.provisional_table"
local rank_placement = require "lists.rank_placement"
local pooling = require "sweep.pooling"
local refinement = require "planning.refinement"
local sequences = require "base.sequences"
local writing = require "sweep.writing"

local tp_size = {}
tp_size.__index = tp_size

tp_size.STOP_S = 0.5 -- of a budget, reserved for the end of a TP size's last launch
tp_size.LEAST_START_S = 10 -- that a start of the bench may take, whatever is left of a budget

-- ---- earlier results --------------------------------------------------------------------------

-- Why earlier rows cannot be kept.
local function replaced(self, old, job)
  if not machines.same(old.machine, self.machine) then
    return ("replaces the rows of %s; this machine differs in %s"):format(machines.describe(old.machine),
      machines.differences(old.machine, self.machine))
  end
  return ("measures again: changed: %s"):format(provenance.changed_parts(old, job))
end

-- Whether a row is of a shape of the spec, or of one between two of them.
local function is_in_spec(spec, record)
  local function is_within(axis, value) return value >= axis[1] and value <= axis[#axis] end
  return lists.contains(spec.dtypes, record.dtype) and lists.contains(spec.fusions, record.fusion)
    and lists.contains(spec.strategies, record.strategy) and record.size <= spec.limits.message_bytes
    and record.op == spec.table.op and record.mode == spec.table.mode
    and record.num_tokens and record.splits == spec.splits
    and is_within(spec.hidden_sizes, record.hidden_size) and is_within(spec.num_tokens, record.num_tokens)
end

-- Whether a sweep continues on rows that a budget ended; otherwise they count as finished. `resumes`: whether
-- it was interrupted after it had begun to measure.
local function continues(job, old, resumes)
  return old.complete == false and (job.refine or resumes or job.exhaustive and not old.exhaustive)
end

-- Reads the finished rows of this TP size, if they are of the same machine, bench and limits.
function tp_size:take_finished(job, resumes)
  if not file.exists(self.csv) then return end
  if not file.exists(self.json) then
    fail.input("%s: no %s beside it, so the machine of its rows is unknown; --fresh replaces them, "
      .. "--arch host-NAME keeps them", self.csv, self.json:match("[^/]*$"))
  end
  local old, message = provenance.read(self.json)
  if not old then fail.input("%s; --fresh measures again", message) end
  if old.bench and old.bench.merged then
    fail.input("%s: has rows of gentables tune, which a sweep would drop; another --out, or --fresh, which "
      .. "measures again, is required", self.csv)
  end
  if old.fingerprint ~= self.fingerprint then
    self.note = replaced(self, old, job)
    return
  end
  if not provenance.describes(old, fail.unless(file.read(self.csv))) then
    self.note = ("measures again: %s is not of these rows"):format(self.json)
    return
  end
  self.old = old
  local goes_on = continues(job, old, resumes)
  self.was_cut_off = old.complete == false and not goes_on
  for _, record in ipairs(fail.unless(rows.records(self.csv))) do
    self.finished = self.finished + 1
    if is_in_spec(job.spec, record) then
      if goes_on then
        table.insert(self.begun, record)
      else
        self.known[cell_records.key(record)] = record
      end
    end
  end
  for _, entry in ipairs(old.no_time) do
    -- Failures are tried again; the spec has the reasons of cells above a limit.
    if not entry.failed and not entry.skipped then
      local record = cell_records.record(entry, entry.strategy, self.ranks)
      record.reason = entry.reason
      self:take_reason(record)
    end
  end
end

function tp_size:take_reason(record) self.why[cell_records.key(record)] = record end

-- Enters the results of a cell in a launch.
local function note_visit(regime, cell, launch, with, without)
  for _, record in ipairs(with) do
    local key = cell_records.key(record)
    sequences.at(regime.visits, key)[launch], regime.why[key] = record, nil
  end
  for _, record in ipairs(without) do
    local key = cell_records.key(record)
    if not regime.visits[key] then regime.why[key] = record end
  end
  regime.disturbance:take(with)
  regime.planner:take(cell, launch, with, without)
end

-- Enters the rows of a sweep that its budget ended, as visits in launches, of which more may follow.
function tp_size:take_begun()
  if #self.begun == 0 then return end
  self.note = "continues on the rows of an earlier sweep, which its budget ended"
  local regime = self:regime_of { roundtrip_us = self.old.roundtrip_us or 0, placement = self.old.placement }
  local cells = {} -- key -> { cell, launches = { [launch] = records } }
  for _, row in ipairs(self.begun) do
    local cell = cell_records.record(row)
    local key = cell_records.key(cell)
    cells[key] = cells[key] or { cell = cell, launches = {} }
    for launch, record in pairs(pooling.split(row)) do
      table.insert(sequences.at(cells[key].launches, launch), record)
    end
  end
  for _, entry in pairs(cells) do
    for launch, records in pairs(entry.launches) do
      regime.launch = math.max(regime.launch, launch)
      note_visit(regime, entry.cell, launch, records, {})
    end
  end
end

-- Enters the results of a journal, which may be of an earlier spec.
function tp_size:take_journal(found)
  self.continues = true
  for _, cell in ipairs(found.cells) do
    local regime = self:regime_of { roundtrip_us = cell.roundtrip_us }
    local of_spec = sequences.filter(cell.rows, function(record) return is_in_spec(self.job.spec, record) end)
    regime.launch = math.max(regime.launch, cell.launch)
    note_visit(regime, cell.cell, cell.launch, of_spec, cell.no_time)
  end
end

-- ---- regimes ----------------------------------------------------------------------------------

local NO_RESULTS = { visits = {}, why = {} } -- of no regime

-- The rows with a time, and the records without one, those of earlier sweeps included: by key.
local function results_of(self, regime)
  local with, without = {}, {}
  for key, record in pairs(regime.keeps ~= false and self.known or {}) do with[key] = record end
  for key, by_launch in pairs(regime.visits) do with[key] = pooling.row(by_launch) end
  for _, why in ipairs { self.why, regime.why } do
    for key, record in pairs(why) do without[key] = not with[key] and record or nil end
  end
  return with, without
end

-- The expected losses of the uncertain choices of a table of a regime's results.
local function uncertain_cells(self, regime)
  local with, without = results_of(self, regime)
  return provisional_table.uncertain(self.job.spec, self.size, with, without, self.job.choice,
    self.nodes)
end

-- A planner with the earlier results; with `keeps`, also with the finished rows.
local function new_planner(self, keeps)
  local job = self.job
  local planner = explore.new { spec = job.spec, cells = self.cells, launches = job.spec.limits.launches,
    exhaustive = job.exhaustive, now = process.now, ends_at = self.ends_at,
    fits = function(cell, strategies) return self:fits(cell, strategies) end,
    seconds = function(cell, strategies) return self.cost and self.cost:expect(cell, strategies) or 1 end,
    uncertain_cells = function()
      return uncertain_cells(self, self:chosen() or NO_RESULTS)
    end }
  for _, record in pairs(keeps and self.known or {}) do planner:keep(record) end
  for _, record in pairs(self.why) do planner:keep_without(record) end
  return planner
end

-- The number of launches of the finished rows. Later launches have higher numbers, because they are not
-- comparable with these.
local function launches_before(self)
  local most = 0
  for _, record in pairs(self.known) do most = math.max(most, #(record.launches or { record.time_us })) end
  return most
end

local function add_regime(self, roundtrip_us, keeps)
  local before = keeps and launches_before(self) or 0
  local regime = { roundtrip_us = roundtrip_us, visits = {}, why = {}, launch = before, before = before,
    keeps = keeps, planner = new_planner(self, keeps), disturbance = disturbance.new() }
  table.insert(self.regimes, regime)
  return regime
end

-- The regime of a running bench, or of a journal's entry. The round trip between nodes depends on the load of
-- their network, and that between ranks that share cores on the scheduler: then there is one regime only.
function tp_size:regime_of(measured)
  local is_one = self.has_one_regime or self.ranks.nodes or measured.placement == "oversubscribed"
  for _, regime in ipairs(self.regimes) do
    if is_one or provenance.same_regime(measured.roundtrip_us, regime.roundtrip_us) then return regime end
  end
  local of_rows = self.old and self.old.roundtrip_us
  local keeps = is_one or not of_rows or provenance.same_regime(measured.roundtrip_us, of_rows)
  return add_regime(self, measured.roundtrip_us, keeps)
end

-- Whether a regime is not that of the finished rows, which then do not count in it.
function tp_size:leaves_rows(regime) return not regime.keeps and next(self.known) ~= nil end

-- The round trips of all regimes, as text.
function tp_size:roundtrips()
  local words = sequences.map(self.regimes, function(regime) return ("%.2f"):format(regime.roundtrip_us) end)
  return table.concat(words, ", ")
end

-- Whether the earlier rows are finished for the spec, `exhaustive` and `refine`.
local function is_finished(self, job)
  local old = self.old
  if not old or not old.spec or old.spec.hash ~= job.recorded_spec.hash then return false end
  if not self.was_cut_off and old.complete == false then return false end
  if job.exhaustive and not old.exhaustive then return false end
  return not sequences.any(old.no_time, function(entry) return entry.failed end)
end

-- Reads the journal of an earlier sweep, if it counts, and notes the parts that do not.
function tp_size:read_journal(job)
  if job.fresh or not self.journal then return nil end
  local found, problem = journal.read(self.part, self.ranks)
  local count = found and found.damaged or 0
  if count > 0 then
    problem = ("%d damaged record%s ignored"):format(count, count == 1 and " is" or "s are")
  end
  self.journal_note = problem and problem .. "; cells without results are measured again"
  return found
end

-- The state of one TP size of a job on a number of nodes, as spec.placements has them: size, nodes,
-- ranks_per_node, name (such as `TP 8 on 2 nodes`), ranks (fields of its records); csv, json, part (its
-- files); cells; known (key -> finished row), why (key -> record without a time, with its reason); spoiled
-- (strategy -> { cells, reason }: the number of cells in which it alone could not be measured); is_finished
-- (nothing is to be measured); planner (of the earlier results; nil if it is finished); regimes; launches and
-- measured_s (the number of launches, and their measuring time, lost visits included).
function tp_size.load(job, of)
  local size, spans = of.world_size, rank_placement.spans(of.nodes)
  local csv = ("%s/%s.csv"):format(job.out, rank_placement.file_name(size, of.nodes, job.arch))
  local self = setmetatable({ job = job, size = size, nodes = of.nodes, ranks_per_node = of.ranks_per_node,
    name = rank_placement.words(size, of.nodes), ranks = spans and of or { world_size = size }, csv = csv,
    json = provenance.path_of(csv), part = csv .. ".part", known = {}, why = {}, begun = {}, unavailable = {},
    finished = 0, regimes = {}, spoiled = {}, ended = {}, launches = 0, measured_s = 0,
    cells = cell_records.cells(job.spec, size, of.nodes) }, tp_size)
  local on = spans and job.over_nodes or job
  self.machine, self.fingerprint = on.machine, on.fingerprint
  if file.exists(self.part) then self.journal = journal.open(self.part) end
  self.found = writing.provenance_text(self.json)
  local found = self:read_journal(job)
  local usable = found and found.fingerprint == self.fingerprint
  self.fresh = job.fresh or (usable and found.fresh)
  if not self.fresh then self:take_finished(job, usable and #found.cells > 0) end
  self.is_finished = not usable and is_finished(self, job)
  if not self.is_finished then
    self.planner = new_planner(self, true)
    self:take_begun()
    if usable then self:take_journal(found) end
  end
  if found and not usable and #found.cells > 0 then
    self.note = self.note or "starts again: its journal is of another machine, bench or limits"
  end
  self.taken_up = usable and #found.cells > 0
  return self
end

-- Whether a cell is to be measured.
function tp_size:is_open()
  if self.is_finished then return false end
  local regime = self:chosen()
  return regime == nil and self.planner:wants(1) or regime ~= nil and regime.planner:wants(regime.launch + 1)
end

-- The number of the spec's cells without complete results, and of all its cells.
function tp_size:count_open()
  local planner = (self:chosen() or self).planner
  local open = sequences.filter(self.cells, function(cell) return not cell.skip and planner:is_open(cell) end)
  return #open, #self.cells
end

-- The regime of the rows to write: the finished one, else that with the most visits; nil without any.
function tp_size:chosen()
  return self.ended_in
    or sequences.largest(self.regimes, function(regime) return regime.planner:count_visits() end)
end

-- ---- measuring --------------------------------------------------------------------------------

-- Enters the results of a cell in the regime's launch, and journals them.
function tp_size:take_visit(regime, cell, with, without)
  self.journal:add(cell, regime, with, without)
  note_visit(regime, cell, regime.launch, with, without)
end

-- The record of a strategy that failed in a cell, entered where it has no time.
local function note_failure(regime, cell, strategy, reason)
  local record = cell_records.record(cell, strategy, { reason = reason, failed = true })
  if not regime.visits[cell_records.key(record)] then regime.why[cell_records.key(record)] = record end
  return record
end

-- Marks a strategy as failed in a cell; the next sweep tries it again.
function tp_size.leave_out(regime, cell, strategy, reason)
  regime.planner:keep_without(note_failure(regime, cell, strategy, reason))
end

-- Marks a task as permanently failed: its untimed strategies stay unmeasured.
function tp_size.take_failure(regime, task, failure)
  for _, strategy in ipairs(task.strategies) do
    note_failure(regime, task.cell, strategy, failure.reason)
  end
  regime.planner:give_up(task.cell)
end

-- Marks the TP size as one at which no bench starts: that is the reason of all its cells without results; its
-- files and its journal stay. `message`: the reason for the terminal.
function tp_size:refuse(reason, message)
  self.refusal, self.refusal_message = "unavailable: " .. reason, message
  for key, wanted in pairs(cell_records.wanted(self.job.spec, self.cells)) do
    if not self.why[key] then
      wanted.reason, wanted.failed = self.refusal, true
      self.why[key] = wanted
    end
  end
end

-- The machine of the existing rows if it is another one; nil if it is this one, or unknown.
function tp_size:other_machine()
  local old = file.exists(self.csv) and provenance.read(self.json)
  return old and not machines.same(old.machine, self.machine) and old.machine or nil
end

-- Enters the state of the devices at the end of a launch.
function tp_size:take_end(devices)
  for i, device in ipairs(devices) do
    device.at_end = device_states.join(self.ended[i], device.at_end)
    self.ended[i] = device.at_end
  end
end

-- The seconds of a TP size in a sweep of `budget_s` over `sizes` of them.
function tp_size.share_of(budget_s, sizes) return math.max(0, budget_s / sizes - tp_size.STOP_S) end

-- Begins to measure: with `cell_s` seconds of sampling per visit, and, with a budget, `budget_s` in all.
function tp_size:begin(cell_s, budget_s)
  self.cost = cost.new(cell_s)
  if not budget_s then return end
  self.ends_at = process.now() + budget_s
  for _, regime in ipairs(self.regimes) do regime.planner:begin(self.ends_at) end
end

-- Ends the budget now.
function tp_size:end_budget()
  self.ends_at = process.now()
  for _, regime in ipairs(self.regimes) do regime.planner.ends_at = self.ends_at end
end

-- Whether a visit is expected to end within the budget.
function tp_size:fits(cell, strategies)
  if not self.ends_at then return true end
  local count = 0
  for _, name in ipairs(strategies) do count = count + (self.unavailable[name] and 0 or 1) end
  return process.now() + self.cost:expect(cell, count) <= self.ends_at
end

-- The expected time of the rest, in seconds; nil: too little is known.
function tp_size:expected_rest()
  if not self.cost:is_known() then return nil end
  local regime = self:chosen()
  local seconds, starts = (regime or self).planner:expected_rest(function(cell, strategies)
    return self.cost:likely(cell, strategies)
  end)
  return seconds and seconds + starts * (self.start_s or 0)
end

-- Whether a launch can start within the budget, if it takes as long as the last start.
function tp_size:can_start()
  return not self.ends_at or process.now() + (self.start_s or 0) < self.ends_at
end

-- The seconds that a start of the bench may take: `patience_s`, and with a budget what is left of that.
function tp_size:start_patience(patience_s)
  if not self.ends_at then return patience_s end
  return math.min(patience_s, math.max(tp_size.LEAST_START_S, self.ends_at - process.now()))
end

-- Whether cells have results of launches.
function tp_size:has_results()
  local regime = self:chosen()
  return regime ~= nil and next(regime.visits) ~= nil
end

-- Computes what --refine is expected to gain, after settle: with `cell_s` seconds of sampling per visit and
-- `budget_s` in all. Calls tick(part that is done) meanwhile. Afterwards the planner cannot be used for
-- measuring.
function tp_size:expect_refinement(cell_s, budget_s, tick)
  local regime, costs = self:chosen(), self.cost:with_sampling(cell_s)
  self.refine = refinement.expect { planner = regime.planner, launch = regime.launch, visits = regime.visits,
    budget_s = budget_s, start_s = self.start_s or 0, placement = self.placement, tick = tick,
    seconds = function(cell, strategies) return costs:expect(cell, #strategies) end,
    make_table = function(visits)
      return uncertain_cells(self, { visits = visits, why = regime.why, keeps = regime.keeps })
    end }
end

-- What --refine is expected to gain (of refinement.expect); nil if that is unknown.
function tp_size:refinement()
  if self.cut_off then return self.refine end
  return self.old and self.old.refine
end

-- ---- writing ----------------------------------------------------------------------------------

local no_time_fields = { "dtype", "op", "mode", "fusion", "hidden_size", "num_tokens", "strategy", "reason",
  "failed", "skipped" }

-- The cells of the grid that the budget did not reach, as a set of their keys.
function tp_size:unreached_cells()
  local set, planner = {}, (self:chosen() or self).planner
  self.unreached = 0
  for _, cell in ipairs(self.cut_off and self.cells or {}) do
    if not cell.skip and planner:is_unreached(cell) then
      set[cell_records.key(cell_records.record(cell))], self.unreached = true, self.unreached + 1
    end
  end
  return set
end

-- Collects the records of the files, in order: `with` a time, on the spec's grid or between its lines, and
-- `without`. If the files are `current`, they are not written, and `with` is only counted. `derived`: the
-- number of times of the grid that were not measured because they are unlikely to change a choice.
-- `unreached`: the number of cells that the budget did not reach, in whole or in part.
function tp_size:settle(job)
  local regime = self:chosen() or NO_RESULTS
  local all, why = results_of(self, regime)
  self.with, self.without = {}, {}
  for _, record in pairs(all) do table.insert(self.with, record) end
  self.current = self.is_finished and self.finished == #self.with
  if self.current then return end
  self.disturbed = disturbance.marks(regime, all, self.old and self.old.disturbed, self.ranks)
  local unreached = self:unreached_cells()
  for key, wanted in pairs(cell_records.wanted(job.spec, self.cells)) do
    if wanted.skip then
      wanted.reason, wanted.skipped = wanted.skip, true
      table.insert(self.without, wanted)
    elseif not all[key] then
      if why[key] then
        table.insert(self.without, why[key])
      elseif not unreached[cell_records.key(cell_records.record(wanted))] then
        self.derived = (self.derived or 0) + 1
      end
    end
  end
  table.sort(self.with, cell_records.before)
  table.sort(self.without, cell_records.before)
  for i, record in ipairs(self.without) do self.without[i] = sequences.pick(record, no_time_fields) end
end

-- The budget, in seconds, that ended the sweep of the rows to write; nil: none did, and they are complete. 0:
-- it is unknown, because earlier versions did not record it.
function tp_size:ended_by(job)
  if self.cut_off then return job.budget_s end
  local regime = self:chosen()
  local stays = self.was_cut_off and next(self.known) and (not regime or regime.keeps)
  return stays and (self.old.budget_s or 0) or nil
end

return tp_size
