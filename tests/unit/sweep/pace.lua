-- cost.lua: the expected time of visits.
local lu = require "luaunit"
local cost = require "sweep.cost"

local TestPace = {}

local function cell(size)
  return { world_size = 2, dtype = "float32", op = "allreduce", mode = "eager", fusion = "NONE",
    hidden_size = size // 4, num_tokens = 1, size = size }
end

local MIB = 1 << 20

function TestPace.test_before_any_visit_bytes_and_strategies_count()
  local at = cost.new(0.1)
  lu.assertTrue(at:expect(cell(4096), 3) < 0.15)
  local one, two = at:expect(cell(256 * MIB), 1), at:expect(cell(256 * MIB), 2)
  lu.assertAlmostEquals(two - one, at:expect(cell(512 * MIB), 1) - one, 1e-9)
  lu.assertTrue(one > 1, one)
end

function TestPace.test_it_learns_how_long_bytes_take()
  local at = cost.new(0.1)
  local guess = at:expect(cell(256 * MIB), 3)
  at:take(cell(128 * MIB), 3, 100)
  lu.assertTrue(at:expect(cell(256 * MIB), 3) > 100)
  lu.assertTrue(at:expect(cell(256 * MIB), 3) > 3 * guess)
end

-- The time that sampling was given is independent of bytes.
function TestPace.test_small_visits_predict_no_large_ones()
  local at = cost.new(0.1)
  local guess = at:expect(cell(64 * MIB), 3)
  for i = 1, 1000 do at:take(cell(4 * i), 3, 0.1) end
  lu.assertAlmostEquals(at:expect(cell(64 * MIB), 3), guess, 0.2 * guess)
end

function TestPace.test_a_cell_is_expected_to_take_its_last_time()
  local at = cost.new(0.1)
  at:take(cell(MIB), 2, 7)
  lu.assertEquals(at:expect(cell(MIB), 2), 7)
  lu.assertEquals(at:expect(cell(MIB), 4), 14)
end

function TestPace.test_the_least_grows_with_the_bytes_and_is_never_nothing()
  lu.assertTrue(cost.least(cell(4), 1) > 0)
  lu.assertAlmostEquals(cost.least(cell(256 * MIB), 4), 4 * cost.least(cell(256 * MIB), 1), 1e-9)
end

return require "suites" { { "TestPace", TestPace } }
