-- gentables sweep when something fails: the bench, its launcher, a TP size, the spec, the disk. Rows that
-- were measured are kept, and nothing is left running.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "unit.sweep.lib"
local process = require "core.process"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local small_spec, TestSweep = table.unpack((require "unit.sweep.lib_sweep"))

-- ---- a bench that goes wrong ------------------------------------------------------------------

local faults = {
  die = "the bench died: killed by SIGABRT (Aborted) (stand-in: first words / stand-in: last words)",
  leave = "the bench died: exit code 3",
  hang = "the bench did not answer within 6.5 s",
  late = "the bench did not answer within 6.5 s",
  garbage = "the bench wrote a line that protocol 2 does not have: Segment ID: 7 ?[31mred",
  no_time = "the bench answered nonsense: time_us=nan in: row id=",
  silent_about_one = "the bench gave no answer for ",
  wrong_id = "the bench wrote a line that protocol 2 does not have: done id=10",
  refuse = "the bench reports: no such fusion",
}
-- Seconds of patience: an answer that never comes, or too late, is waited for so long that a healthy stand-in
-- answers in it on a busy machine, too. Meanwhile the other tests run.
local patience = { hang = "6", late = "6" }
local culprit = "fusion=NONE hidden_size=128 num_tokens=4"

-- Starts a sweep with a bench that fails once.
function TestSweep:start_fault(fault, seconds)
  local settings = self:environment { FAULT = fault, AT = culprit, ONCE = self.folder .. "/" .. fault }
  local argv = lib.sweep_command(self.folder, "--fresh", "--patience", seconds)
  return assert(process.start(argv, settings))
end

function TestSweep:survives_fault(fault, child)
  local ended, _, err = lib.finish(child)
  lu.assertEquals(ended, "exit code 0", fault)
  lu.assertStrContains(err, "gentables: TP 2 bfloat16 NONE, hidden size 128, 4 tokens: " .. faults[fault])
  lu.assertStrMatches(err, "[^\n]*tried again with a new bench\n")
  self:has_all_rows()
  self:leaves_nothing_running()
  lu.assertEquals(#self:requests(), 9)
end

-- Where the bench answers or dies, no time is judged.
function TestSweep:test_a_fault_that_passes_costs_one_more_request()
  for fault in pairs(faults) do
    if not patience[fault] then self:survives_fault(fault, self:start_fault(fault, "60")) end
  end
end

function TestSweep:test_a_fault_that_stays_costs_its_cell_alone()
  local ended, out, err = self:sweep { FAULT = "die", AT = culprit }
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrContains(err, "it stays without a time")
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
  self:sweep_well()
  lu.assertEquals(#self:requests(), 1)
  self:has_all_rows()
end

function TestSweep:test_a_strategy_that_ends_the_bench_costs_its_own_time_alone()
  local ended, _, err = self:sweep { FAULT = "blame", AT = culprit }
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrContains(err, "4 tokens: the bench reports: it hung; TWOSHOT stays without a time\n")
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
  local ended, _, err = self:sweep { FAULT = "blame" }
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrContains(err, "3 cells measured without a strategy that fails there")
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
  local ended, _, err = self:sweep { FAULT = "leave" }
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrContains(err, "gentables: 5 cells in a row failed; results are kept")
  lu.assertEquals(#self:requests(), 10)
  lu.assertFalse(file.exists(self.csv))
end

function TestSweep:test_a_bench_that_does_not_start_ends_the_sweep_in_one_line()
  local messages = {
    die_at_start = "TP 2: " .. faults.die,
    mute_at_start = "TP 2: the bench did not answer within 0.1 s",
    other_protocol = "TP 2: the bench speaks protocol 3, gentables 2; build both from the same tree",
    other_bench = "TP 2: the launcher started bench other, and not stand-in",
  }
  for fault, message in pairs(messages) do
    -- The mute one never speaks, so that its patience may be short.
    local seconds = fault == "mute_at_start" and "0.1" or "60"
    local ended, _, err = self:sweep({ FAULT = fault }, "--patience", seconds)
    lu.assertEquals(ended, "exit code 1")
    lu.assertEquals(err, "gentables: " .. message .. "\n")
    self:leaves_nothing_running()
  end
end

function TestSweep:with_launcher(text)
  local ended, _, err = lib.run({ lib.gentables, "sweep", "--out", self.folder, "--bench", lib.stand_in,
    "--launcher", text })
  return ended, err
end

function TestSweep:test_a_launcher_with_other_ranks_is_told()
  local ended, err = self:with_launcher("env RANKS=3 NOTE={ranks}")
  lu.assertEquals(ended, "exit code 1")
  lu.assertEquals(err, "gentables: TP 2: the launcher started 3 ranks, not 2\n")
end

function TestSweep:test_a_launcher_has_to_take_the_number_of_ranks()
  local ended, err = self:with_launcher("env RANKS=2")
  lu.assertEquals(ended, "exit code 2")
  lu.assertStrContains(err, "has no {ranks}; write {ranks} where the number of ranks goes")
end

function TestSweep:test_a_launcher_that_is_not_there_is_told()
  local ended, err = self:with_launcher("no-such-launcher {ranks}")
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrContains(err, "TP 2: cannot be started: no-such-launcher: No such file or directory")
end

function TestSweep:test_what_became_of_the_devices_in_all_launches_is_in_the_provenance()
  lib.write(self.folder .. "/spec.lua", (small_spec:gsub("launches = 1", "launches = 2")))
  self:sweep_well { DEVICES = 1 }
  lu.assertEquals(provenance.read(self.json).devices, { { rank = "0", clock_mhz = "1980",
    at_end = { clock_mhz = "1980", least_clock_mhz = "1200", throttle_seen = "0x44" } } })
end

-- ---- a TP size that does not start ------------------------------------------------------------

-- Sweeps TP 2 and 4, with `to` in place of `from` in the spec, by a launcher that starts 4 ranks only so
-- often (nil: always). Returns as lib.run does.
function TestSweep:sweep_where_few_start(starts, settings, from, to)
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
  return lib.run({ lib.gentables, "sweep", "--out", self.folder, "--bench", lib.stand_in, "--exhaustive",
    "--launcher", "sh " .. self.folder .. "/launch.sh {ranks}" }, self:environment(settings))
end

local no_room = "the bench died: exit code 1 (no room for 4 ranks)"
local tries_again = "; the next sweep tries again; --tp leaves TP sizes out\n"

function TestSweep:test_a_tp_size_that_does_not_start_harms_no_other()
  local of_4 = self.folder .. "/benchmark.tp4.host"
  local ended, out, err = self:sweep_where_few_start(0)
  lu.assertEquals(ended, "exit code 1")
  lu.assertEquals(err, "gentables: TP 4: " .. no_room .. tries_again)
  lu.assertStrContains(out, "no time for 32: unavailable: the bench died: exit code 1")
  self:has_all_rows()
  lu.assertFalse(file.exists(of_4 .. ".csv"))
  lu.assertFalse(file.exists(of_4 .. ".csv.part"))
  local record = provenance.read(of_4 .. ".json")
  lu.assertEquals({ #record.no_time, record.no_time[1].reason, record.no_time[1].failed },
    { 32, "unavailable: the bench died: exit code 1", true })
  local _, problem
  ended, _, problem = lib.run { lib.gentables, "generate", "--data-dir", self.folder, "--arch", "host" }
  lu.assertEquals(ended, "exit code 0", problem)
  lu.assertStrContains(lib.read(self.folder .. "/report.md"),
    "| 4 | 32 | MPI, ONESHOT, TWOSHOT, MPI_SM | unavailable: the bench died: exit code 1 |")
  self:requests()
  ended, _, problem = self:sweep_where_few_start()
  lu.assertEquals(ended, "exit code 0", problem)
  lu.assertEquals(#self:requests(), 8)
  lu.assertEquals(#rows.records(of_4 .. ".csv"), 20)
  lu.assertEquals(#provenance.read(of_4 .. ".json").no_time, 12)
end

function TestSweep:test_rows_of_a_tp_size_that_does_not_start_stay()
  local of_4 = self.folder .. "/benchmark.tp4.host"
  self:sweep_where_few_start()
  local before = lib.read(of_4 .. ".csv") .. lib.read(of_4 .. ".json")
  local ended, out = self:sweep_where_few_start(0, {}, "{ 1, 4 }", "{ 1, 4, 16 }")
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrContains(out, of_4 .. ".csv: not changed")
  lu.assertEquals(lib.read(of_4 .. ".csv") .. lib.read(of_4 .. ".json"), before)
  lu.assertEquals(#rows.records(self.csv), 32)
  self:requests()
  ended = self:sweep_where_few_start(nil, {}, "{ 1, 4 }", "{ 1, 4, 16 }")
  lu.assertEquals(ended, "exit code 0")
  lu.assertEquals(#self:requests(), 4)
end

function TestSweep:test_where_no_tp_size_starts_nothing_is_written()
  self:sweep_where_few_start()
  local names = { self.csv, self.json, self.folder .. "/benchmark.tp4.host.csv",
    self.folder .. "/benchmark.tp4.host.json" }
  local function files()
    local texts = {}
    for i, name in ipairs(names) do texts[i] = lib.read(name) end
    return texts
  end
  local before = files()
  lib.write(self.folder .. "/starts.none", "")
  local ended, _, err = self:sweep_where_few_start(0, { HASH = "other" })
  lu.assertEquals(ended, "exit code 1")
  lu.assertEquals(err, "gentables: TP 2: the bench died: exit code 1; TP 4: " .. no_room .. "\n")
  lu.assertEquals(files(), before)
  lu.assertFalse(file.exists(self.csv .. ".part"))
end

-- No table is made of two machines.
function TestSweep:test_rows_of_another_machine_at_a_tp_size_that_does_not_start_keep_all_as_it_was()
  self:sweep_where_few_start(nil, { LIBRARY = "Open MPI v4.0.3" })
  local before = lib.read(self.csv)
  local ended, _, err = self:sweep_where_few_start(0)
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrMatches(err, "gentables: TP 4: [^\n]*; nothing is written, because [^\n]*tp4.host.csv has "
    .. "rows of [^\n]*, Open MPI 4.0.3; another %-%-arch or %-%-out is required\n")
  lu.assertEquals(lib.read(self.csv), before)
  os.remove(self.folder .. "/benchmark.tp4.host.csv")
  os.remove(self.folder .. "/benchmark.tp4.host.json")
  self:requests()
  ended, _, err = self:sweep_where_few_start(0)
  lu.assertEquals({ ended, err }, { "exit code 1", "gentables: TP 4: " .. no_room .. tries_again })
  self:has_all_rows() -- what TP 2 measured was kept
  ended = self:sweep_where_few_start()
  lu.assertEquals(ended, "exit code 0")
  lu.assertEquals(#self:requests(), 8)
end

function TestSweep:test_a_tp_size_that_starts_no_more_keeps_what_it_measured()
  local launches = { "launches = 1", "launches = 2" }
  local ended, out, err = self:sweep_where_few_start(1, {}, table.unpack(launches))
  lu.assertEquals(ended, "exit code 1")
  lu.assertEquals(err, "gentables: TP 4: " .. no_room .. tries_again)
  lu.assertStrContains(out, "benchmark.tp4.host.csv: not written; 20 rows are kept for the next sweep")
  self:has_all_rows()
  self:requests()
  ended = self:sweep_where_few_start(nil, {}, table.unpack(launches))
  lu.assertEquals(ended, "exit code 0")
  lu.assertEquals(#self:requests(), 8)
  lu.assertEquals(#rows.records(self.folder .. "/benchmark.tp4.host.csv"), 20)
end

function TestSweep:test_a_bench_that_died_and_does_not_start_again_keeps_what_it_measured()
  local ended, _, err = self:sweep_where_few_start(1, { FAULT = "die", AT = "id=12 " })
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrMatches(err, "gentables: TP 4 [^\n]* tried again with a new bench\ngentables: TP 4: the bench "
    .. "died: exit code 1 %(no room for 4 ranks%); the next sweep tries again; %-%-tp [^\n]*\n")
  self:has_all_rows()
  self:requests()
  ended = self:sweep_where_few_start()
  lu.assertEquals(ended, "exit code 0")
  lu.assertEquals(#self:requests(), 5)
end

-- ---- what is missing, full or not writable ----------------------------------------------------

function TestSweep:test_no_mpirun_is_told()
  local ended, _, err = lib.run({ lib.gentables, "sweep", "--out", self.folder, "--bench", lib.stand_in },
    { "PATH=/nonexistent", "GENTABLES_LAUNCHER=" })
  lu.assertEquals(ended, "exit code 2")
  lu.assertStrMatches(err, "gentables: no mpirun [^\n]*; install Open MPI or MPICH, [^\n]*\n")
end

function TestSweep:test_no_bench_is_told()
  local ended, _, err = lib.run({ lib.gentables, "sweep", "--out", self.folder, "--bench", "/nonexistent" })
  lu.assertEquals(ended, "exit code 2")
  lu.assertStrMatches(err, "gentables: no bench %(/nonexistent: No such file or directory%); [^\n]*\n")
end

function TestSweep:test_a_misspelt_key_is_told_with_its_line()
  lib.write(self.folder .. "/spec.lua", (small_spec:gsub("num_tokens", "num_token")))
  local ended, _, err = self:sweep()
  lu.assertEquals(ended, "exit code 2")
  lu.assertStrMatches(err, 'gentables: [^\n]*/spec.lua:2: unknown key "num_token"; valid keys: [^\n]*\n')
end

function TestSweep:test_a_missing_spec_is_told()
  os.remove(self.folder .. "/spec.lua")
  local ended, _, err = self:sweep()
  lu.assertEquals(ended, "exit code 2")
  lu.assertStrMatches(err, "gentables: [^\n]*/spec.lua: [^\n]*\n")
end

function TestSweep:test_a_folder_that_cannot_be_made_is_told()
  local out = self.folder .. "/spec.lua/rows"
  local ended, _, err = lib.run({ lib.gentables, "sweep", self.folder .. "/spec.lua", "--out", out,
    "--bench", lib.stand_in })
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrMatches(err, "gentables: [^\n]*spec.lua: the folder cannot be made: [^\n]*\n")
end

-- A limit on the size of files stops the journal as a full disk does.
function TestSweep:test_a_file_that_cannot_grow_loses_nothing()
  self:sweep_well()
  self:requests()
  local before = lib.read(self.csv) .. lib.read(self.json)
  local words = {}
  for i, word in ipairs(lib.sweep_command(self.folder, "--fresh")) do words[i] = "'" .. word .. "'" end
  local script = "trap '' XFSZ; ulimit -f 2; exec " .. table.concat(words, " ")
  local ended, _, err = lib.run({ "sh", "-c", script }, self:environment())
  lu.assertEquals(ended, "exit code 1")
  lu.assertStrMatches(err, "gentables: [^\n]*%.part: cannot be written: [^\n]*File too large[^\n]*\n")
  lu.assertEquals(lib.read(self.csv) .. lib.read(self.json), before)
  local asked = #self:requests()
  lu.assertTrue(asked > 1 and asked < 8)
  self:sweep_well()
  lu.assertEquals(#self:requests(), 8 - (asked - 1)) -- but the last one's answer found no room
  self:has_all_rows()
end

-- ---- a bench that is waited for ---------------------------------------------------------------

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
