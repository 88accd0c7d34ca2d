-- gentables sweep with failures of the bench, its launcher, a TP size, the spec, the disk. Measured rows are
-- kept, and no process is left.
local lu = require "luaunit"
local bench = require "conversation.bench"
local file = require "core.file"
local launches = require "sweep.launches"
local lib = require "unit.sweep.lib"
local process = require "core.process"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local small_spec, TestSweep = table.unpack((require "unit.sweep.lib_sweep"))

-- ---- a bench that fails -----------------------------------------------------------------------

local faults = {
  die = "the bench died: killed by SIGABRT (Aborted) (stand-in: first words / stand-in: last words)",
  leave = "the bench died: exit code 3",
  hang = "the bench did not answer within 6.5 s",
  late = "the bench did not answer within 6.5 s",
  garbage = "the bench wrote a line that protocol 3 does not have: Segment ID: 7 ?[31mred",
  no_time = "the bench sent an invalid answer: time_us=nan in: row id=",
  silent_about_one = "the bench gave no answer for ",
  wrong_id = "the bench wrote a line that protocol 3 does not have: done id=10",
  refuse = "the bench reports: no such fusion",
}
-- Timeout in seconds: so long that a healthy stand-in answers in time on a busy machine, too. While the sweep
-- waits for a missing or late answer, the other tests run.
local patience = { hang = "6", late = "6" }
local culprit = "fusion=NONE hidden_size=128 num_tokens=4"

-- Starts a sweep with a bench that fails once.
function TestSweep:start_fault(fault, seconds)
  local settings = self:environment { FAULT = fault, AT = culprit, ONCE = self.folder .. "/" .. fault }
  local argv = lib.sweep_command(self.folder, "--fresh", "--patience", seconds)
  return assert(process.start(argv, settings))
end

function TestSweep:survives_fault(fault, child)
  local _, err = lib.ends(0, "gentables: TP 2 bfloat16 NONE, hidden size 128, 4 tokens: " .. faults[fault],
    lib.finish(child))
  lu.assertStrMatches(err, "[^\n]*tried again with a new bench\n")
  self:has_all_rows()
  self:leaves_nothing_running()
  lu.assertEquals(#self:requests(), 9)
end

-- If the bench answers or dies, no time is judged.
function TestSweep:test_a_fault_that_passes_costs_one_more_request()
  for fault in pairs(faults) do
    if not patience[fault] then self:survives_fault(fault, self:start_fault(fault, "60")) end
  end
end

function TestSweep:test_a_fault_that_stays_costs_its_cell_alone()
  local err, out = self:ends_with(1, "it stays without a time", { FAULT = "die", AT = culprit })
  lu.assertStrMatches(err, ".*gentables: 1 cell could not be measured; the next sweep tries them again\n")
  lu.assertStrContains(out, "wrote " .. self.csv)
  lu.assertEquals(#rows.records(self.csv), 17)
  local failed = 0
  for _, entry in ipairs(provenance.read(self.json).no_time) do
    if entry.failed then
      failed = failed + 1
      lu.assertEquals(entry.reason, "the bench died: killed by SIGABRT (Aborted)")
    end
  end
  lu.assertEquals(failed, 4)
  self:requests()
  self:measures(1)
  self:has_all_rows()
end

-- A bench of which a command of sed changes the output.
function TestSweep:test_a_bench_that_lies_is_given_up()
  local liar = self.folder .. "/liar"
  lib.write(liar, ("#!/bin/sh\n[ $1 = --version ] && exec '%s' $1\n'%s' \"$@\" | sed -u \"$LIE\"\n"):format(
    lib.stand_in, lib.stand_in))
  assert(os.execute(("chmod +x '%s'"):format(liar)))
  for lie, words in pairs {
    ["s/nodes=1/nodes=2/"] = "the launcher placed 2 ranks on 2 nodes, not on 1; --launcher can place them by",
    ["s/ nodes=1//"] = "the launcher placed 2 ranks on ? nodes, not on 1; --launcher can place them by",
    ["s/placement=dedicated/placement=x/"] = "protocol 3 does not have: hello protocol=3",
    ["s/roundtrip_us=0.1/roundtrip_us=1e999/"] = "protocol 3 does not have: hello protocol=3",
    ["s/^ready/device rank=0 at_end=x/"] = "protocol 3 does not have: device rank=0 at_end=x",
    ["s/ status=available//"] = "protocol 3 does not have: strategy name=MPI",
    ["s/^row/row strategy=MPI/"] = "protocol 3 does not have: row strategy=MPI",
    ["/^row/p"] = "a strategy that was not requested in: row id=1",
    ["s/accumulate=fp32/accumulate=fp31/"] = "accumulate=fp31 in: row id=1",
    ["s/placement=dedicated$/placement=/"] = "placement= in: row id=1",
    ["s/samples=20/samples=99999999999/"] = "samples=99999999999 in: row id=1",
    ["s/time_us=[0-9.]*/time_us=1e200/"] = "time_us=1e200 in: row id=1",
    ["s/bits=/bits=fffffffffffffffff/"] = "bits=fffffffffffffffff",
  } do
    local argv = { lib.gentables, "sweep", "--out", self.folder, "--bench", liar, "--launcher",
      "env RANKS={ranks}", "--fresh" }
    local _, errors = lib.ends(1, words, lib.run(argv, { "LIE=" .. lie }))
    lu.assertFalse(errors:find("internal error", 1, true) ~= nil, errors)
  end
end

function TestSweep:test_a_program_that_prints_no_version_is_refused_with_its_own_words()
  local program = self.folder .. "/program"
  for script, words in pairs {
    ["kill -SEGV $$"] = "--version: killed by SIGSEGV (Segmentation fault): no message; if the next run",
    ["echo no libmpi >&2; exit 127"] = "--version: exit code 127: no libmpi",
    ["echo another program"] = "--version prints no bench's line (another program); build it",
    [":"] = "--version prints no bench's line (no line); build it",
  } do
    lib.write(program, "#!/bin/sh\n" .. script .. "\n")
    assert(os.execute(("chmod +x '%s'"):format(program)))
    lib.ends(2, words, lib.run { lib.gentables, "sweep", "--out", self.folder, "--bench", program })
  end
end

function TestSweep:test_a_strategy_that_ends_the_bench_costs_its_own_time_alone()
  local err = self:ends_with(1, "4 tokens: the bench reports: it hung; TWOSHOT stays without a time\n",
    { FAULT = "blame", AT = culprit })
  lu.assertStrContains(err, "1 cell measured without a strategy that fails there; the next sweep")
  lu.assertEquals(#self:requests(), 10)
  lu.assertEquals(#rows.records(self.csv), 19)
  local failed = {}
  for _, entry in ipairs(provenance.read(self.json).no_time) do
    if entry.failed then failed[#failed + 1] = entry.strategy end
  end
  lu.assertEquals(failed, { "TWOSHOT" })
  self:sweep_well()
  self:has_all_rows()
end

-- Two attempts in each of three cells, then it is left out.
function TestSweep:test_a_strategy_that_always_ends_the_bench_is_left_out_after_a_while()
  self:ends_with(1, "3 cells measured without a strategy that fails there", { FAULT = "blame" })
  local left_out = 0
  for _, entry in ipairs(provenance.read(self.json).no_time) do
    local is_left_out = entry.reason == "not measured after failures in 3 cells: the bench reports: it hung"
    if is_left_out then left_out = left_out + 1 end
  end
  lu.assertTrue(left_out > 0)
  self:sweep_well()
  self:has_all_rows()
end

function TestSweep:test_a_bench_that_always_fails_is_given_up()
  self:ends_with(1, "gentables: 5 cells in a row failed; results are kept", { FAULT = "leave" })
  lu.assertEquals(#self:requests(), 10)
  lu.assertFalse(file.exists(self.csv))
end

local started_again = "; the bench is started again\n"

-- A bench of another version is not started again.
function TestSweep:test_a_bench_that_does_not_start_ends_the_sweep()
  local messages = {
    die_at_start = { faults.die, again = true },
    mute_at_start = { "the bench did not answer within 0.1 s", again = true },
    other_protocol = { "the bench has protocol 4, gentables 3; build both from the same tree" },
    other_bench = { "the launcher started bench other, and not stand-in" },
  }
  for fault, of in pairs(messages) do
    -- The mute one never answers, so its timeout may be short.
    local seconds = fault == "mute_at_start" and "0.1" or "60"
    local err = self:ends_with(1, "", { FAULT = fault }, "--patience", seconds)
    local message = "gentables: TP 2: " .. of[1]
    lu.assertEquals(err, (of.again and message .. started_again or "") .. message .. "\n")
    self:leaves_nothing_running()
  end
end

-- A start that hangs is ended with the budget, but not before LEAST_START_S, which the script makes shorter.
function TestSweep:test_a_start_takes_what_is_left_of_the_budget()
  local script = self.folder .. "/sweep.lua"
  lib.write(script, [[
    require("sweep.tp_size").LEAST_START_S = 0.1
    os.exit(require("verbs").main(table.unpack(arg)))]])
  local command = table.move(lib.sweep_command(self.folder, "--budget", "2"), 2, 20, 4,
    { lib.gentables, "lua", script })
  local _, err = lib.ends(1, "", lib.run(command, { "STAND_IN_FAULT=mute_at_start" }))
  local seconds = err:match("^gentables: TP 2: the bench did not answer within ([%d.]+) s\n$")
  lu.assertNotNil(seconds, err)
  lu.assertTrue(tonumber(seconds) <= 2)
end

-- Sweeps with these arguments; it ends with this exit code and one line that has the pattern.
local function is_refused(code, pattern, arguments, environment)
  local ended, _, err = lib.run({ lib.gentables, "sweep", table.unpack(arguments) }, environment)
  lu.assertEquals(ended, "exit code " .. code)
  lu.assertStrMatches(err, "gentables: [^\n]*" .. pattern .. "[^\n]*\n")
end

function TestSweep:test_launchers_that_start_other_ranks_or_none_are_reported()
  local function with(launcher)
    return { "--out", self.folder, "--bench", lib.stand_in, "--launcher", launcher }
  end
  is_refused(1, "TP 2: the launcher started 3 ranks, not 2", with "env RANKS=3 NOTE={ranks}")
  is_refused(2, "has no {ranks}; write {ranks} where the number of ranks goes", with "env RANKS=2")
  is_refused(1, "TP 2: cannot be started: no%-such: No such file or directory", with "no-such {ranks}")
end

function TestSweep:test_the_provenance_has_the_devices_over_all_launches()
  self:change_spec("launches = 1", "launches = 2")
  self:sweep_well { DEVICES = 1 }
  lu.assertEquals(provenance.read(self.json).devices, { { rank = "0", clock_mhz = "1980",
    at_end = { clock_mhz = "1980", least_clock_mhz = "1200", throttle_seen = "0x44",
      largest_switch_error_ulp = "0.71" } } })
end

-- ---- a TP size that does not start ------------------------------------------------------------

-- Sweeps TP 2 and 4, with `to` in place of `from` in the spec, by a launcher that starts 4 ranks only so
-- often (nil: always), and expects this exit code. Returns stderr and stdout.
function TestSweep:few_start(code, starts, settings, from, to)
  local count = self.folder .. "/starts"
  lib.write(self.folder .. "/launch.sh", ([[
if [ "$1" = 4 ] && [ -e COUNT ]; then
  left=$(cat COUNT)
  [ "$left" -gt 0 ] || { printf -- '-----\nno room for %s\nranks\n\nask for fewer\n' "$1" >&2; exit 1; }
  echo $((left - 1)) >COUNT
fi
[ -e COUNT.none ] && exit 1
RANKS=$1; export RANKS; shift; exec "$@"]]):gsub("COUNT", count))
  os.remove(count)
  if starts then lib.write(count, tostring(starts)) end
  lib.write(self.folder .. "/spec.lua", (small_spec:gsub("tp = { 2 }", "tp = { 2, 4 }")
    :gsub(from or "^$", to or "")))
  local out, err = lib.ends(code, "", lib.sweep_by("sh " .. self.folder .. "/launch.sh {ranks}", self.folder,
    self:environment(settings), "--exhaustive"))
  return err, out
end

local no_room = "the bench died: exit code 1 (no room for 4 ranks)"
local tries_again = "; the next sweep tries again; --tp leaves TP sizes out\n"
local first_no_room = "gentables: TP 4: " .. no_room .. started_again

function TestSweep:test_a_tp_size_that_does_not_start_harms_no_other()
  local of_4 = self.folder .. "/benchmark.tp4.host"
  local err, out = self:few_start(1, 0)
  lu.assertEquals(err, first_no_room .. "gentables: TP 4: " .. no_room .. tries_again)
  lu.assertStrContains(out, "no time for 32: unavailable: the bench died: exit code 1")
  self:has_all_rows()
  lu.assertFalse(file.exists(of_4 .. ".csv"))
  lu.assertFalse(file.exists(of_4 .. ".csv.part"))
  local record = provenance.read(of_4 .. ".json")
  lu.assertEquals({ #record.no_time, record.no_time[1].reason, record.no_time[1].failed },
    { 32, "unavailable: the bench died: exit code 1", true })
  self:generates(0, "")
  lu.assertStrContains(lib.read(self.folder .. "/report.md"),
    "| 4 | 32 | MPI, ONESHOT, TWOSHOT, MPI_SM | unavailable: the bench died: exit code 1 |")
  self:requests()
  self:few_start(0)
  lu.assertEquals(#self:requests(), 8)
  lu.assertEquals(#rows.records(of_4 .. ".csv"), 20)
  lu.assertEquals(#provenance.read(of_4 .. ".json").no_time, 12)
end

function TestSweep:test_rows_of_a_tp_size_that_does_not_start_stay()
  local of_4 = self.folder .. "/benchmark.tp4.host"
  self:few_start(0)
  local before = lib.read(of_4 .. ".csv") .. lib.read(of_4 .. ".json")
  local _, out = self:few_start(1, 0, {}, "{ 1, 4 }", "{ 1, 4, 16 }")
  lu.assertStrContains(out, of_4 .. ".csv: not changed")
  lu.assertEquals(lib.read(of_4 .. ".csv") .. lib.read(of_4 .. ".json"), before)
  lu.assertEquals(#rows.records(self.csv), 32)
  self:requests()
  self:few_start(0, nil, {}, "{ 1, 4 }", "{ 1, 4, 16 }")
  lu.assertEquals(#self:requests(), 4)
end

function TestSweep:test_where_no_tp_size_starts_nothing_is_written()
  self:few_start(0)
  local names = { self.csv, self.json, self.folder .. "/benchmark.tp4.host.csv",
    self.folder .. "/benchmark.tp4.host.json" }
  local function files()
    local texts = {}
    for i, name in ipairs(names) do texts[i] = lib.read(name) end
    return texts
  end
  local before = files()
  lib.write(self.folder .. "/starts.none", "")
  local err = self:few_start(1, 0, { HASH = "other" })
  lu.assertEquals(err, "gentables: TP 2: the bench died: exit code 1" .. started_again .. first_no_room
    .. "gentables: TP 2: the bench died: exit code 1; TP 4: " .. no_room .. "\n")
  lu.assertEquals(files(), before)
  lu.assertFalse(file.exists(self.csv .. ".part"))
end

-- No table is made of two machines.
function TestSweep:test_rows_of_another_machine_at_a_tp_size_that_does_not_start_keep_all_as_it_was()
  self:few_start(0, nil, { LIBRARY = "Open MPI v4.0.3" })
  local before = lib.read(self.csv)
  local err = self:few_start(1, 0)
  lu.assertStrMatches(err, "[^\n]*\ngentables: TP 4: [^\n]*; nothing is written, because [^\n]*"
    .. "tp4.host.csv has rows of [^\n]*, Open MPI 4.0.3, which differs in [^\n]*; another %-%-arch "
    .. "or %-%-out is required\n")
  lu.assertEquals(lib.read(self.csv), before)
  os.remove(self.folder .. "/benchmark.tp4.host.csv")
  os.remove(self.folder .. "/benchmark.tp4.host.json")
  self:requests()
  lu.assertEquals((self:few_start(1, 0)), first_no_room .. "gentables: TP 4: " .. no_room .. tries_again)
  self:has_all_rows() -- the rows of TP 2 were kept
  self:few_start(0)
  lu.assertEquals(#self:requests(), 8)
end

function TestSweep:test_a_tp_size_that_no_longer_starts_keeps_its_rows()
  local two = { "launches = 1", "launches = 2" }
  local err, out = self:few_start(1, 1, {}, table.unpack(two))
  lu.assertEquals(err, first_no_room .. "gentables: TP 4: " .. no_room .. tries_again)
  lu.assertStrContains(out, "benchmark.tp4.host.csv: not written; 20 rows are kept for the next sweep")
  lu.assertStrContains(out, "TP 4: no bench starts any more\n")
  self:has_all_rows()
  self:requests()
  self:few_start(0, nil, {}, table.unpack(two))
  lu.assertEquals(#self:requests(), 8)
  lu.assertEquals(#rows.records(self.folder .. "/benchmark.tp4.host.csv"), 20)
end

function TestSweep:test_a_bench_that_died_and_does_not_start_again_keeps_its_rows()
  local err = self:few_start(1, 1, { FAULT = "die", AT = "id=12 " })
  lu.assertStrMatches(err, "gentables: TP 4 [^\n]* tried again with a new bench\n[^\n]*; the bench is "
    .. "started again\ngentables: TP 4: the bench died: exit code 1 %(no room for 4 ranks%); the "
    .. "next sweep tries again; %-%-tp [^\n]*\n")
  self:has_all_rows()
  self:requests()
  self:few_start(0)
  lu.assertEquals(#self:requests(), 5)
end

-- ---- a launch that is lost at its start --------------------------------------------------------

-- Of two launches the second is killed at its start, once.
function TestSweep:test_a_bench_that_dies_at_its_start_is_started_again()
  self:change_spec("launches = 1", "launches = 2")
  local started, lost = self.folder .. "/started", self.folder .. "/lost"
  lib.write(self.folder .. "/launch.sh", ([[
[ -e %s ] && mkdir %s 2>/dev/null && kill -9 $$
>%s
exec "$@"]]):format(started, lost, started))
  local launcher = ("sh %s/launch.sh env RANKS={ranks}"):format(self.folder)
  local _, err = lib.ends(0, "", lib.sweep_by(launcher, self.folder, self:environment(), "--exhaustive"))
  lu.assertEquals(err, "gentables: TP 2: the bench died: killed by SIGKILL (Killed)" .. started_again)
  lu.assertEquals(#self:pids(), 2)
  lu.assertEquals(#self:requests(), 16)
  self:has_all_rows()
end

-- Runs launches of a TP size after the end of its budget, with a bench that does not start. Returns its
-- state.
local function without_time(has_results)
  local start, regime = bench.start, { launch = 1, planner = { is_cut_off = function() return true end } }
  local _ <close> = setmetatable({}, { __close = function() bench.start = start end })
  function bench.start()
    return nil, { reason = "the bench died", detail = "rank 1 is stopped, in the set-up of MPI_SM" }
  end
  local job = { backend = { command = function() end, arguments = function() end },
    spec = { strategies = { "MPI" } }, progress = { print = function(_, text) regime.said = text end } }
  local state = { size = 2, nodes = 1, name = "TP 2", ends_at = 0, regime = regime,
    can_start = function() return false end, start_patience = function() end,
    has_results = function() return has_results end,
    chosen = function() return regime end,
    refuse = function(self, reason, message) self.refusal, self.message = reason, message end }
  launches.run(job, state)
  return state
end

function TestSweep.test_a_start_that_fails_when_the_budget_is_over_ends_it()
  local words = "the bench died (rank 1 is stopped, in the set-up of MPI_SM); the spec does not have MPI_SM, "
    .. "which the bench sets up too"
  local state = without_time(true)
  lu.assertEquals({ state.refusal, state.cut_off, state.regime.said },
    { nil, true, "gentables: TP 2: " .. words .. "; no time is left for another start" })
  state = without_time(false)
  lu.assertEquals({ state.refusal, state.message, state.cut_off }, { "the bench died", words, nil })
end

-- ---- missing, full or read-only ---------------------------------------------------------------

function TestSweep:test_missing_parts_are_reported_in_one_line()
  local spec, with_bench = self.folder .. "/spec.lua", { "--out", self.folder, "--bench", lib.stand_in }
  is_refused(2, "no mpirun [^\n]*; install Open MPI or MPICH, ", with_bench,
    { "PATH=/nonexistent", "GENTABLES_LAUNCHER=" })
  is_refused(2, "no bench %(/nonexistent: No such file or directory%); ",
    { "--out", self.folder, "--bench", "/nonexistent" })
  is_refused(1, "spec.lua: is not a folder",
    { spec, "--out", spec .. "/rows", "--bench", lib.stand_in })
  self:change_spec("num_tokens", "num_token")
  is_refused(2, '/spec.lua:2: unknown key "num_token"; valid keys: ', with_bench)
  os.remove(spec)
  is_refused(2, "/spec.lua: ", with_bench)
end

-- A limit on the size of files stops the journal like a full disk.
function TestSweep:test_a_file_that_cannot_grow_loses_nothing()
  self:swept()
  local before = lib.read(self.csv) .. lib.read(self.json)
  local words = {}
  for i, word in ipairs(lib.sweep_command(self.folder, "--fresh")) do words[i] = "'" .. word .. "'" end
  local script = "trap '' XFSZ; ulimit -f 2; exec " .. table.concat(words, " ")
  local _, err = lib.ends(1, "", lib.run({ "sh", "-c", script }, self:environment()))
  lu.assertStrMatches(err, "gentables: [^\n]*%.part: cannot be written: [^\n]*File too large[^\n]*\n")
  lu.assertEquals(lib.read(self.csv) .. lib.read(self.json), before)
  local asked = #self:requests()
  lu.assertTrue(asked > 1 and asked < 8)
  self:sweep_well()
  lu.assertEquals(#self:requests(), 8 - (asked - 1)) -- the last one's answer did not fit
  self:has_all_rows()
end

-- ---- a slow bench -----------------------------------------------------------------------------

local TestWaiting, waiting = {}, {}

for fault, seconds in pairs(patience) do
  local sweep = setmetatable({}, { __index = TestSweep })
  sweep:setUp()
  waiting[fault] = { sweep = sweep, child = sweep:start_fault(fault, seconds) }
end

function TestWaiting.test_no_answer_in_time_costs_one_more_request()
  for fault, of in pairs(waiting) do
    of.sweep:survives_fault(fault, of.child)
    of.sweep:tearDown()
  end
end

return require "suites" { { "TestSweep", TestSweep }, { "TestWaiting", TestWaiting } }
