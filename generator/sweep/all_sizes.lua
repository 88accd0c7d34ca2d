-- A sweep over all TP sizes, on each number of nodes. For each (tp_size.lua), rows and an unfinished journal
-- of the same machine, bench and limits are kept. A planner (explore.lua) chooses the points to measure, in
-- several launches of the bench (launches.lua), and each answer is journaled. The files of rows are written,
-- and the journals removed, after all TP sizes are finished, so that a table is never made from half a sweep.
-- If no bench starts at a TP size, its files and its journal stay as they are, the others go on, and the
-- sweep prints the reason.
local fail = require "base.fail"
local hosts = require "conversation.hosts"
local journal = require "sweep.journal"
local leftovers = require "sweep.leftovers"
local launches = require "sweep.launches"
local outcome = require "sweep.outcome"
local cost = require "planning.cost"
local process = require "core.process"
local progress = require "system.progress"
local machines = require "machine.machines"
local sequences = require "base.sequences"
local screening = require "sweep.screening"
local concurrent_groups = require "sweep.concurrent_groups"
local tp_size = require "sweep.tp_size"
local writing = require "sweep.writing"

local all_sizes = {}

local MIN_CELL_US = 1000      -- for one task, however small the budget
local TASKS_IN_A_BUDGET = 500 -- at least, so that one does not overrun it
local PRECISION = 0.02        -- half width of an interval that is narrow enough, as a share of the median
local START_S = 1             -- expected start time of a launch, for the least budget
local WRITE_SHARE = 0.02      -- of a budget, reserved for the time before and after measuring
local LEAST_PART = 0.1        -- of a computation, after which its time is known
local RESERVE_S = 30          -- of an allocation, for the end of the sweep and for a job that ends its script

-- ---- writing ----------------------------------------------------------------------------------

-- Removes journals without cells.
local function drop_empty_journals(job)
  for _, state in ipairs(job.states) do
    local begun = state.journal
    if begun and not begun.holds_cells and not state.continues then
      begun:remove()
      state.journal = nil
    end
  end
end

-- Writes the files of all TP sizes that have changed, then removes the journals, except those of TP sizes at
-- which no bench starts any more. If it is cut off between two files, the journals are still there, and the
-- next sweep writes the files again. Returns the files that have new rows.
local function write_sizes(job)
  process.hold_signals(true)
  local written = sequences.map(job.states, function(state)
    return writing.write(state, job) and state.csv or nil
  end)
  drop_empty_journals(job)
  for _, state in ipairs(job.states) do
    if state.journal and not state.refusal then state.journal:remove() end
  end
  process.hold_signals(false)
  return written
end

-- ---- measuring --------------------------------------------------------------------------------

local function most_nodes(open)
  return math.max(1, table.unpack(sequences.field(open, "nodes")))
end

-- What a second at a TP size takes from the budget: a second, or as many node-seconds as it has nodes.
local function price(job, state) return job.budget_node_s and state.nodes or 1 end

-- The seconds of a sweep with --budget-node-seconds, with the same node-seconds for each of its TP sizes.
local function take_node_seconds(job, open)
  if not job.budget_node_s or #open == 0 then return end
  job.budget_s, job.budget_name = 0, "--budget-node-seconds"
  for _, state in ipairs(open) do job.budget_s = job.budget_s + job.budget_node_s / #open / state.nodes end
end

-- Ends the budget of a sweep on the nodes of an allocation before the allocation ends.
local function fit_allocation(job)
  local left_s = job.hosts and hosts.seconds_left()
  if not left_s or job.budget_s and job.budget_s + RESERVE_S <= left_s then return end
  local most_s = math.max(0, left_s - RESERVE_S)
  if job.budget_node_s then job.budget_node_s = job.budget_node_s * most_s / job.budget_s end
  job.budget_s, job.budget_name = most_s, "the allocation's time of"
  print(("budget: %d s, because the allocation ends in %d s"):format(job.budget_s, left_s))
end

-- If the budget is too small for the starts of all launches and one sample of every first point, enlarges the
-- default budget, and raises for a given one.
local function check_budget(job, open)
  if not job.budget_s then return end
  local least = 0
  for _, state in ipairs(open) do
    local planner = (state:chosen() or state).planner
    least = least + price(job, state)
      * (job.spec.limits.launches * START_S + tp_size.STOP_S + planner:cost_of_a_round(cost.least))
  end
  least = least / (1 - WRITE_SHARE)
  local given = job.budget_node_s or job.budget_s
  if given >= least then return end
  if job.budget_name then
    fail.input("%s %g is too small for one sample per cell; about %d %s, or fewer TP sizes, are required",
      job.budget_name, given, math.ceil(least), job.budget_node_s and "node-seconds" or "seconds")
  end
  print(("budget: %d s, because the default of %g s is too small for one sample per cell"):format(
    math.ceil(least), job.budget_s))
  job.budget_s = math.ceil(least)
end

-- The most sampling time of a visit, in microseconds, within a budget (nil: none).
local function cell_us(job, budget_s)
  local limit = job.spec.limits.cell_us
  if not budget_s then return limit end
  return math.max(MIN_CELL_US, math.min(limit, math.floor(budget_s * 1e6 / TASKS_IN_A_BUDGET)))
end

local function limits_of(job)
  return sequences.merged({ precision = job.exhaustive and 0 or PRECISION }, job.spec.limits,
    { cell_us = cell_us(job, job.budget_s) })
end

local function print_what_is_measured(job, state)
  job.progress:clear()
  local open, total = state:count_open()
  if job.exhaustive then
    print(("%s: %d of %d cells to measure"):format(state.name, open, total))
  else
    print(("%s: %d of %d cells open; measuring those that may change a choice"):format(state.name, open,
      total))
  end
  io.stdout:flush()
end

-- A function of the expected time left, in seconds, while `states` run, before `waiting` batches; it returns
-- nil as long as too little is known. Each later batch is expected to take as long as the last one of which
-- enough is known, without its first start; and the present one, until then, longer by the factor by which
-- that is late.
local function time_left(job, states, waiting)
  local own
  return function()
    local began, rest = process.now(), nil
    for _, state in ipairs(states) do
      local of_state = state:expected_rest()
      rest = of_state and math.max(rest or 0, of_state) or rest
      began = math.min(began, state.started_at or began)
    end
    local elapsed = process.now() - began
    if rest then
      own = own or { known_at = math.max(elapsed, 1e-3) }
      own.all_s, job.last_batch = elapsed + rest, own
    end
    local last = job.last_batch
    if not last then return nil end
    local all_s = last.all_s * (rest and 1 or math.max(1, elapsed / last.known_at))
    return math.max(0, all_s - elapsed) + waiting * all_s
  end
end

-- Measures at all TP sizes, in batches of those that run at once. Each batch has its share of the remaining
-- budget, with --budget-node-seconds one for each of its TP sizes.
local function measure(job, batches)
  if job.budget_s then job.progress:limit(job.began_at, job.budget_s) end
  local shares, spent, since, at_price = 0, 0, job.began_at, 1 -- `spent`, of the budget, until `since`
  local function shares_of(states) return job.budget_node_s and #states or 1 end
  for _, states in ipairs(batches) do shares = shares + shares_of(states) end
  for i, states in ipairs(batches) do
    local share, now = nil, process.now()
    job.progress:expect(time_left(job, states, #batches - i))
    spent, since = spent + (now - since) * at_price, now
    at_price = shares_of(states) * price(job, states[1])
    if job.budget_s then
      local left = (job.budget_node_s or job.budget_s) * (1 - WRITE_SHARE) - spent
      share = tp_size.share_of(left / price(job, states[1]), shares)
    end
    shares = shares - shares_of(states)
    job.outlooks = {}
    for _, state in ipairs(states) do
      job.outlooks[state] = state.planner:outlook()
      job.later = job.later - job.outlooks[state]
      print_what_is_measured(job, state)
      state:begin(job.limits.cell_us / 1e6, share)
    end
    concurrent_groups.run(states, function(state)
      launches.run(job, state)
      job.outlooks[state] = 0
    end)
  end
  job.progress:clear()
end

-- Raises, before anything is written, if no bench started at all, or if the rows of a TP size at which none
-- starts are of another machine: a table is never made of two machines. Returns the states without a bench.
local function check_refused(job, open)
  local refused = sequences.filter(open, function(state) return state.refusal end)
  local has_started = sequences.any(job.states, function(state) -- or in an interrupted sweep, with a journal
    return state.launches > 0 or (state.taken_up and not state.refusal)
  end)
  if #refused == 0 then return {} end
  if not has_started then
    drop_empty_journals(job)
    outcome.fail_for(job, refused, "")
  end
  for _, state in ipairs(refused) do
    local other = state:other_machine()
    if other then
      drop_empty_journals(job)
      local words = "; nothing is written, because %s has rows of %s, which differs in %s; another --arch or "
        .. "--out is required"
      outcome.fail_for(job, refused, words:format(state.csv, machines.describe(other),
        machines.differences(other, state.machine)))
    end
  end
  return refused
end

-- Computes what --refine is expected to gain at a TP size within `budget_s`; the bar shows it. `waiting`: the
-- number of TP sizes that follow, which are expected to take as long.
local function expect_refinement(job, state, budget_s, waiting)
  local began, done, text = process.now(), 0, state.name .. ": what --refine would gain"
  job.progress:wait(text, function()
    local elapsed = process.now() - began
    return done >= LEAST_PART and elapsed / done * (1 - done + waiting) or nil
  end)
  state:expect_refinement(cell_us(job, job.refine_s) / 1e6, budget_s, function(part)
    done = part
    job.progress:show(text)
  end)
end

-- Collects the rows of all TP sizes and, where the budget ended the sweep, what --refine is expected to gain.
local function settle(job)
  local cut_off = 0
  for _, state in ipairs(job.states) do
    state:settle(job)
    if state:ended_by(job) then cut_off = cut_off + 1 end
  end
  local unfinished = sequences.filter(job.exhaustive and {} or job.states, function(state)
    return state.cut_off and #state.with > 0
  end)
  for i, state in ipairs(unfinished) do
    local budget_s = tp_size.share_of(job.refine_s * (1 - WRITE_SHARE), cut_off)
    expect_refinement(job, state, budget_s, #unfinished - i)
  end
  job.progress:clear()
end

-- Runs the sweep that `job` describes: { out, spec, recorded_spec (of provenance.of_spec), choice (of
-- choose.settings, for the planner), arch, backend, placements, hosts, network, budget_s (nil: no limit),
-- budget_node_s (in place of budget_s, or nil), budget_name (the option that gave it; nil: it is the
-- default), screen (whether to look for slow nodes), refine_s (the budget of --refine without --budget),
-- exhaustive, refine, patience, fresh, launcher, launch, program, identity, machine, fingerprint, over_nodes,
-- environment, began_at, after_writing (a function of the paths of files with new rows, or nil) }.
function all_sizes.run(job)
  job.requests, job.repeated, job.failed, job.incomplete, job.failed_in_a_row = 0, 0, 0, 0, 0
  job.states = {}
  for i, placement in ipairs(job.placements) do job.states[i] = tp_size.load(job, placement) end
  outcome.announce(job)
  local open = sequences.filter(job.states, tp_size.is_open)
  take_node_seconds(job, open)
  fit_allocation(job)
  check_budget(job, open)
  job.limits = limits_of(job)
  job.progress, job.later = progress.new(), 0 -- `later`: visits at TP sizes that follow
  job.progress:in_lines()
  job.progress:in_turn()
  for _, state in ipairs(open) do
    job.later = job.later + state.planner:outlook()
    state.journal = state.journal or journal.open(state.part)
    state.journal:begin(state.fingerprint, state.fresh, state.continues)
  end
  job.progress.total = job.later
  if job.screen then screening.run(job, most_nodes(open)) end
  measure(job, concurrent_groups.batches(job, open))
  local refused = check_refused(job, open)
  settle(job)
  local written = write_sizes(job)
  outcome.print(job)
  if job.after_writing and written[1] then job.after_writing(written) end
  local has_rows = sequences.all(job.states, function(state) return #state.with > 0 end) -- every TP size
  if #refused == 0 and has_rows then leftovers.remove(job) end
  outcome.raise(job, refused)
end

return all_sizes
