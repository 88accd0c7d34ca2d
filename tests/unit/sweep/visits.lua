-- Visits: their expected time, pooling of launches to a row, interpolation between points, and results that
-- are measured again because they are disturbed: for these a launcher changes lines of the stand-in bench.
local lu = require "luaunit"
local derive = require "choose.derive"
local cell_records = require "rows.cell_records"
local cost = require "planning.cost"
local disturbance = require "sweep.disturbance"
local interpolation = require "choose.interpolation"
local lib = require "unit.sweep.lib"
local pooling = require "sweep.pooling"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local _, TestSweep = table.unpack((require "unit.sweep.lib_sweep"))

local TestVisits = {}

local cell = { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager", fusion = "NONE",
  hidden_size = 1024, num_tokens = 4, size = 8192 }

local function record(time_us, changes)
  local made = cell_records.record(cell, "ONESHOT", { size = 8192, time_us = time_us, low_us = time_us * 0.9,
    high_us = time_us * 1.1, samples = 20, min_us = time_us / 2, p95_us = 2.0 * time_us,
    p99_us = 3.0 * time_us,
    skew_us = 0.1, bound_us = 0.5, accumulate = "fp32",
    placement = "dedicated", bits = "ab" })
  for key, value in pairs(changes or {}) do made[key] = value end
  return made
end

function TestVisits.test_the_time_is_the_median_of_the_launches()
  local row = pooling.row { record(10), record(30), record(11), record(9), record(12) }
  lu.assertEquals({ row.time_us, row.samples, row.bits }, { 11, 100, "ab" })
  lu.assertEquals(row.launches, { 10, 30, 11, 9, 12 })
  lu.assertAlmostEquals(row.low_us, 8.1, 1e-9)
  lu.assertAlmostEquals(row.high_us, 33, 1e-9)
end

function TestVisits.test_of_many_launches_one_that_is_off_does_not_widen_the_interval()
  local launches = {}
  for launch = 1, 12 do launches[launch] = record(launch == 3 and 90 or 9 + launch % 4) end
  lu.assertTrue(pooling.row(launches).high_us <= 12)
end

function TestVisits.test_a_launch_that_left_it_out_has_its_place()
  local row = pooling.row { [1] = record(10), [4] = record(12) }
  lu.assertEquals(row.launches, { 10, false, false, 12 })
end

function TestVisits.test_bits_that_differ_between_launches_vary()
  lu.assertEquals(pooling.row({ record(10), record(10, { bits = "cd" }) }).bits, "varies")
end

-- Time proportional to bytes, plus a constant.
local function points()
  local out = {}
  for x = 0, 10, 2 do
    for y = 10, 13 do
      out[#out + 1] = { x = x, y = y, time = math.log(1 + 2 ^ (x + y) / 4096, 2), spread = 0.01 }
    end
  end
  return out
end

function TestVisits.test_interpolation_meets_measured_points()
  for _, point in ipairs(points()) do
    local time, nearest, distance = interpolation.predict(points(), point)
    lu.assertEquals({ time, nearest, distance }, { point.time, point, 0 })
  end
end

function TestVisits.test_between_points_it_is_near()
  local list = points()
  local time, _, distance = interpolation.predict(list, { x = 5, y = 11.5 })
  lu.assertAlmostEquals(time, math.log(1 + 2 ^ 16.5 / 4096, 2), 0.15)
  lu.assertTrue(distance > 0)
  lu.assertTrue(math.abs(interpolation.predict(list, list[3], list[3]) - list[3].time) > 1e-6) -- left out
  lu.assertNil(interpolation.predict({}, { x = 1, y = 1 }))
end

function TestVisits.test_a_row_is_split_into_its_launches_and_makes_the_same_row_again()
  local row = cell_records.record(cell, "ONESHOT", { size = 8, time_us = 3.0, low_us = 1.0, high_us = 9.0,
    samples = 25, min_us = 0.5, p95_us = 7.0, p99_us = 8.0, skew_us = 0.1, bound_us = 0.2,
    accumulate = "fp32", placement = "dedicated", launches = { 2.0, false, 4.0 }, bits = "0f" })
  local by_launch = pooling.split(row)
  lu.assertEquals({ by_launch[1].time_us, by_launch[2], by_launch[3].time_us }, { 2.0, nil, 4.0 })
  lu.assertEquals({ by_launch[1].samples, by_launch[3].samples }, { 12, 13 })
  lu.assertEquals(pooling.row(by_launch), row)
end

function TestVisits.test_only_points_without_time_and_reason_are_derived()
  local spec = { dtypes = { "bfloat16" }, fusions = { "NONE" }, hidden_sizes = { 1024 },
    num_tokens = { 1, 4, 16, 64 }, strategies = { "ONESHOT", "TWOSHOT" },
    limits = { message_bytes = 1 << 20 }, table = { op = "allreduce", mode = "eager" } }
  local with, without = {}, {}
  for _, num_tokens in ipairs { 1, 4, 64 } do
    local made = cell_records.record(cell, "ONESHOT", { time_us = 1.0 + num_tokens, placement = "dedicated" })
    made.num_tokens = num_tokens
    with[#with + 1] = made
  end
  for _, num_tokens in ipairs { 1, 4, 16, 64 } do
    local made = cell_records.record(cell, "TWOSHOT", { reason = "fewer tokens than ranks" })
    made.num_tokens = num_tokens
    without[#without + 1] = made
  end
  local derived = derive.times(spec, 2, with, without)
  lu.assertEquals(#derived, 1)
  lu.assertEquals({ derived[1].strategy, derived[1].num_tokens, derived[1].placement },
    { "ONESHOT", 16, "dedicated" })
  lu.assertTrue(derived[1].time_us > 5 and derived[1].time_us < 65)
end

-- The derived points of a strategy that was measured at some points and refused (or `failed`) at others,
-- "tokens x hidden" -> true
local function derived_around(measured, refused, failed)
  local spec = { dtypes = { "bfloat16" }, fusions = { "NONE" }, hidden_sizes = { 1024, 2048, 4096 },
    num_tokens = { 1, 4, 16, 64 }, strategies = { "TWOSHOT" },
    limits = { message_bytes = 1 << 20 }, table = { op = "allreduce", mode = "eager" } }
  local function records(places, outcome)
    local out = {}
    for i, point in ipairs(places) do
      out[i] = cell_records.record(cell, "TWOSHOT", outcome)
      out[i].num_tokens, out[i].hidden_size = point[1], point[2]
    end
    return out
  end
  local found = {}
  for _, of in ipairs(derive.times(spec, 4, records(measured, { time_us = 5, placement = "dedicated" }),
    records(refused, { reason = "fewer tokens than ranks", failed = failed }))) do
    found[("%d x %d"):format(of.num_tokens, of.hidden_size)] = true
  end
  return found
end

function TestVisits.test_where_the_bench_refused_a_neighbour_nothing_is_derived()
  local found = derived_around({ { 4, 1024 }, { 64, 1024 }, { 64, 4096 }, { 16, 2048 } },
    { { 1, 1024 }, { 1, 4096 } })
  lu.assertTrue(found["16 x 1024"])
  lu.assertTrue(found["64 x 2048"])
  lu.assertNil(found["1 x 2048"]) -- between two refused points
  found = derived_around({ { 1, 1024 }, { 64, 1024 }, { 1, 4096 }, { 64, 4096 } },
    { { 1, 2048 }, { 64, 2048 } })
  lu.assertTrue(found["16 x 4096"])
  lu.assertNil(found["16 x 2048"]) -- of a refused hidden size, between two that are not
end

function TestVisits.test_where_a_strategy_failed_beside_it_nothing_is_derived()
  local found = derived_around({ { 1, 1024 }, { 64, 1024 }, { 1, 4096 }, { 64, 4096 } },
    { { 4, 2048 }, { 64, 2048 } }, true)
  lu.assertTrue(found["16 x 4096"])
  lu.assertNil(found["16 x 2048"])
end

function TestVisits.test_beyond_measured_points_nothing_is_derived()
  local found = derived_around({ { 4, 1024 }, { 64, 1024 }, { 64, 2048 }, { 16, 2048 } }, {})
  lu.assertTrue(found["16 x 1024"])
  lu.assertNil(found["16 x 4096"])
  lu.assertNil(found["1 x 1024"])
end

-- ---- the expected time ------------------------------------------------------------------------

local TestPace = {}

local function cell_of(size)
  return { world_size = 2, dtype = "float32", op = "allreduce", mode = "eager", fusion = "NONE",
    hidden_size = size // 4, num_tokens = 1, size = size }
end

local MIB = 1 << 20

function TestPace.test_before_any_visit_bytes_and_strategies_count()
  local at = cost.new(0.1)
  lu.assertTrue(at:expect(cell_of(4096), 3) < 0.15)
  local one, two = at:expect(cell_of(256 * MIB), 1), at:expect(cell_of(256 * MIB), 2)
  lu.assertAlmostEquals(two - one, at:expect(cell_of(512 * MIB), 1) - one, 1e-9)
  lu.assertTrue(one > 1, one)
end

function TestPace.test_it_learns_how_long_bytes_take()
  local at = cost.new(0.1)
  local guess = at:expect(cell_of(256 * MIB), 3)
  at:take(cell_of(128 * MIB), 3, 100)
  lu.assertTrue(at:expect(cell_of(256 * MIB), 3) > 100)
  lu.assertTrue(at:expect(cell_of(256 * MIB), 3) > 3 * guess)
end

-- The time that sampling was given is independent of bytes.
function TestPace.test_small_visits_predict_no_large_ones()
  local at = cost.new(0.1)
  local guess = at:expect(cell_of(64 * MIB), 3)
  for i = 1, 1000 do at:take(cell_of(4 * i), 3, 0.1) end
  lu.assertAlmostEquals(at:expect(cell_of(64 * MIB), 3), guess, 0.2 * guess)
end

function TestPace.test_a_cell_is_expected_to_take_its_last_time()
  local at = cost.new(0.1)
  at:take(cell_of(MIB), 2, 7)
  lu.assertEquals(at:expect(cell_of(MIB), 2), 7)
  lu.assertEquals(at:expect(cell_of(MIB), 4), 14)
end

function TestPace.test_the_least_grows_with_the_bytes_and_is_never_nothing()
  lu.assertTrue(cost.least(cell_of(4), 1) > 0)
  lu.assertAlmostEquals(cost.least(cell_of(256 * MIB), 4), 4 * cost.least(cell_of(256 * MIB), 1), 1e-9)
end

-- ---- disturbed results --------------------------------------------------------------------------

local TestRepeats = setmetatable({ setUp = TestSweep.setUp, tearDown = TestSweep.tearDown },
  { __index = TestSweep })

local CHANGE_LINES = [[RANKS=$1; export RANKS; shift; "$@" | sed -u -f "$(dirname "$0")/change.sed"]]

-- Sweeps with a bench with lines that these commands of sed change; expects success. Returns stdout.
function TestRepeats:sweep_with(commands, ...)
  lib.write(self.folder .. "/change.sed", table.concat(commands, "\n") .. "\n")
  lib.write(self.folder .. "/launch.sh", CHANGE_LINES)
  local out, err = lib.ends(0, "", lib.sweep_by(("sh %s/launch.sh {ranks}"):format(self.folder), self.folder,
    self:environment(), "--exhaustive", ...))
  lu.assertEquals(err, "")
  return out
end

-- The command that sets the upper end of an interval, and the median, in an answer.
local function scatter(id, strategy, high_us, time_us)
  local of_row = ("/^row id=%d strategy=%s /"):format(id, strategy)
  local command = ("%ss/ high_us=[0-9.]*/ high_us=%s/"):format(of_row, high_us)
  return time_us and ("%s;%ss/ time_us=[0-9.]*/ time_us=%s/"):format(command, of_row, time_us) or command
end

-- MPI takes 3 us, and is the fastest. Four visits before have shown the usual intervals.
function TestRepeats:test_a_result_that_scatters_is_measured_again()
  local out = self:sweep_with { scatter(5, "MPI", 50, 9) }
  local asked = self:requests()
  lu.assertEquals(#asked, 9)
  lu.assertStrMatches(asked[6], ".* strategies=MPI\n?")
  lu.assertEquals(asked[6]:match("op=.* budget_us"), asked[5]:match("op=.* budget_us"))
  self:has_all_rows()
  for _, row in ipairs(rows.records(self.csv)) do lu.assertTrue(row.high_us < 10 and row.time_us ~= 9) end
  lu.assertNil(provenance.read(self.json).disturbed)
  lu.assertNotStrContains(out, "disturbed")
end

function TestRepeats:test_before_the_usual_intervals_are_known_nothing_is_measured_again()
  self:sweep_with { scatter(1, "MPI", 50) }
  lu.assertEquals(#self:requests(), 8)
  lu.assertEquals(#provenance.read(self.json).disturbed, 1)
end

-- Twice in a row: the row has a mark, which stays as long as the row does.
function TestRepeats:test_a_row_that_stays_disturbed_is_marked()
  local out = self:sweep_with { scatter(5, "MPI", 50), scatter(6, "MPI", 40) }
  lu.assertStrContains(out, "disturbed: 1 row, with a median that is uncertain by a factor of 2 or more")
  lu.assertEquals(#self:requests(), 9)
  local marks = provenance.read(self.json).disturbed
  lu.assertEquals({ #marks, marks[1].strategy, marks[1].high_us }, { 1, "MPI", 40 })
  self:generates(0, "")
  lu.assertStrContains(lib.read(self.folder .. "/report.md"), ("| %s | %d x %d | MPI | %.2f to 40.00 | 20 |")
    :format(marks[1].fusion, marks[1].num_tokens, marks[1].hidden_size, marks[1].low_us))
  self:change_spec("{ 1, 4 }", "{ 1, 4, 16 }")
  self:sweep_with {}
  lu.assertEquals(#rows.records(self.csv), 32)
  lu.assertEquals(provenance.read(self.json).disturbed, marks)
  self:sweep_with({}, "--fresh")
  lu.assertNil(provenance.read(self.json).disturbed)
end

-- 16 visits, each with one disturbed result of three; the first three show the usual intervals.
function TestRepeats:test_within_a_budget_one_request_in_ten_is_a_repeated_one()
  local all_of_mpi = { "/ strategy=MPI /s/ high_us=[0-9.]*/ high_us=50/" }
  self:change_spec("{ 1, 4 }", "{ 4, 16, 64, 256 }")
  self:sweep_with(all_of_mpi)
  lu.assertEquals(#self:requests(), 16 + 13)
  self:sweep_with(all_of_mpi, "--fresh", "--budget", "200")
  lu.assertEquals(#self:requests(), 16 + 2)
end

-- The interval of ONESHOT does not reach 1.25 times the median of MPI.
function TestRepeats:test_a_strategy_that_cannot_win_is_marked_without_another_measurement()
  self:sweep_with { scatter(5, "ONESHOT", 50) }
  lu.assertEquals(#self:requests(), 8)
  lu.assertEquals(provenance.read(self.json).disturbed[1].strategy, "ONESHOT")
end

-- ---- which results ----------------------------------------------------------------------------

local function result_of(strategy, time_us, low_us, high_us)
  return { strategy = strategy, time_us = time_us, low_us = low_us, high_us = high_us, bits = "7" }
end

function TestRepeats.test_a_machine_with_wide_intervals_has_few_disturbed_results()
  local quiet, noisy = disturbance.new(), disturbance.new()
  for _ = 1, 9 do
    quiet:take { result_of("MPI", 3, 2.9, 3.1) }
    noisy:take { result_of("MPI", 3, 2.4, 3.6) }
  end
  lu.assertFalse(quiet:is_disturbed(result_of("MPI", 3, 2, 3.9)))
  lu.assertTrue(quiet:is_disturbed(result_of("MPI", 3, 2, 4)))
  lu.assertFalse(noisy:is_disturbed(result_of("MPI", 3, 2, 4)))
  lu.assertTrue(noisy:is_disturbed(result_of("MPI", 3, 2, 40)))
  lu.assertTrue(quiet:is_disturbed(result_of("MPI", 3, 0, 4)))
end

function TestRepeats.test_the_narrower_interval_stays()
  local result = { no_time = {}, rows = { result_of("MPI", 3, 1, 9), result_of("ONESHOT", 4, 3.9, 4.1),
    result_of("TWOSHOT", 5, 1, 9) } }
  disturbance.combine(result, { rows = { result_of("MPI", 4, 3, 5) },
    no_time = { { strategy = "TWOSHOT", reason = "wrong result" } } })
  lu.assertEquals(result.rows, { result_of("MPI", 4, 3, 5), result_of("ONESHOT", 4, 3.9, 4.1) })
  lu.assertEquals(result.no_time, { { strategy = "TWOSHOT", reason = "wrong result" } })
  local other = result_of("MPI", 4, 1, 99)
  other.bits = "8"
  disturbance.combine(result, { rows = { other }, no_time = {} })
  lu.assertEquals({ result.rows[1].high_us, result.rows[1].bits }, { 5, "varies" })
end

-- The median over three launches does not depend on one of them.
function TestRepeats.test_a_row_is_marked_if_half_of_its_launches_are_disturbed()
  local function marks(...)
    local by_launch = {}
    for launch, high_us in ipairs { ... } do
      by_launch[launch] = cell_records.record(cell, "MPI", { time_us = 3.0, low_us = 2.9, high_us = high_us })
    end
    local key = cell_records.key(by_launch[1])
    return #disturbance.marks({ visits = { [key] = by_launch }, disturbance = disturbance.new() },
      { [key] = by_launch[1] }, nil, { world_size = 2 })
  end
  lu.assertEquals({ marks(3, 3, 9), marks(3, 9), marks(9), marks(3) }, { 0, 1, 1, 0 })
end

return require "suites" { { "TestVisits", TestVisits }, { "TestPace", TestPace },
  { "TestRepeats", TestRepeats } }
