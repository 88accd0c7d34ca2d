-- A sweep: for each TP size (tp_size.lua), what the rows and an unfinished journal hold for the same machine,
-- bench and limits is kept; of the rest, a planner (explore.lua) says which points to measure, in several
-- launches of the bench (launches.lua), and each answer is journaled. Only when all TP sizes are finished the
-- rows files are written and the journals removed, so that a table is never made from half a sweep. A TP size
-- at which no bench starts holds nobody back: its files and its journal stay as they are, and it is told why.
local fail = require "base.fail"
local journal = require "sweep.journal"
local launches = require "sweep.launches"
local outcome = require "sweep.outcome"
local pace = require "sweep.cost"
local process = require "core.process"
local progress = require "system.progress"
local provenance = require "rows.provenance"
local worlds = require "sweep.tp_size"

local all_sizes = {}

local MIN_CELL_US = 1000      -- for one task, however small the budget
local TASKS_IN_A_BUDGET = 100 -- at least, so that one does not overrun it
local PRECISION = 0.02        -- half an interval that is narrow enough, as a share of the median
local START_S = 1             -- that a launch takes to start, for what a budget has to hold at least
local STOP_S = 0.5            -- of a budget, that is kept for the end of a TP size's last launch
local WRITE_SHARE = 0.02      -- of a budget, that is kept for what comes before and after measuring

-- ---- writing ----------------------------------------------------------------------------------

-- Journals that hold nothing go.
local function drop_empty_journals(job)
  for _, world in ipairs(job.worlds) do
    local begun = world.journal
    if begun and not begun.holds_cells and not world.continues then
      begun:remove()
      world.journal = nil
    end
  end
end

-- Writes the files of all TP sizes that have changed; after that the journals go, but for what was measured
-- where no bench starts any more. Should it be cut off between two files, the journals are still there, and
-- the next sweep writes them again.
local function write_worlds(job)
  process.hold_signals(true)
  for _, world in ipairs(job.worlds) do
    world:settle(job)
    world:write(job)
  end
  drop_empty_journals(job)
  for _, world in ipairs(job.worlds) do
    if world.journal and not world.refusal then world.journal:remove() end
  end
  process.hold_signals(false)
end

-- ---- measuring --------------------------------------------------------------------------------

-- The worlds with something to measure.
local function open_worlds(job)
  local open = {}
  for _, world in ipairs(job.worlds) do
    if world:is_open() then open[#open + 1] = world end
  end
  return open
end

-- A budget has to hold a start of each launch, and one sample of every first point, by its bytes.
local function check_budget(job, open)
  if not job.budget_s then return end
  local least = 0
  for _, world in ipairs(open) do
    local planner = (world:chosen() or world).planner
    least = least + job.spec.limits.launches * START_S + STOP_S + planner:cost_of_a_round(pace.least)
  end
  least = least / (1 - WRITE_SHARE)
  if job.budget_s >= least then return end
  fail.input("--budget %g is too small for one sample per cell; %d seconds would do, as far as the bytes of "
    .. "the messages tell, or fewer TP sizes", job.budget_s, math.ceil(least))
end

local function limits_of(job)
  local limits = { precision = job.exhaustive and 0 or PRECISION }
  for name, limit in pairs(job.spec.limits) do limits[name] = limit end
  if job.budget_s then
    local most = math.floor(job.budget_s * 1e6 / TASKS_IN_A_BUDGET)
    limits.cell_us = math.max(MIN_CELL_US, math.min(limits.cell_us, most))
  end
  return limits
end

local function say_what_is_measured(job, world)
  job.progress:clear()
  local open, total = world:count_open()
  if job.exhaustive then
    print(("TP %d: %d of %d cells to measure"):format(world.size, open, total))
  else
    print(("TP %d: %d of %d cells are open, to be measured where it matters"):format(world.size, open, total))
  end
  io.stdout:flush()
end

-- Measures at all TP sizes, each with its share of what is left of the budget.
local function measure(job, open)
  for i, world in ipairs(open) do
    say_what_is_measured(job, world)
    local share
    if job.budget_s then
      local left = job.budget_s * (1 - WRITE_SHARE) - (process.now() - job.began_at)
      share = math.max(0, left / (#open - i + 1) - STOP_S)
    end
    world:begin(job.limits.cell_us / 1e6, share)
    launches.run(job, world)
  end
  job.progress:clear()
end

-- Raises, before anything is written, where no bench started at all; or where the rows of a TP size at which
-- none does are another machine's, for no table is made of two machines.
local function check_refused(job, open)
  local refused, has_started = {}, false
  for _, world in ipairs(open) do
    if world.refusal then refused[#refused + 1] = world end
  end
  for _, world in ipairs(job.worlds) do -- now, or in a sweep that was cut off with all of it in a journal
    has_started = has_started or world.launches > 0 or (world.taken_up and not world.refusal)
  end
  if #refused == 0 then return {} end
  if not has_started then
    drop_empty_journals(job)
    outcome.fail_for(refused, "")
  end
  for _, world in ipairs(refused) do
    local other = world:other_machine(job)
    if other then
      drop_empty_journals(job)
      local words = "; nothing is written, for %s has the rows of %s: another --arch or --out would be right"
      outcome.fail_for(refused, words:format(world.csv, provenance.describe(other)))
    end
  end
  return refused
end

-- Runs the sweep that `job` describes: { out, spec, spec_hash, arch, backend, sizes, budget_s, exhaustive,
-- patience, fresh, launcher, program, identity, machine, fingerprint, environment, began_at }.
function all_sizes.run(job)
  job.asked, job.failed, job.incomplete, job.failed_in_a_row = 0, 0, 0, 0
  job.worlds = {}
  for i, size in ipairs(job.sizes) do job.worlds[i] = worlds.load(job, size) end
  outcome.announce(job)
  local open = open_worlds(job)
  check_budget(job, open)
  job.limits = limits_of(job)
  job.progress = progress.new(0)
  for _, world in ipairs(open) do
    job.progress.total = job.progress.total + world.planner:outlook()
    world.journal = world.journal or journal.open(world.part)
    world.journal:begin(job.fingerprint, world.fresh, world.continues)
  end
  measure(job, open)
  local refused = check_refused(job, open)
  write_worlds(job)
  outcome.print(job)
  outcome.raise(job, refused)
end

return all_sizes
