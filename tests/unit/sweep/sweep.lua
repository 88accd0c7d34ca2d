-- gentables sweep from the outside, with a stand-in bench: the kept rows, the repeated measurements, and that
-- no process is left. failures.lua has the failures of benches and folders.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "unit.sweep.lib"
local process = require "core.process"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local small_spec, TestSweep = table.unpack((require "unit.sweep.lib_sweep"))

local SIGHUP, SIGINT, SIGKILL, SIGTERM = 1, 2, 9, 15

-- ---- measured and kept rows -------------------------------------------------------------------

function TestSweep:test_a_sweep_writes_rows_and_where_they_come_from()
  local out = self:sweep_well()
  self:has_all_rows()
  lu.assertStrContains(out, "TP 2: 8 of 8 cells to measure")
  lu.assertStrContains(out, "wrote " .. self.csv .. ": 20 rows")
  lu.assertStrContains(out, "lowest median in 8 of 8 cells")
  lu.assertStrContains(out, "no time for 8: unavailable: not in here")
  local record = provenance.read(self.json)
  lu.assertEquals({ record.world_size, record.arch, record.bench.hash, record.placement },
    { 2, "host", "stand-in", "dedicated" })
  lu.assertNotStrContains(lib.read(self.json), self.folder)
end

function TestSweep:test_one_size_and_one_launch_are_printed_as_one()
  self:change_spec("{ 64, 128 },\n  num_tokens = { 1, 4 }", "{ 64 }, num_tokens = { 4 }")
  local out = self:sweep_well()
  lu.assertStrContains(out, "lowest median in 2 of 2 cells, 512 B\n")
  lu.assertStrContains(out, "in 1 launch of the bench")
end

-- Here AUTO is faster, but no table may choose it.
function TestSweep:test_a_strategy_that_is_never_chosen_is_never_the_best()
  self:change_spec('"MPI", "ONESHOT"', '"AUTO", "ONESHOT"')
  local out = self:sweep_well()
  lu.assertStrContains(lib.read(self.csv), ",AUTO,")
  lu.assertStrContains(out, "lowest median in 8 of 8 cells")
  lu.assertNotStrContains(out, "AUTO")
end

function TestSweep:test_a_finished_sweep_starts_no_bench()
  self:swept()
  local before = lib.read(self.csv) .. lib.read(self.json)
  local out = self:sweep_well()
  lu.assertStrContains(out, "up to date, 20 rows")
  lu.assertEquals(self:pids(), {})
  lu.assertEquals(lib.read(self.csv) .. lib.read(self.json), before)
end

function TestSweep:test_a_grown_spec_measures_only_new_cells()
  self:swept()
  self:change_spec("{ 1, 4 }", "{ 1, 4, 16 }")
  self:sweep_well()
  local asked = self:requests()
  lu.assertEquals(#asked, 4)
  for _, request in ipairs(asked) do lu.assertStrContains(request, "num_tokens=16 ") end
  lu.assertEquals(#rows.records(self.csv), 32)
end

function TestSweep:test_a_new_strategy_is_measured_alone()
  self:change_spec('"ONESHOT", ', "")
  self:swept()
  lib.write(self.folder .. "/spec.lua", small_spec)
  self:sweep_well()
  local asked = self:requests()
  lu.assertEquals(#asked, 8)
  for _, request in ipairs(asked) do lu.assertStrMatches(request, ".* strategies=ONESHOT") end
  self:has_all_rows()
end

function TestSweep:test_a_smaller_spec_leaves_out_rows_and_measures_nothing()
  self:swept()
  self:change_spec("{ 64, 128 }", "{ 64 }")
  self:sweep_well()
  lu.assertEquals(self:requests(), {})
  lu.assertEquals(#rows.records(self.csv), 10)
end

function TestSweep:test_cells_beyond_a_limit_have_a_reason_and_are_measured_once_it_grows()
  local limited = small_spec:gsub("launches = 1", "launches = 1, message_bytes = 512")
  lib.write(self.folder .. "/spec.lua", limited)
  self:measures(6)
  local skipped = 0
  for _, entry in ipairs(provenance.read(self.json).no_time) do
    if entry.reason:find("limit of 512 bytes", 1, true) then skipped = skipped + 1 end
  end
  lu.assertEquals(skipped, 8)
  lib.write(self.folder .. "/spec.lua", (limited:gsub("512", "1024")))
  self:measures(2)
  self:has_all_rows()
end

function TestSweep:test_fresh_measures_anew()
  self:swept()
  self:sweep_well({}, "--fresh")
  lu.assertEquals(#self:requests(), 8)
end

function TestSweep:test_an_interrupted_fresh_sweep_stays_fresh()
  self:swept()
  self:interrupt_at("id=5 ", SIGKILL, "--fresh")
  self:requests()
  self:measures(4)
end

-- Sweeps on a terminal, which `script` of util-linux makes. Returns what it shows.
function TestSweep:on_a_terminal(...)
  local words = {}
  for i, word in ipairs(lib.sweep_command(self.folder, ...)) do words[i] = "'" .. word .. "'" end
  local command = { "script", "-qec", "stty cols 150; exec " .. table.concat(words, " "), "/dev/null" }
  if not process.start({ "script", "--version" }) then lu.skip("there is no script of util-linux") end
  local out = lib.ends(0, "", lib.run(command, self:environment()))
  return out
end

function TestSweep:test_a_terminal_sees_how_far_it_is()
  lu.assertStrContains(self:on_a_terminal(), "\r\27[K[....................] 0 %  TP 2 bfloat16 ")
  self:has_all_rows()
end

function TestSweep:test_progress_counts_all_tp_sizes()
  self:change_spec("tp = { 2 }", "tp = { 2, 4 }")
  local out = self:on_a_terminal()
  lu.assertTrue(out:find("%[##########%.+%] 50 %%, %d+:%d%d left  TP 4 ") ~= nil, out)
end

function TestSweep:test_progress_shows_the_time_of_a_budget()
  local out = self:on_a_terminal("--budget", "50")
  lu.assertTrue(out:find("] 0 %, 0:50 left  TP 2 bfloat16 ", 1, true) ~= nil, out)
end

function TestSweep:test_only_the_requested_tp_sizes()
  self:change_spec("tp = { 2 }", "tp = { 2, 4 }")
  self:sweep_well({}, "--tp", "4")
  lu.assertFalse(file.exists(self.csv))
  lu.assertEquals(rows.records(self.folder .. "/benchmark.tp4.host.csv")[1].world_size, 4)
  self:ends_with(2, 'gentables: --tp: 3 is no TP size of the spec, which has 2, 4', {}, "--tp", "3")
end

function TestSweep:test_another_arch_keeps_the_rows_of_another_machine()
  self:sweep_well({ LIBRARY = "Open MPI v4.0.3" })
  local before = lib.read(self.csv)
  self:sweep_well({}, "--arch", "host-here")
  lu.assertEquals(lib.read(self.csv), before)
  lu.assertEquals(#rows.records(self.folder .. "/benchmark.tp2.host-here.csv"), 20)
end

function TestSweep:test_another_bench_measures_anew()
  self:swept()
  lu.assertStrContains(self:sweep_well({ HASH = "other" }),
    "measures again: changed: the bench's hash (stand-in, now other)\n")
  lu.assertEquals(#self:requests(), 8)
end

function TestSweep:test_rows_of_an_unknown_machine_are_replaced_only_on_purpose()
  self:sweep_well()
  local before = lib.read(self.csv)
  os.remove(self.json)
  local err = self:ends_with(2, "the machine of its rows is unknown; --fresh")
  lu.assertStrMatches(err, "gentables: [^\n]*tp2.host.csv: no [^\n]*\n")
  lu.assertEquals(lib.read(self.csv), before)
  self:sweep_well({}, "--fresh")
  self:has_all_rows()
end

function TestSweep:test_the_host_measures_for_no_gpu()
  self:ends_with(2, "--arch: sm90 is of another backend than the spec's host", {}, "--arch", "sm90")
  self:change_spec('"host"', '"sm90"')
  self:ends_with(2, "spec.lua:2: strategies has MPI, which sm90 does not measure; valid: ONESHOT, ")
  lu.assertFalse(file.exists(self.folder .. "/benchmark.tp2.sm90.csv"))
end

function TestSweep:test_where_nothing_has_a_time_the_rows_stay()
  self:sweep_well()
  local before = lib.read(self.csv)
  self:change_spec("launches = 1", "launches = 1, message_bytes = 1")
  local _, out = self:ends_with(1, "TP 2: no cell has a time, so there are no rows")
  lu.assertStrContains(out, "not written; nothing has a time")
  lu.assertEquals(lib.read(self.csv), before)
end

function TestSweep:test_a_tp_size_that_the_spec_no_longer_has_is_named_and_in_no_table()
  self:change_spec("tp = { 2 }", "tp = { 2, 3 }")
  self:sweep_well()
  lib.write(self.folder .. "/spec.lua", small_spec)
  lu.assertStrContains(self:sweep_well(), "benchmark.tp3.host.csv: stays; tables do not use it")
  self:generates(0, "benchmark.tp3.host.csv: left out: spec.lua has no TP 3")
  lu.assertNotStrContains(lib.read(self.folder .. "/table.csv"), "host,3,")
end

function TestSweep:test_rows_that_the_provenance_lacks_are_measured_again()
  self:sweep_well()
  lib.write(self.csv, (lib.read(self.csv):gsub("\n[^\n]*\n$", "\n")))
  self:generates(2, ("%s: describes other rows than those in %s; sweep again"):format(self.json, self.csv))
  lu.assertStrContains(self:sweep_well(), "measures again: " .. self.json .. " is not of these rows")
  self:has_all_rows()
  self:generates(0, "")
end

function TestSweep:test_broken_provenance_is_reported_and_fresh_replaces_it()
  self:sweep_well()
  lib.write(self.json, "{")
  self:ends_with(2, self.json .. ": is not JSON")
  self:sweep_well({}, "--fresh")
  self:has_all_rows()
end

-- ---- launches and regimes --------------------------------------------------------------------

function TestSweep:test_every_launch_is_a_bench_of_its_own_and_stands_in_the_row()
  self:change_spec("launches = 1", "launches = 3")
  self:sweep_well()
  lu.assertEquals(#self:pids(), 3)
  lu.assertEquals(#self:requests(), 3 * 8)
  self:has_all_rows()
  for _, record in ipairs(rows.records(self.csv)) do
    lu.assertEquals(#record.launches, 3)
    lu.assertEquals(record.samples, 3 * 20)
    lu.assertEquals(record.bits, record.strategy == "MPI" and "0000000000000007" or "0000000000000009")
  end
end

function TestSweep:test_cells_come_in_another_order_in_each_launch()
  self:change_spec("launches = 1", "launches = 2")
  self:sweep_well()
  local order = { {}, {} }
  for i, request in ipairs(self:requests()) do
    table.insert(order[i <= 8 and 1 or 2], request:match("fusion=%S* hidden_size=%S* num_tokens=%S*"))
  end
  lu.assertNotEquals(order[1], order[2])
  table.sort(order[1])
  table.sort(order[2])
  lu.assertEquals(order[1], order[2])
end

-- The machine's speed changes at the third answer, for one answer.
function TestSweep:test_cells_of_another_regime_do_not_count()
  self:sweep_well { ROUNDTRIPS = "0.1,0.1,0.1,0.4,0.1" }
  self:has_all_rows()
  local record = provenance.read(self.json)
  lu.assertAlmostEquals(record.roundtrip_us, 0.1, 1e-6)
  lu.assertEquals(#self:requests(), 9)
end

-- The machine's speed changes at the third answer for good: the rows before are too few for a table.
function TestSweep:test_the_regime_that_stays_makes_the_rows()
  self:sweep_well { ROUNDTRIPS = "0.1,0.1,0.1,0.4" }
  self:has_all_rows()
  lu.assertAlmostEquals(provenance.read(self.json).roundtrip_us, 0.4, 1e-6)
  for _, record in ipairs(rows.records(self.csv)) do lu.assertEquals(record.samples, 20) end
end

-- Finished rows are of one regime, and the machine is in another one when their spec grows.
function TestSweep:test_rows_of_another_regime_are_not_mixed_with_new_ones()
  self:swept { ROUNDTRIPS = "0.1" }
  self:change_spec("{ 1, 4 }", "{ 1, 4, 16 }") -- four cells of twelve are new
  local err, out = self:ends_with(0, "", { ROUNDTRIPS = "0.4" })
  lu.assertEquals(err, "gentables: TP 2: the machine is in another regime than when its rows were "
    .. "measured (a round trip between ranks takes 0.40 us, and took 0.10); all cells are measured "
    .. "again\n")
  lu.assertNotStrContains(out, "do not count")
  lu.assertEquals(#self:requests(), 12)
  lu.assertEquals(#rows.records(self.csv), 32)
  lu.assertAlmostEquals(provenance.read(self.json).roundtrip_us, 0.4, 1e-6)
end

-- Here the machine returns to the regime of the rows, in which only the new cells are missing.
function TestSweep:test_rows_are_kept_where_their_regime_comes_back()
  self:swept { ROUNDTRIPS = "0.1" }
  self:change_spec("{ 1, 4 }", "{ 1, 4, 16 }")
  local _, out = self:ends_with(0, "", { ROUNDTRIPS = "0.4,0.4,0.4,0.1" })
  lu.assertStrContains(out, "TP 2: 2 visits in another regime of the machine do not count")
  lu.assertEquals(#self:requests(), 3 + 4)
  lu.assertEquals(#rows.records(self.csv), 32)
  lu.assertAlmostEquals(provenance.read(self.json).roundtrip_us, 0.1, 1e-6)
end

-- Cells that were measured later were measured in other launches; they are not compared launch by launch.
function TestSweep:test_launches_of_a_later_sweep_are_others()
  self:change_spec('"ONESHOT", ', "")
  self:sweep_well()
  lib.write(self.folder .. "/spec.lua", small_spec)
  self:sweep_well()
  self:has_all_rows()
  for _, record in ipairs(rows.records(self.csv)) do
    local is_later = record.strategy == "ONESHOT"
    lu.assertEquals({ #record.launches, record.launches[1] == false }, { is_later and 2 or 1, is_later })
  end
  lu.assertEquals(provenance.read(self.json).launches, 2)
end

-- ---- interruptions ----------------------------------------------------------------------------

function TestSweep:test_a_killed_sweep_resumes()
  local ended = self:interrupt_at("id=7 ", SIGKILL)
  lu.assertStrContains(ended, "killed by SIGKILL")
  local pids = self:pids()
  lib.wait_for(assert(process.start({ "cat" })), function() return not lib.runs(pids[1]) end)
  lu.assertEquals(#self:requests(), 7)
  lu.assertFalse(file.exists(self.csv))
  local out = self:sweep_well()
  lu.assertStrContains(out, "resumes an interrupted sweep")
  lu.assertStrContains(out, "TP 2: 2 of 8 cells to measure")
  lu.assertEquals(#self:requests(), 2)
  self:has_all_rows()
end

function TestSweep:test_a_resumed_sweep_drops_cells_that_the_spec_has_no_more()
  self:interrupt_at("id=8 ", SIGTERM)
  self:change_spec("{ 64, 128 }", "{ 64 }")
  lu.assertStrContains(self:sweep_well(), "resumes an interrupted sweep")
  lu.assertEquals(#rows.records(self.csv), 10)
  for _, record in ipairs(rows.records(self.csv)) do lu.assertEquals(record.hidden_size, 64) end
end

function TestSweep:test_a_resumed_sweep_ends_with_the_rows_of_one_that_was_not()
  self:sweep_well()
  local whole = lib.read(self.csv)
  os.remove(self.csv)
  os.remove(self.json)
  self:requests()
  self:interrupt_at("id=5 ", SIGTERM)
  self:sweep_well()
  lu.assertEquals((lib.read(self.csv):gsub(",;", ",")), whole) -- apart from a second launch
end

function TestSweep:test_signals_end_it_with_128_and_their_number_and_leave_nothing()
  for number, name in pairs { [SIGINT] = "SIGINT", [SIGTERM] = "SIGTERM", [SIGHUP] = "SIGHUP" } do
    local ended, err = self:interrupt_at("num_tokens=4", number, "--fresh")
    lu.assertEquals(ended, "exit code " .. 128 + number)
    lu.assertEquals(err, "gentables: interrupted by " .. name
      .. "; to resume, run the same command\n")
    self:leaves_nothing_running()
    self:requests()
  end
end

function TestSweep:test_a_journal_of_another_machine_is_not_taken_up()
  self:interrupt_at("id=5 ", SIGTERM)
  self:requests()
  local out = self:sweep_well({ LIBRARY = "Open MPI v4.0.3" })
  lu.assertStrContains(out, self.csv .. ": starts again: its journal is of another machine")
  lu.assertEquals(#self:requests(), 8)
end

-- Interrupts a sweep after four cells, replaces `from` by `to` in its journal, and resumes. Returns stdout.
function TestSweep:resumes_with_damage(requests, from, to)
  os.remove(self.csv)
  os.remove(self.json)
  self:interrupt_at("id=5 ", SIGKILL)
  self:requests()
  local path = self.csv .. ".part"
  lib.write(path, (lib.read(path):gsub(from, to, 1)))
  local out = self:sweep_well()
  lu.assertEquals(#self:requests(), requests, to)
  self:has_all_rows()
  return out
end

function TestSweep:test_a_damaged_journal_loses_its_damaged_cells_alone()
  self:swept()
  local whole = lib.read(self.csv)
  for from, to in pairs { ["strategy=MPI "] = "strategy=SPI ", ["hidden_size=%d+"] = "hidden_size=-1",
    [" size=%d"] = " size=7" } do
    local out = self:resumes_with_damage(5, from, to)
    lu.assertStrContains(out, self.csv .. ".part: 1 damaged record is ignored; cells without results are "
      .. "measured again\nresumes an interrupted sweep\n")
    lu.assertEquals((lib.read(self.csv):gsub(",;", ",")), whole, to) -- ";": in the second launch
  end
  for from, reason in pairs { ["version=%d+"] = "it is of version 2, and not 3",
    ["fingerprint=."] = "its first lines are damaged" } do
    local out = self:resumes_with_damage(8, from, from:match("%l+=") .. "2")
    lu.assertStrContains(out, (".part: not used, because %s; cells without "):format(reason))
  end
end

function TestSweep:test_all_tp_sizes_are_finished_before_any_file_is_written()
  self:change_spec("tp = { 2 }", "tp = { 2, 4 }")
  self:sweep_well({ HASH = "former" })
  local before = lib.read(self.csv) .. lib.read(self.json)
  self:requests()
  self:interrupt_at("id=12 ", SIGTERM)
  lu.assertEquals(lib.read(self.csv) .. lib.read(self.json), before)
  lu.assertTrue(file.exists(self.csv .. ".part"))
  self:requests()
  self:measures(5)
  lu.assertEquals(provenance.read(self.json).bench.hash, "stand-in")
end

return require "suites" { { "TestSweep", TestSweep } }
