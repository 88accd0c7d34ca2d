-- gentables sweep: measures what a spec asks for and is not there yet, and writes the rows and where they
-- come from.
--
-- For each TP size (sweep/tp_size.lua): what the rows and an unfinished journal hold for the same machine,
-- bench and limits is kept; of the rest, a planner (sweep/explore.lua) says which points to measure, in
-- several launches of the bench (sweep/launches.lua), and each answer is journaled. Only when all TP sizes
-- are finished the rows files are written and the journals removed, so that a table is never made from half a
-- sweep. A TP size at which no bench starts holds nobody back: its files and its journal stay as they are,
-- and it is told why.
local backends = require "conversation.backends"
local bench = require "conversation.bench"
local fail = require "base.fail"
local file = require "core.file"
local incumbents = require "consult.incumbent"
local journal = require "sweep.journal"
local launches = require "sweep.launches"
local lists = require "lists.lists"
local pace = require "sweep.cost"
local plan = require "rows.cells"
local process = require "core.process"
local progress = require "system.progress"
local provenance = require "rows.provenance"
local spec = require "rows.spec"
local system = require "core.system"
local worlds = require "sweep.tp_size"

local sweep = {}

local MIN_CELL_US = 1000      -- for one task, however small the budget
local TASKS_IN_A_BUDGET = 100 -- at least, so that one does not overrun it
local PRECISION = 0.02        -- half an interval that is narrow enough, as a share of the median
local START_S = 1             -- that a launch takes to start, for what a budget has to hold at least
local STOP_S = 0.5            -- of a budget, that is kept for the end of a TP size's last launch
local WRITE_SHARE = 0.02      -- of a budget, that is kept for what comes before and after measuring

sweep.summary = "Measures what a spec asks for and is not there yet: spec -> rows."
sweep.positional = { name = "SPEC", min = 0, max = 1, help = "what to sweep (default: DIR/spec.lua)" }
sweep.options = {
  { name = "out", value = "DIR", help = "where the rows are and go", required = true },
  { name = "arch", value = "A", help = "name for this machine's rows (default: the spec's)" },
  { name = "sm-version", value = "N", type = "whole",
    help = "the rows are for this SM version, whatever GPU this is" },
  { name = "tp", value = "N,N...", type = "whole", comma = true,
    help = "only these TP sizes (default: the spec's)" },
  { name = "budget", value = "SECONDS", type = "number", above = 0, most = 1e9,
    help = "that measuring may take (default: until it is sure; with --transport 240 for each TP size)" },
  { name = "exhaustive", help = "measure every cell, not only where it matters" },
  { name = "fresh", help = "measure anew what is there already" },
  { name = "transport", help = "search Open MPI's parameters, of the transport and others: transport.tp{N}" },
  { name = "launcher", value = "COMMAND", help = "in place of mpirun, with {ranks}; or GENTABLES_LAUNCHER" },
  { name = "incumbent", value = "HEADER",
    help = "whose lookup AUTO asks: allreduce_table.h or customAllReduceUtils.h (default: as built)" },
  { name = "bench", value = "PROGRAM", help = "in place of the gentables-bench beside gentables" },
  { name = "patience", value = "SECONDS", type = "number", above = 0, most = 1e9, default = 60,
    help = "how long a bench may be silent beyond its time for a cell" },
}
sweep.example = "gentables sweep tables/host/spec.lua --out tables/host --tp 2"

-- ---- the command line -------------------------------------------------------------------------

local function check_tp(sizes, asked)
  if not sizes then return asked.tp end
  for _, size in ipairs(sizes) do
    if not lists.contains(asked.tp, size) then
      fail.input("--tp: %d is no TP size of the spec, which has %s", size, table.concat(asked.tp, ", "))
    end
  end
  table.sort(sizes)
  return sizes
end

-- The name for the rows: the spec's, or another of the same backend.
local function read_arch(name, asked)
  if not name then return asked.arch end
  local row = lists.arch(name)
  if not row then
    fail.input("--arch: %s is no arch; it is host, host-NAME, sm and a number, or gpu for what is here", name)
  end
  if row.backend ~= lists.arch(asked.arch).backend then
    fail.input("--arch: %s is not what the spec measures, %s; a spec for it would be right", name, asked.arch)
  end
  return name
end

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

-- ---- what to say of it ------------------------------------------------------------------------

local function bytes(size)
  if size >= 1 << 20 and size % (1 << 20) == 0 then return (size >> 20) .. " MiB" end
  if size >= 1 << 10 and size % (1 << 10) == 0 then return (size >> 10) .. " KiB" end
  return size .. " B"
end

-- strategy -> { strategy, cells, from, to }: in how many cells it is best, and how large their messages are.
local function winners(with)
  local best = {}
  for _, record in ipairs(with) do
    local cell = plan.key(plan.record(record))
    local is_better = not best[cell] or record.time_us < best[cell].time_us
    if is_better and lists.may_win(record.strategy) then best[cell] = record end
  end
  local tally, ranked, count = {}, {}, 0
  for _, record in pairs(best) do
    local entry = tally[record.strategy]
    if not entry then
      entry = { strategy = record.strategy, cells = 0, from = record.size, to = record.size }
      tally[record.strategy] = entry
      ranked[#ranked + 1] = entry
    end
    entry.cells, count = entry.cells + 1, count + 1
    entry.from, entry.to = math.min(entry.from, record.size), math.max(entry.to, record.size)
  end
  table.sort(ranked, function(a, b)
    if a.cells ~= b.cells then return a.cells > b.cells end
    return a.strategy < b.strategy
  end)
  return ranked, count
end

local function say_best(world)
  local ranked, count = winners(world.with)
  for i, entry in ipairs(ranked) do
    print(("%s %-24s lowest median in %d of %d cells, %s to %s"):format(
      i == 1 and ("TP %d:"):format(world.size) or (" "):rep(4 + #tostring(world.size)), entry.strategy,
      entry.cells, count, bytes(entry.from), bytes(entry.to)))
  end
end

local function say_effort(world)
  if world.launches == 0 then return end
  print(("      measured for %.1f s, in %d launches of the bench"):format(world.measured_s, world.launches))
end

-- Where the regime of earlier rows makes the rows after all: what others had.
local function say_regimes(world)
  local regime, others = world:chosen(), 0
  for _, other in ipairs(world.regimes) do
    if other ~= regime then others = others + other.planner:count_visits() end
  end
  if regime and regime.keeps and next(world.known) and others > 0 then
    print(("TP %d: %d visits in another regime of the machine do not count; the rows are of that of before")
      :format(world.size, others))
  end
end

local function say_cut_off(job, world)
  if not world.cut_off then return end
  local regime = world:chosen()
  local reached, wanted = regime and regime.launch - regime.before or 0, job.spec.limits.launches
  local of = reached <= wanted and (" of %d"):format(wanted) or ""
  print(("TP %d: budget spent: %d%s launches, %s; the next sweep goes on"):format(world.size, reached, of,
    world.unreached == 0 and "not of all points, but every cell reached" or ("%d cell%s not reached"):format(
      world.unreached, world.unreached == 1 and "" or "s")))
end

local function say_without(world)
  local counts, reasons = {}, {}
  for _, entry in ipairs(world.without) do
    if not counts[entry.reason] then reasons[#reasons + 1] = entry.reason end
    counts[entry.reason] = (counts[entry.reason] or 0) + 1
  end
  for _, reason in ipairs(reasons) do print(("      no time for %d: %s"):format(counts[reason], reason)) end
  if world.derived then
    local words = "      not measured: %d, which follow from what was; --exhaustive measures them"
    print(words:format(world.derived))
  end
end

local function say_refused(world)
  if file.exists(world.csv) then return end
  print(("TP %d: no bench starts"):format(world.size))
  say_without(world)
end

local function say_written(job)
  for _, world in ipairs(job.worlds) do
    local count = #world.with == 1 and "1 row" or #world.with .. " rows"
    if world.refusal and file.exists(world.csv) then
      print(("%s: stays as it was"):format(world.csv))
    elseif world.refusal and #world.with > 0 then
      print(("%s: not written; %s are kept for the next sweep, which goes on"):format(world.csv, count))
    elseif #world.with == 0 then
      print(("%s: not written, for nothing has a time"):format(world.csv))
    elseif world.current then
      print(("%s: up to date, %s of this machine, spec and bench"):format(world.csv, count))
    else
      print(("wrote %s: %s, and %s"):format(world.csv, count, world.json:match("[^/]*$")))
    end
  end
  for _, world in ipairs(job.worlds) do
    if world.refusal then
      say_refused(world)
    elseif not world.current then
      say_regimes(world)
      say_cut_off(job, world)
      say_best(world)
      say_without(world)
      say_effort(world)
    end
  end
end

-- ---- the verb ---------------------------------------------------------------------------------

local function launcher_of_environment()
  local text = os.getenv("GENTABLES_LAUNCHER")
  return text ~= "" and text or nil
end

-- The module of the incumbent that is named, which the bench finds by the environment; nil: none is.
local function open_incumbent(args, job)
  if not args.incumbent then return nil end
  if not lists.contains(job.spec.strategies, "AUTO") then
    fail.input("--incumbent is for AUTO, which is not among the spec's strategies")
  end
  local module = incumbents.module(args.incumbent, job.arch)
  job.environment = { "GENTABLES_INCUMBENT=" .. module.path }
  return module
end

local function new_job(args)
  local asked = spec.load(args[1] or args.out .. "/spec.lua")
  local given_launcher = args.launcher or launcher_of_environment()
  local backend = backends[lists.arch(asked.arch).backend]
  local name = given_launcher and backend.program_of_launcher or backend.program
  local program = args.bench or system.program():gsub("[^/]*$", "") .. name
  local identity, library = bench.identify(program)
  local arch = backend.arch(read_arch(args.arch, asked), identity, args.sm_version)
  local job = {
    out = (args.out:gsub("(.)/+$", "%1")), spec = asked, spec_hash = provenance.spec_hash(asked),
    arch = arch, backend = backend,
    sizes = check_tp(args.tp, asked), budget_s = args.budget, exhaustive = args.exhaustive,
    patience = args.patience, fresh = args.fresh, launcher = given_launcher,
    program = program, identity = identity, machine = provenance.machine(library),
    asked = 0, failed = 0, incomplete = 0, failed_in_a_row = 0,
  }
  job.machine.gpu = backend == backends.cuda and backends.gpu(library) or nil
  job.fingerprint = provenance.fingerprint(job.machine, identity, asked.limits, job.launcher,
    args.incumbent and file.read(args.incumbent) or nil)
  return job
end

-- The TP sizes of rows that are there and not asked for.
local function say_left_out(job)
  for _, name in ipairs(fail.unless(file.list(job.out))) do
    local tp, arch = name:match("^benchmark%.tp(%d+)%.(.*)%.csv$")
    if arch == job.arch and not lists.contains(job.spec.tp, math.tointeger(tp)) then
      print(("%s/%s: the spec has no TP %s; it stays, and no table has it"):format(job.out, name, tp))
    end
  end
end

local function announce(job)
  say_left_out(job)
  local continues = false
  for _, world in ipairs(job.worlds) do
    if world.note then print(("%s: %s"):format(world.csv, world.note)) end
    continues = continues or world.taken_up
  end
  if continues then print("goes on where an interrupted sweep stopped") end
end

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

-- Raises where no bench started at some TP sizes. `goes_on`: what is said of the others.
local function fail_for(refused, goes_on)
  local sizes, reasons = {}, {}
  for _, world in ipairs(refused) do
    local reason = world.refusal_told
    if not sizes[reason] then reasons[#reasons + 1], sizes[reason] = reason, {} end
    table.insert(sizes[reason], world.size)
  end
  for i, reason in ipairs(reasons) do
    reasons[i] = ("TP %s: %s"):format(table.concat(sizes[reason], ", "), reason)
  end
  fail.work("%s%s", table.concat(reasons, "; "), goes_on)
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
    fail_for(refused, "")
  end
  for _, world in ipairs(refused) do
    local other = world:other_machine(job)
    if other then
      drop_empty_journals(job)
      local words = "; nothing is written, for %s has the rows of %s: another --arch or --out would be right"
      fail_for(refused, words:format(world.csv, provenance.describe(other)))
    end
  end
  return refused
end

local function say_failures(job, refused)
  if #refused > 0 then fail_for(refused, "; the next sweep tries again, unless --tp has others alone") end
  if job.failed > 0 then
    fail.work("%d cell%s could not be measured; the next sweep tries them again", job.failed,
      job.failed == 1 and "" or "s")
  end
  if job.incomplete > 0 then
    fail.work("%d cell%s could be measured without a strategy that fails there; the next sweep tries it "
      .. "again", job.incomplete, job.incomplete == 1 and "" or "s")
  end
  for _, world in ipairs(job.worlds) do
    if #world.with == 0 then fail.work("TP %d: no cell has a time, so there are no rows", world.size) end
  end
end

function sweep.run(args)
  local began_at = process.now()
  local job = new_job(args)
  job.began_at = began_at
  local _ <close> = open_incumbent(args, job)
  local made, message = file.make_folder(job.out)
  if not made then fail.work("%s", message) end
  if args.transport then
    if args.launcher then fail.input("--transport takes no --launcher: it starts Open MPI's mpirun") end
    return require("sweep.transport").run(job)
  end
  job.worlds = {}
  for i, size in ipairs(job.sizes) do job.worlds[i] = worlds.load(job, size) end
  announce(job)
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
  say_written(job)
  say_failures(job, refused)
end

return sweep
