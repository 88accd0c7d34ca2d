-- statistics.lua and core.student: Holm's method, tails of distributions, and summaries.
local luaunit = require "luaunit"
local statistics = require "base.statistics"
local student = require "core.student"

local tests = {}

-- The names of the significant ones of { name = p }, in their order.
local function significant(probabilities, alpha, count)
  local list, names = {}, {}
  for name, p in pairs(probabilities) do list[#list + 1] = { name = name, p = p or nil } end
  for i, entry in ipairs(statistics.holm(list, alpha, count)) do names[i] = entry.name end
  return names
end

function tests.test_each_is_held_against_alpha_over_the_tests_that_are_left()
  local probabilities = { a = 0.01, b = 0.04, c = 0.03, d = 0.005 } -- the limits are alpha / 4, 3, 2, 1
  luaunit.assertEquals(significant(probabilities, 0.05, 4), { "d", "a" })
  luaunit.assertEquals(significant(probabilities, 0.1, 4), { "d", "a", "c", "b" })
end

function tests.test_the_first_that_fails_ends_it()
  luaunit.assertEquals(significant({ a = 0.03, b = 0.045 }, 0.05, 2), {}) -- 0.045 alone would pass
end

function tests.test_tests_that_are_not_in_the_list_count()
  luaunit.assertEquals(significant({ a = 0.01, none = false }, 0.05, 5), { "a" })
  luaunit.assertEquals(significant({ a = 0.01, none = false }, 0.05, 6), {})
end

function tests.test_upper_tails_are_those_of_tables()
  for _, row in ipairs { { 12.7062047, 1, 0.025 }, { 4.3026527, 2, 0.025 }, { 2.3533634, 3, 0.05 },
    { -2.1318468, 4, 0.95 }, { 2.2281389, 10, 0.025 }, { 1.9599640, nil, 0.025 }, { -1.6448536, 0, 0.95 } } do
    luaunit.assertAlmostEquals(student.upper_tail(row[1], row[2]), row[3], 1e-8)
  end
end

function tests.test_tails_of_binomials_are_sums_of_their_terms()
  local tail = statistics.binomial_tail
  luaunit.assertAlmostEquals(tail(2, 3, 0.5), 4 / 8, 1e-12)
  luaunit.assertAlmostEquals(tail(1, 4, 0.25), 1 - 0.75 ^ 4, 1e-12)
  -- 0.5 ^ 10000 is 0 as a double.
  luaunit.assertAlmostEquals(tail(5000, 10000, 0.5), 0.5 + 0.5 * 0.0079786461, 1e-6)
  luaunit.assertEquals(tail(0, 5, 0.5), 1.0)
  luaunit.assertEquals(tail(6, 5, 0.5), 0.0)
end

-- Their mean is rounded, and so differs from them.
function tests.test_equal_values_have_no_deviation()
  local values = {}
  for i = 1, 6 do values[i] = 300000.1 end
  luaunit.assertEquals(statistics.summarise(values).standard_deviation, 0.0)
  values[7] = 300000.2
  luaunit.assertAlmostEquals(statistics.summarise(values).standard_deviation, 0.1 / math.sqrt(7), 1e-6)
end

-- By the binomial distribution: of ten values the outermost two, of twenty the fifth from each end at most.
function tests.test_the_interval_of_a_median_has_two_of_the_values()
  local values = {}
  for i = 1, 20 do values[i] = (7 * i) % 20 + 1 end
  luaunit.assertEquals({ statistics.median_interval(values) }, { 5, 16 })
  luaunit.assertEquals({ statistics.median_interval { 3, 1, 2, 5, 4, 6 } }, { 1, 6 })
  luaunit.assertEquals({ statistics.median_interval { 2 } }, { 2, 2 })
end

return require "suites" { { "statistics", tests } }
