-- Histories made up from recorded launches: what changed in the last runs is found within five of them, and
-- named; runs of the same machine give no false alarm.
local change_points = require "history.change_points"
local core = require "core.history"
local lib = require "unit.history.lib"
local lu = require "luaunit"
local run_changes = require "history.run_changes"

local RECORDED = os.getenv "SOURCE" .. "/tests/recorded/benchmark.tp2.host.csv"
local EARLIER, ALARM_RUNS = 20, 100
local recorded = lib.recorded(RECORDED, 8)
math.randomseed(7)
local earlier = {}
for run = 1, EARLIER do earlier[run] = lib.levels(lib.run(recorded)) end

-- The first findings within five runs with times by factor(record). Fails if there are none.
local function findings_of(factor)
  local runs, findings = lib.runs_until(recorded, earlier, factor, function() return true end)
  lu.assertNotNil(runs, "nothing was found")
  return findings
end

local function kinds_of(findings)
  local out = {}
  for i, finding in ipairs(findings) do
    out[i] = finding.series and finding.series.strategy .. " " .. finding.kind or finding.kind
  end
  table.sort(out)
  return out
end

local function assert_shift(finding, factor)
  lu.assertAlmostEquals(2 ^ finding.shift, factor, 0.02)
  lu.assertTrue(math.abs(finding.at - EARLIER - 1) <= 1, "found at run " .. finding.at)
end

local TestPlanted = {}

function TestPlanted.test_five_percent_of_each_strategy()
  for i, strategy in ipairs { "MPI", "ONESHOT", "TWOSHOT", "MPI_RING", "MPI_RABENSEIFNER" } do
    local factor = i % 2 == 0 and 0.95 or 1.05
    local findings = findings_of(function(record) return record.strategy == strategy and factor or 1 end)
    lu.assertEquals(kinds_of(findings), { strategy .. " strategy" })
    assert_shift(findings[1], factor)
  end
end

function TestPlanted.test_a_slow_machine_is_no_slow_strategy()
  local findings = findings_of(function() return 1.1 end)
  lu.assertEquals(kinds_of(findings), { "machine" })
  assert_shift(findings[1], 1.1)
end

function TestPlanted.test_a_strategy_on_a_slow_machine()
  local runs = table.move(earlier, 1, EARLIER, 1, {})
  for after = 1, 5 do
    runs[EARLIER + after] = lib.levels(lib.run(recorded, function(record)
      return record.strategy == "MPI" and 1.2 * 1.06 or 1.2
    end))
  end
  local findings = change_points.find(lib.model(recorded, runs)).findings
  lu.assertEquals(kinds_of(findings), { "MPI strategy", "machine" })
end

function TestPlanted.test_most_strategies_are_not_the_machine()
  local findings = findings_of(function(record) return record.strategy:find "^MPI" and 1.1 or 1 end)
  lu.assertEquals(kinds_of(findings), { "MPI strategy", "MPI_RABENSEIFNER strategy", "MPI_RING strategy" })
  for _, finding in ipairs(findings) do assert_shift(finding, 1.1) end
end

function TestPlanted.test_one_fusion_of_a_strategy()
  local findings = findings_of(function(record)
    return record.strategy == "ONESHOT" and record.fusion == "NONE" and 1.08 or 1
  end)
  lu.assertEquals(kinds_of(findings), { "ONESHOT fusion" })
  lu.assertEquals(findings[1].series.fusion, "NONE")
  assert_shift(findings[1], 1.08)
end

local TestNothing = {}

function TestNothing.test_the_same_machine_gives_no_alarm()
  local few, runs, alarms = lib.recorded(RECORDED, 16), {}, {}
  for run = 1, ALARM_RUNS do
    runs[run] = lib.levels(lib.run(few))
    for _, finding in ipairs(change_points.find(lib.model(few, runs)).findings) do
      alarms[finding.kind .. (finding.series and finding.series.strategy or "")] = true
    end
  end
  local count = 0
  for _ in pairs(alarms) do count = count + 1 end
  lu.assertTrue(count <= 1, count .. " false alarms")
end

function TestNothing.test_one_run_that_went_wrong()
  local runs = table.move(earlier, 1, EARLIER, 1, {})
  runs[10] = lib.levels(lib.run(recorded, function(record) return record.strategy == "MPI" and 2 or 1 end))
  lu.assertEquals(change_points.find(lib.model(recorded, runs)).findings, {})
end

local TestRunChanges = {}

function TestRunChanges.test_versions_and_machines_are_named()
  local function facts(library, cores, hash)
    return run_changes.facts { machine = { cpu = "X", cores = cores, mpi = library }, bench = { hash = hash },
      spec = { keys = { limits = { cell_us = 5 } } }, roundtrip_us = 0.09 }
  end
  local old = facts("CUDA 12.8 with driver 570 and NCCL 2.26", 8, "a")
  lu.assertEquals(run_changes.between(old, old), {})
  local new = facts("CUDA 12.8 with driver 580 and NCCL 2.27", 4, "b")
  lu.assertEquals(run_changes.between(old, new), { "MPI (CUDA 12.8 with driver 570 and NCCL 2.26, now CUDA "
    .. "12.8 with driver 580 and NCCL 2.27), cores (8, now 4)", "bench hash (a, now b)" })
  new = facts("CUDA 12.8 with driver 570 and NCCL 2.26", 8, "a")
  new.roundtrip_us = 0.4
  lu.assertEquals(run_changes.between(old, new), { "round trip of a flag (0.09 us, now 0.4 us)" })
  lu.assertEquals(run_changes.between({}, {}), {})
end

local TestSegments = {}

-- Levels around the given ones, each for `length` runs.
local function steps(list, length)
  local out = {}
  for _, level in ipairs(list) do
    for i = 1, length do out[#out + 1] = level + 0.01 * ((7 * i) % 5 - 2) end
  end
  return out
end

local function starts(values, options)
  local out = {}
  for _, change in ipairs(core.changes(values, setmetatable(options or {}, { __index = { shortest = 3,
    clips = true, threshold = 0.03, p = 0.01 } }))) do
    out[#out + 1] = change.at
  end
  table.sort(out)
  return out
end

function TestSegments.test_steps()
  lu.assertEquals(starts(steps({ 0, 0.2, 0 }, 10)), { 11, 21 })
  lu.assertEquals(starts(steps({ 0, 0.02 }, 10)), {})
  lu.assertEquals(starts(steps({ 1 }, 30)), {})
  lu.assertEquals(starts({}), {})
  lu.assertEquals(starts({ 1, 1, 1, 2, 2, 2 }), { 4 })
end

function TestSegments.test_unmeasured_runs()
  local values = steps({ 0, 0.2 }, 10)
  values[3], values[11] = false, false
  lu.assertEquals(starts(values), { 12 })
end

-- A few runs that happen to have the same level show no noise, but those around them do.
function TestSegments.test_quiet_runs()
  local values = {}
  for run = 1, 24 do values[run] = run % 2 == 0 and 0.1 or -0.1 end
  for run = 10, 15 do values[run] = run <= 12 and 0.1 or -0.1 end
  lu.assertEquals(starts(values), {})
end

function TestSegments.test_single_runs()
  local values = steps({ 0 }, 200)
  values[100] = 3
  lu.assertEquals(starts(values), {})
  values = steps({ 0 }, 20)
  values[20] = 3
  lu.assertEquals(starts(values), {})
  lu.assertEquals(starts(values, { shortest = 1, clips = false }), { 20 })
end

return require "suites" { { "TestPlanted", TestPlanted }, { "TestNothing", TestNothing },
  { "TestRunChanges", TestRunChanges }, { "TestSegments", TestSegments } }
