-- planning.cost: expected times of visits, for a budget and for the time left.
local cell_records = require "rows.cell_records"
local cost = require "planning.cost"
local lu = require "luaunit"

local SAMPLING_S = 0.4
local TestCost = {}

-- The cells of 2 KiB, 32 KiB, 512 KiB, 8 MiB.
local function cells()
  return cell_records.cells({ dtypes = { "bfloat16" }, fusions = { "NONE" }, hidden_sizes = { 1024 },
    num_tokens = { 1, 16, 256, 4096 }, strategies = { "MPI" }, limits = { message_bytes = 1 << 30 },
    table = { op = "allreduce", mode = "eager" } }, 2)
end

-- Small messages need a part of their sampling time, for any number of strategies.
function TestCost.test_likely_times_are_those_of_the_same_cell_or_of_similar_sizes()
  local costs, list = cost.new(SAMPLING_S), cells()
  lu.assertFalse(costs:is_known())
  for i = 1, 6 do costs:take(list[i % 2 == 0 and 1 or 3], 10, i % 2 == 0 and 0.01 or 0.2) end
  lu.assertTrue(costs:is_known())
  lu.assertAlmostEquals(costs:likely(list[1], 2), 0.01, 1e-9)
  lu.assertAlmostEquals(costs:likely(list[3], 2), 0.2, 1e-9)
  lu.assertAlmostEquals(costs:likely(list[2], 2), 0.2, 1e-9) -- in the middle: as the larger size
  lu.assertAlmostEquals(costs:likely(list[4], 2), 0.2, 1e-9)
  lu.assertAlmostEquals(costs:expect(list[1], 2), 0.002, 1e-9)
  lu.assertTrue(costs:expect(list[2], 2) > SAMPLING_S)
end

-- Beyond its sampling time a visit prepares and checks data for each strategy.
function TestCost.test_what_exceeds_the_sampling_time_is_proportional_to_strategies()
  local costs, list = cost.new(SAMPLING_S), cells()
  costs:take(list[4], 10, 2.42)
  lu.assertAlmostEquals(costs:likely(list[4], 5), 1.42, 1e-9)
  lu.assertAlmostEquals(costs:likely(list[4], 10), 2.42, 1e-9)
end

return require "suites" { { "TestCost", TestCost } }
