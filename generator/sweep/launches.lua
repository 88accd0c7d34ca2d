-- The launches of a sweep at one TP size on a number of nodes: gets tasks from a planner (explore.lua) and
-- their results from a bench, and starts the bench again after a failure.
--
-- A machine can change while it is measured: ranks move to cores that share no cache, another guest starts or
-- ends. The round trip of a flag shows such a change, before and after each visit. A visit during which it
-- changed does not count. Otherwise each regime of the machine has visits and a planner of its own
-- (tp_size.lua). A sweep ends with the first regime that is finished; the rows are of the regime with the
-- most visits.
local bench = require "conversation.bench"
local cell_records = require "rows.cell_records"
local disturbance = require "sweep.disturbance"
local fail = require "base.fail"
local hosts = require "conversation.hosts"
local lists = require "lists.lists"
local process = require "core.process"
local protocol = require "conversation.protocol"
local sequences = require "base.sequences"

local launches = {}

local ATTEMPTS = 2       -- per task, each with a fresh bench; and per start of a bench
local REPEATED_SHARE = 0.1 -- of the requests within a budget, for results that are disturbed
local GIVE_UP_AFTER = 5  -- failed tasks in a row
local SPOILED = 3        -- cells in which a strategy fails at one TP size, before it is left out
local LOST_IN_A_ROW = 20 -- visits during which the regime changed, before regimes are ignored

local function in_brackets(text) return text ~= "" and (" (%s)"):format(text) or "" end

-- The failure of a start as text. The bench sets up all its strategies, not only those of the spec.
local function describe_start(job, failure)
  local text = failure.reason
  if not text:find(failure.detail, 1, true) then text = text .. in_brackets(failure.detail) end
  local strategy = text:match("in the set%-up of ([%u%d_]+)")
  if not strategy or lists.contains(job.spec.strategies, strategy) then return text end
  return ("%s; the spec does not have %s, which the bench sets up too"):format(text, strategy)
end

-- Starts a bench once. Returns it; nil and the failure.
local function start_once(job, state)
  if not state.command then
    state.command = job.backend.command(job, state.size, hosts.over(state, state.hosts or job.hosts))
    state.arguments = job.backend.arguments(job, state.size)
  end
  local began = process.now()
  local running_bench, failure = bench.start({ command = state.command, program = job.program,
    arguments = state.arguments, world_size = state.size, nodes = state.nodes, identity = job.identity,
    patience = job.patience, start_patience = state:start_patience(job.patience),
    strategies = job.spec.strategies, environment = job.environment })
  if not running_bench then return nil, failure end
  state.devices, state.unavailable = running_bench.devices, running_bench.unavailable
  state.start_s, state.started_at = process.now() - began, state.started_at or process.now()
  return running_bench
end

-- Starts a bench, in any regime, with a second attempt. Returns nil if the budget ends before one has
-- started, and results exist; else, if none starts, nil with the reason in the state.
local function start(job, state)
  for attempt = 1, ATTEMPTS do
    local running_bench, failure = start_once(job, state)
    if running_bench then return running_bench end
    local text, has_time = describe_start(job, failure), state:can_start()
    if failure.is_final or attempt == ATTEMPTS or not (has_time or state:has_results()) then
      state:refuse(failure.reason, text)
      return nil
    end
    job.progress:print(("gentables: %s: %s; %s"):format(state.name, text,
      has_time and "the bench is started again" or "no time is left for another start"))
    if not has_time then return nil end
  end
end

local function show(job, cell, best)
  local text = cell_records.describe(cell)
  if best then text = ("%s: %s %.2f us"):format(text, best.strategy, best.time_us) end
  job.progress:show(text)
end

-- The limits of a request, with the remaining time of a budget.
local function limits_now(job, state)
  if not state.ends_at then return job.limits end
  local left_us = math.max(1, math.floor((state.ends_at - process.now()) * 1e6))
  return sequences.merged({ left_us = left_us }, job.limits)
end

-- Drops from a result the strategies for which the bench had no time left. Returns whether there are any.
local function drop_unreached(result)
  local kept = sequences.filter(result.no_time, function(record)
    return record.reason ~= protocol.BUDGET_SPENT
  end)
  local is_late = #kept < #result.no_time
  result.no_time = kept
  return is_late
end

-- Measures strategies in a cell. Returns { rows, no_time, is_late }, or nil and the failure. `is_late`: the
-- budget ended before all strategies had a time.
local function request(job, state, running_bench, cell, strategies)
  local best
  show(job, cell)
  job.requests = job.requests + 1
  local began = process.now()
  local limits = limits_now(job, state)
  local result, failure = running_bench:measure(job.requests, cell, strategies, limits, function(record)
    if not best or record.time_us < best.time_us then best = record end
    show(job, cell, best)
  end)
  local took = process.now() - began
  state.measured_s = state.measured_s + took
  if not result then return nil, failure end
  result.is_late = drop_unreached(result)
  if not result.is_late then state.cost:take(cell, #strategies, took) end
  return result
end

-- Measures the disturbed strategies of a result again, if there is time. Returns the result with the better
-- of both; nil and the failure if the bench failed.
local function repeat_disturbed(job, state, regime, running_bench, cell, result)
  local again = regime.disturbance:to_repeat(result.rows)
  if result.is_late or #again == 0 or not state:fits(cell, again) then return result end
  if state.ends_at and job.repeated > REPEATED_SHARE * job.requests then return result end
  job.repeated = job.repeated + 1
  local repeated, failure = request(job, state, running_bench, cell, again)
  if not repeated then return nil, failure end
  disturbance.combine(result, repeated)
  result.is_late = repeated.is_late
  return result
end

-- Runs one task on the bench. Returns the same as `request`.
local function run_task(job, state, regime, running_bench, task)
  local wanted, no_time = {}, {}
  for _, strategy in ipairs(task.strategies) do
    local reason = running_bench.unavailable[strategy]
    if reason then
      no_time[#no_time + 1] = cell_records.record(task.cell, strategy, { reason = reason })
    else
      wanted[#wanted + 1] = strategy
    end
  end
  if #wanted == 0 then return { rows = {}, no_time = no_time } end
  local result, failure = request(job, state, running_bench, task.cell, wanted)
  if result then
    result, failure = repeat_disturbed(job, state, regime, running_bench, task.cell, result)
  end
  if not result then return nil, failure end
  state.placement = running_bench.placement
  table.move(result.no_time, 1, #result.no_time, #no_time + 1, no_time)
  return { rows = result.rows, no_time = no_time, is_late = result.is_late }
end

local function report_failure(job, task, failure, last)
  local goes_on = not last and "tried again with a new bench"
    or failure.culprit and ("%s stays without a time"):format(failure.culprit) or "it stays without a time"
  job.progress:print(("gentables: %s: %s%s; %s"):format(cell_records.describe(task.cell), failure.reason,
    in_brackets(failure.detail), goes_on))
end

-- Measures one task in a regime. Returns the bench that still runs (or nil) and the result; nil and the
-- failure if all attempts failed, with failure.culprit if all of them ended in the turn of the same strategy
-- of several; false if the regime changed meanwhile, or no bench starts any more.
local function measure(job, state, regime, running_bench, task)
  local culprit
  for attempt = 1, ATTEMPTS do
    running_bench = running_bench or start(job, state)
    if not running_bench or state:regime_of(running_bench) ~= regime then return running_bench, false end
    local result, failure = run_task(job, state, regime, running_bench, task)
    if result and state:regime_of(running_bench) ~= regime then return running_bench, false end
    if result then return running_bench, result end
    if attempt == 1 then culprit = failure.strategy end
    if culprit ~= failure.strategy then culprit = nil end
    if attempt == ATTEMPTS and #task.strategies > 1 then failure.culprit = culprit end
    report_failure(job, task, failure, attempt == ATTEMPTS)
    if attempt == ATTEMPTS then return nil, nil, failure end
    running_bench = nil
  end
end

-- The task without a strategy.
local function without(task, strategy)
  local strategies = sequences.filter(task.strategies, function(name) return name ~= strategy end)
  return sequences.merged(task, { strategies = strategies })
end

-- Leaves out the strategies that have failed in SPOILED cells.
local function without_spoilers(state, regime, task)
  for strategy, spoiled in pairs(state.spoiled) do
    local rest = spoiled.cells >= SPOILED and without(task, strategy) or task
    if #rest.strategies < #task.strategies then
      state.leave_out(regime, task.cell, strategy, ("not measured after failures in %d cells: %s"):format(
        spoiled.cells, spoiled.reason))
      task = rest
    end
  end
  return task
end

-- As `measure`, for a task without strategies that have failed in many cells; if one strategy ends the bench
-- in each attempt, the others are measured without it. Also returns the task that was measured last.
local function measure_without_culprits(job, state, regime, running_bench, task)
  task = without_spoilers(state, regime, task)
  while #task.strategies > 0 do
    local result, failure
    running_bench, result, failure = measure(job, state, regime, running_bench, task)
    local culprit = failure and failure.culprit
    if not culprit then return running_bench, result, failure, task end
    local spoiled = state.spoiled[culprit] or { cells = 0 }
    state.spoiled[culprit] = { cells = spoiled.cells + 1, reason = failure.reason }
    state.leave_out(regime, task.cell, culprit, failure.reason)
    job.incomplete = job.incomplete + 1
    task = without(task, culprit)
  end
  return running_bench, { rows = {}, no_time = {} }, nil, task
end

-- Ends a bench, and prints a message if it did not end well.
local function stop(job, state, running_bench)
  if not running_bench then return end
  local ended, failure = running_bench:stop()
  state:take_end(running_bench.devices)
  if ended then return end
  job.progress:print(("gentables: %s: the bench did not end well: %s%s; its results count"):format(
    state.name, failure.reason, in_brackets(failure.detail)))
end

local function give_up(job, state, running_bench)
  stop(job, state, running_bench)
  fail.work("%d cells in a row failed; results are kept, and the same command resumes there",
    job.failed_in_a_row)
end

-- Counts a lost visit; after LOST_IN_A_ROW of them regimes are ignored.
local function lose_visit(job, state)
  state.lost_in_a_row = (state.lost_in_a_row or 0) + 1
  if state.lost_in_a_row < LOST_IN_A_ROW then return end
  state.has_one_regime = true
  job.progress:print(("gentables: %s: the machine changes all the time (a round trip between ranks takes "
    .. "%s us); rows mix all regimes"):format(state.name, state:roundtrips()))
end

-- The visits that are known to be needed: of the states that run now, and of later ones.
local function rest_of(job)
  local rest = job.later
  for _, outlook in pairs(job.outlooks) do rest = rest + outlook end
  return rest
end

-- Runs the tasks of one launch, as long as the regime stays. Returns the bench if it still runs.
local function run_tasks(job, state, regime, running_bench)
  for task in function() return regime.planner:next(regime.launch) end do
    local result, failure, rest
    running_bench, result, failure, rest = measure_without_culprits(job, state, regime, running_bench, task)
    if result == false then
      if running_bench then lose_visit(job, state) end
      return running_bench
    elseif result then
      if result.is_late then state:end_budget() end
      if #result.rows + #result.no_time > 0 then
        state:take_visit(regime, task.cell, result.rows, result.no_time)
      end
      job.failed_in_a_row, state.lost_in_a_row = 0, 0
    else
      state.take_failure(regime, rest, failure)
      job.failed, job.failed_in_a_row = job.failed + 1, job.failed_in_a_row + 1
    end
    job.outlooks[state] = regime.planner:outlook()
    job.progress:step(rest_of(job))
    if job.failed_in_a_row == GIVE_UP_AFTER then give_up(job, state, running_bench) end
  end
  return running_bench
end

-- Prints, once, that the machine is in another regime than that of its rows.
local function print_regime(job, state, regime)
  if not state:leaves_rows(regime) or state.has_printed_regime then return end
  state.has_printed_regime = true
  job.progress:print(("gentables: %s: the machine is in another regime than when its rows were measured "
    .. "(a round trip between ranks takes %.2f us, and took %.2f); all cells are measured again")
    :format(state.name, regime.roundtrip_us, state.old.roundtrip_us))
end

-- Runs launches until one regime's planner needs no more, the budget ends, or no bench starts; then the state
-- has the reason. `job` has program, identity, patience, machine, launcher, limits, progress and counts;
-- `state` is one of tp_size.lua.
function launches.run(job, state)
  local regime
  repeat
    local running_bench = start(job, state)
    if running_bench then
      regime = state:regime_of(running_bench)
      print_regime(job, state, regime)
      regime.launch = regime.launch + 1
      state.launches = state.launches + 1
      running_bench = run_tasks(job, state, regime, running_bench)
      stop(job, state, running_bench)
    end
    if state.refusal then return end
    regime = regime or state:chosen()
  until not (state:can_start() and regime.planner:wants(regime.launch + 1))
  state.cut_off = state.ends_at ~= nil and regime.planner:is_cut_off(regime.launch + 1)
  if not state.cut_off then state.ended_in = regime end
end

return launches
