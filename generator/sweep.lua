-- gentables sweep: measures what a spec asks for and is not there yet, and writes the rows and where they
-- come from.
--
-- For each TP size: what the rows and an unfinished journal hold for the same machine, bench and limits is
-- kept; the rest is asked of a bench, cell after cell, and journaled. Only when all TP sizes are finished
-- the rows files are written and the journals removed, so that a table is never made from half a sweep.
local bench = require "bench"
local fail = require "fail"
local file = require "core.file"
local journal = require "journal"
local launcher = require "launcher"
local lists = require "lists"
local plan = require "plan"
local process = require "core.process"
local progress = require "progress"
local provenance = require "provenance"
local rows = require "core.rows"
local spec = require "spec"
local system = require "core.system"

local sweep = {}

local ATTEMPTS = 2       -- per cell, each with a fresh bench
local GIVE_UP_AFTER = 5  -- failed cells in a row
local MIN_CELL_US = 1000 -- however small the budget

sweep.summary = "Measures what a spec asks for and is not there yet: spec -> rows."
sweep.positional = { name = "SPEC", min = 0, max = 1, help = "what to sweep (default: DIR/spec.lua)" }
sweep.options = {
  { name = "out", value = "DIR", help = "where the rows are and go", required = true },
  { name = "arch", value = "A", help = "name for this machine's rows (default: the spec's)" },
  { name = "tp", value = "N,N...", help = "only these TP sizes (default: the spec's)" },
  { name = "budget", value = "SECONDS", help = "for all cells together, in place of the spec's cell_us" },
  { name = "fresh", help = "measure anew what is there already" },
  { name = "transport", help = "search Open MPI's parameters, of the transport and others: transport.tp{N}" },
  { name = "launcher", value = "COMMAND", help = "in place of mpirun, with {ranks}; or GENTABLES_LAUNCHER" },
  { name = "bench", value = "PROGRAM", help = "in place of the gentables-bench beside gentables" },
  { name = "patience", value = "SECONDS", default = 60,
    help = "how long a bench may be silent beyond its time for a cell" },
}
sweep.example = "gentables sweep tables/host/spec.lua --out tables/host --tp 2"

-- ---- the command line -------------------------------------------------------------------------

local function read_tp(text, asked)
  if not text then return asked.tp end
  local sizes = {}
  for word in (text .. ","):gmatch("([^,]*),") do
    local size = math.tointeger(tonumber(word))
    if not lists.contains(asked.tp, size) then
      fail.input("--tp: %q is no TP size of the spec, which has %s", word, table.concat(asked.tp, ", "))
    end
    if not lists.contains(sizes, size) then sizes[#sizes + 1] = size end
  end
  table.sort(sizes)
  return sizes
end

local function read_seconds(name, text)
  local seconds = tonumber(text)
  if not seconds or not (seconds > 0 and seconds < 1e9) then
    fail.input("--%s: %s is no number of seconds", name, text)
  end
  return seconds
end

-- The name for the rows: the spec's, or another of the same backend.
local function read_arch(name, asked)
  if not name then return asked.arch end
  local row = lists.arch(name)
  if not row then fail.input("--arch: %s is no arch; it is host, host-NAME, or sm and a number", name) end
  if row.backend ~= lists.arch(asked.arch).backend then
    fail.input("--arch: %s is not what the spec measures, %s; a spec for it would be right", name, asked.arch)
  end
  return name
end

-- ---- what is there already --------------------------------------------------------------------

local function take(world, record)
  local key = plan.key(record)
  world.known[key], world.why[key] = record, nil
end

local function take_reason(world, record)
  local key = plan.key(record)
  world.why[key], world.known[key] = record, nil
end

-- What is wrong with rows that cannot be kept.
local function replaced(old, job)
  if not provenance.same_machine(old.machine, job.machine) then
    return "replaces the rows of " .. provenance.describe(old.machine)
  end
  return "measures anew: the bench, the launcher or the spec's limits are others now"
end

-- Takes the finished rows of this TP size into `world`, where they are of the same machine, bench and limits.
local function take_finished(world, job)
  if not file.exists(world.csv) then return end
  if not file.exists(world.json) then
    fail.input("%s: no %s beside it says whose rows these are; --fresh replaces them, --arch host-NAME " ..
      "keeps them", world.csv, world.json:match("[^/]*$"))
  end
  local old, message = provenance.read(world.json)
  if not old then fail.input("%s; --fresh measures anew", message) end
  if old.fingerprint ~= job.fingerprint then
    world.note = replaced(old, job)
    return
  end
  if not provenance.describes(old, fail.unless(file.read(world.csv))) then
    world.note = ("measures anew: %s tells of other rows"):format(world.json)
    return
  end
  world.old = old
  for _, record in ipairs(fail.unless(rows.records(world.csv))) do
    take(world, record)
    world.finished = world.finished + 1
  end
  for _, entry in ipairs(old.no_time) do
    -- What failed is tried again; what is above a limit, the spec says itself.
    local record = plan.record(entry, entry.strategy, { reason = entry.reason, world_size = world.size })
    if not entry.failed and not entry.skipped then take_reason(world, record) end
  end
end

local function take_journal(world, job, found)
  world.continues = true
  for _, cell in ipairs(found.cells) do
    for _, record in ipairs(cell.rows) do take(world, record) end
    for _, record in ipairs(cell.no_time) do take_reason(world, record) end
  end
  job.continues = job.continues or #found.cells > 0
end

-- The state of one TP size: its files, its cells, `known` (key -> record with a time), `why` (key -> record
-- without, and its reason), `missing` (of plan.missing).
local function load_world(job, size)
  local csv = ("%s/benchmark.tp%d.%s.csv"):format(job.out, size, job.arch)
  local world = { size = size, csv = csv, json = provenance.path_of(csv), part = csv .. ".part", known = {},
    why = {}, finished = 0, cells = plan.cells(job.spec, size) }
  if file.exists(world.part) then world.journal = journal.open(world.part) end
  local found = not job.fresh and world.journal and journal.read(world.part, size)
  local usable = found and found.fingerprint == job.fingerprint
  world.fresh = job.fresh or (usable and found.fresh)
  if not world.fresh then take_finished(world, job) end
  if usable then take_journal(world, job, found) end
  if found and not usable and #found.cells > 0 then
    world.note = world.note or "begins again: what is unfinished there is of another machine, bench or limits"
  end
  local done = {}
  for key in pairs(world.known) do done[key] = true end
  for key in pairs(world.why) do done[key] = true end
  world.missing = plan.missing(job.spec, world.cells, done)
  return world
end

-- ---- measuring --------------------------------------------------------------------------------

local function in_brackets(text) return text ~= "" and (" (%s)"):format(text) or "" end

-- Journals that hold nothing go.
local function drop_empty_journals(job)
  for _, world in ipairs(job.worlds) do
    if world.journal and not world.journal.holds_cells and not world.continues then world.journal:remove() end
  end
end

local function start_bench(job, world)
  if job.command_size ~= world.size then
    job.command = launcher.command(world.size, job.machine.cores, job.launcher)
    job.command_size = world.size
  end
  local session, failure = bench.start({ command = job.command, program = job.program,
    world_size = world.size, identity = job.identity, patience = job.patience,
    strategies = job.spec.strategies })
  if session then return session end
  drop_empty_journals(job)
  fail.work("TP %d: %s%s", world.size, failure.reason, in_brackets(failure.detail))
end

local function show(job, cell, best)
  local text = plan.describe(cell)
  if best then text = ("%s: %s %.2f us"):format(text, best.strategy, best.time_us) end
  job.progress:show(text)
end

-- Asks the bench for one cell. Returns { rows, no_time }, or nil and the failure.
local function ask(job, world, session, task)
  local wanted, no_time = {}, {}
  for _, strategy in ipairs(task.strategies) do
    local reason = session.unavailable[strategy]
    if reason then
      no_time[#no_time + 1] = plan.record(task.cell, strategy, { reason = reason })
    else
      wanted[#wanted + 1] = strategy
    end
  end
  if #wanted == 0 then return { rows = {}, no_time = no_time } end
  local best
  show(job, task.cell)
  job.asked = job.asked + 1
  local result, failure = session:measure(job.asked, task.cell, wanted, job.limits, function(record)
    if not best or record.time_us < best.time_us then best = record end
    show(job, task.cell, best)
  end)
  if not result then return nil, failure end
  world.placement = session.placement
  table.move(result.no_time, 1, #result.no_time, #no_time + 1, no_time)
  return { rows = result.rows, no_time = no_time }
end

local function report_failure(job, task, failure, last)
  job.progress:say(("gentables: %s: %s%s; %s"):format(plan.describe(task.cell), failure.reason,
    in_brackets(failure.detail), last and "it stays without a time" or "once more, with a fresh bench"))
end

-- Measures one cell into `world` and its journal. Returns the bench to go on with, nil where none is left.
local function measure(job, world, session, task)
  local result, failure
  for attempt = 1, ATTEMPTS do
    session = session or start_bench(job, world)
    result, failure = ask(job, world, session, task)
    if result then break end
    session = nil
    report_failure(job, task, failure, attempt == ATTEMPTS)
  end
  if result then
    world.journal:add(task.cell, result.rows, result.no_time)
    for _, record in ipairs(result.rows) do take(world, record) end
    for _, record in ipairs(result.no_time) do take_reason(world, record) end
    job.failed_in_a_row = 0
  else
    for _, strategy in ipairs(task.strategies) do
      take_reason(world, plan.record(task.cell, strategy, { reason = failure.reason, failed = true }))
    end
    job.failed, job.failed_in_a_row = job.failed + 1, job.failed_in_a_row + 1
  end
  return session
end

local function give_up(job, session)
  if session then session:stop() end
  fail.work("%d cells in a row failed; what was measured is kept, and the same command goes on from there",
    job.failed_in_a_row)
end

local function measure_world(job, world)
  job.progress:clear()
  print(("TP %d: %d of %d cells to measure"):format(world.size, #world.missing, #world.cells))
  io.stdout:flush()
  local session
  for _, task in ipairs(world.missing) do
    session = measure(job, world, session, task)
    job.progress:step()
    if job.failed_in_a_row == GIVE_UP_AFTER then give_up(job, session) end
  end
  if session then session:stop() end
end

-- ---- writing ----------------------------------------------------------------------------------

local no_time_fields = { "dtype", "op", "mode", "fusion", "hidden_size", "num_tokens", "strategy", "reason",
  "failed", "skipped" }

-- The records that go into the files, in order: with a time, and without.
local function outcome(job, world)
  local with, without = {}, {}
  for key, wanted in pairs(plan.wanted(job.spec, world.cells)) do
    local why = world.why[key]
    if wanted.skip then
      wanted.reason, wanted.skipped = wanted.skip, true
      without[#without + 1] = wanted
    elseif world.known[key] then
      with[#with + 1] = world.known[key]
    else
      without[#without + 1] = why
    end
  end
  table.sort(with, plan.before)
  table.sort(without, plan.before)
  for i, record in ipairs(without) do
    local entry = {}
    for _, name in ipairs(no_time_fields) do entry[name] = record[name] end
    without[i] = entry
  end
  return with, without
end

-- Whether the files hold what the spec asks for already.
local function is_current(world, job, with, without)
  local old = world.old
  return #world.missing == 0 and not world.continues and old ~= nil and world.finished == #with
    and #old.no_time == #without and old.spec ~= nil and old.spec.hash == job.spec_hash
end

local function provenance_of(world, job, with, without)
  local measured = world.placement or world.continues or not world.old
  return {
    world_size = world.size,
    arch = job.arch,
    fingerprint = job.fingerprint,
    machine = job.machine,
    bench = job.identity,
    spec = { hash = job.spec_hash },
    placement = with[1] and with[1].placement or world.placement or "unknown",
    date = measured and os.date("!%Y-%m-%dT%H:%M:%SZ") or world.old.date,
    no_time = without,
  }
end

-- Writes the files of all TP sizes that have changed; after that the journals go. Should it be cut off
-- between two files, the journals are still there, and the next sweep writes them again. Where nothing has a
-- time, what was there stays.
local function write_worlds(job)
  process.hold_signals(true)
  for _, world in ipairs(job.worlds) do
    local with, without = outcome(job, world)
    world.with, world.without = with, without
    world.current = is_current(world, job, with, without)
    if not world.current and #with > 0 then
      local text, message = rows.text(world.csv, with)
      local ok = text
      if ok then ok, message = provenance.write(world.csv, text, provenance_of(world, job, with, without)) end
      if not ok then fail.work("%s; what was measured is kept in %s", message, world.part) end
    end
  end
  for _, world in ipairs(job.worlds) do
    if world.journal then world.journal:remove() end
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
    if not best[cell] or record.time_us < best[cell].time_us then best[cell] = record end
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
    print(("%s %-24s best in %d of %d cells, %s to %s"):format(
      i == 1 and ("TP %d:"):format(world.size) or (" "):rep(4 + #tostring(world.size)), entry.strategy,
      entry.cells, count, bytes(entry.from), bytes(entry.to)))
  end
end

local function say_without(world)
  local counts, reasons = {}, {}
  for _, entry in ipairs(world.without) do
    if not counts[entry.reason] then reasons[#reasons + 1] = entry.reason end
    counts[entry.reason] = (counts[entry.reason] or 0) + 1
  end
  for _, reason in ipairs(reasons) do print(("      no time for %d: %s"):format(counts[reason], reason)) end
end

local function say_written(job)
  for _, world in ipairs(job.worlds) do
    local count = #world.with == 1 and "1 row" or #world.with .. " rows"
    if #world.with == 0 then
      print(("%s: not written, for nothing has a time"):format(world.csv))
    elseif world.current then
      print(("%s: up to date, %s of this machine, spec and bench"):format(world.csv, count))
    else
      print(("wrote %s: %s, and %s"):format(world.csv, count, world.json:match("[^/]*$")))
    end
  end
  for _, world in ipairs(job.worlds) do
    if not world.current then
      say_best(world)
      say_without(world)
    end
  end
end

-- ---- the verb ---------------------------------------------------------------------------------

-- The limits of this sweep. A budget is shared out over all cells that are missing; it changes how long
-- each is measured, not what its rows are worth, so it leaves the fingerprint alone.
local function limits_for(job, count)
  local limits = {}
  for name, limit in pairs(job.spec.limits) do limits[name] = limit end
  if job.budget and count > 0 then
    limits.cell_us = math.max(MIN_CELL_US, math.floor(job.budget * 1e6 / count))
  end
  return limits
end

local function launcher_of_environment()
  local text = os.getenv("GENTABLES_LAUNCHER")
  return text ~= "" and text or nil
end

local function new_job(args)
  local asked = spec.load(args[1] or args.out .. "/spec.lua")
  local program = args.bench or system.program():gsub("[^/]*$", "") .. "gentables-bench"
  local identity, library = bench.identify(program)
  local job = {
    out = (args.out:gsub("(.)/+$", "%1")), spec = asked, spec_hash = provenance.spec_hash(asked),
    arch = read_arch(args.arch, asked), sizes = read_tp(args.tp, asked),
    budget = args.budget and read_seconds("budget", args.budget),
    patience = read_seconds("patience", args.patience), fresh = args.fresh,
    launcher = args.launcher or launcher_of_environment(),
    program = program, identity = identity, machine = provenance.machine(library),
    asked = 0, failed = 0, failed_in_a_row = 0,
  }
  job.fingerprint = provenance.fingerprint(job.machine, identity, asked.limits, job.launcher)
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
  for _, world in ipairs(job.worlds) do
    if world.note then print(("%s: %s"):format(world.csv, world.note)) end
  end
  if job.continues then print("goes on where an interrupted sweep stopped") end
end

function sweep.run(args)
  local job = new_job(args)
  local made, message = file.make_folder(job.out)
  if not made then fail.work("%s", message) end
  if args.transport then
    if job.budget or args.launcher then fail.input("--transport takes neither --budget nor --launcher") end
    return require("transport").run(job)
  end
  job.worlds = {}
  local count = 0
  for i, size in ipairs(job.sizes) do
    job.worlds[i] = load_world(job, size)
    count = count + #job.worlds[i].missing
  end
  announce(job)
  job.limits = limits_for(job, count)
  job.progress = progress.new(count)
  for _, world in ipairs(job.worlds) do
    if #world.missing > 0 then
      world.journal = world.journal or journal.open(world.part)
      world.journal:begin(job.fingerprint, world.fresh, world.continues)
    end
  end
  for _, world in ipairs(job.worlds) do
    if #world.missing > 0 then measure_world(job, world) end
  end
  job.progress:clear()
  write_worlds(job)
  say_written(job)
  if job.failed > 0 then
    fail.work("%d cell%s could not be measured; the next sweep tries them again", job.failed,
      job.failed == 1 and "" or "s")
  end
  for _, world in ipairs(job.worlds) do
    if #world.with == 0 then fail.work("TP %d: no cell has a time, so there are no rows", world.size) end
  end
end

return sweep
