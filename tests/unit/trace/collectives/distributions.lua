-- Quartiles, whiskers, outliers and densities against numbers by hand; CSV tables as spreadsheets write them.
local csv = require "codec.csv"
local distributions = require "pages.distributions"
local lu = require "luaunit"

local TestDistributions = {}

function TestDistributions.test_quantiles_lie_between_neighbours()
  local list = { 1, 2, 4, 8 }
  lu.assertEquals(distributions.quantile(list, 0), 1)
  lu.assertEquals(distributions.quantile(list, 0.25), 1.75)
  lu.assertEquals(distributions.quantile(list, 0.5), 3)
  lu.assertEquals(distributions.quantile(list, 1), 8)
  lu.assertEquals(distributions.quantile({ 5 }, 0.75), 5)
end

function TestDistributions.test_whiskers_end_at_the_last_value_within_reach()
  -- quartiles 2 and 4: whiskers reach to -1 and 7
  local box = distributions.box { 4, 1, 100, 3, 2 }
  lu.assertEquals(box, { count = 5, low = 1, q1 = 2, median = 3, q3 = 4, high = 4, outliers = { 100 } })
  lu.assertEquals(distributions.box { 7 },
    { count = 1, low = 7, q1 = 7, median = 7, q3 = 7, high = 7, outliers = {} })
end

function TestDistributions.test_density_is_a_sum_of_kernels_cut_at_the_ends()
  local density = distributions.density({ 0, 2 }, 3)
  -- deviation sqrt(2), width sqrt(2) * 2^(-1/5); at 1 both kernels are 1 / width away
  local width = math.sqrt(2) * 2 ^ -0.2
  local at_1 = math.exp(-0.5 / width ^ 2) / (width * math.sqrt(2 * math.pi))
  lu.assertEquals({ density[1][1], density[2][1], density[3][1] }, { 0, 1, 2 })
  lu.assertAlmostEquals(density[2][2], at_1, 1e-12)
  lu.assertAlmostEquals(density[1][2], density[3][2], 1e-12)
  lu.assertNil(distributions.density({ 3, 3, 3 }, 5))
  lu.assertNil(distributions.density({ 3 }, 5))
end

function TestDistributions.test_a_density_over_all_values_is_one()
  local values = {}
  for i = 1, 200 do values[i] = (i * 37 % 200) / 10 end
  local sum, density = 0, distributions.density(values, 500)
  for i = 2, #density do
    sum = sum + (density[i][1] - density[i - 1][1]) * (density[i][2] + density[i - 1][2]) / 2
  end
  lu.assertTrue(sum > 0.9 and sum < 1) -- the part beyond the ends is cut off
end

function TestDistributions.test_csv_as_spreadsheets_write_it()
  local read = csv.parse('\239\187\191a,"b ""x"", y"\r\n1,"two\nlines"\r\n\r\n3,\r\n', "t.csv")
  lu.assertEquals(read.columns, { "a", 'b "x", y' })
  lu.assertEquals(read.rows, { { a = "1", ['b "x", y'] = "two\nlines" }, { a = "3", ['b "x", y'] = "" } })
  lu.assertEquals(read.line, { 2, 5 })
  lu.assertEquals({ csv.parse('a\n"x"y\n', "t.csv") },
    { nil, "t.csv:2: text after a closing quote; a comma or the end of the line must follow" })
  lu.assertEquals({ csv.parse('a\n1\n"x\n2\n', "t.csv") },
    { nil, "t.csv:3: a quote is opened and not closed; close it, or leave it out" })
  lu.assertEquals({ csv.parse("a,b\n1\n", "t.csv") }, { nil, "t.csv:2: 1 fields; the header has 2" })
  lu.assertEquals({ csv.parse("", "t.csv") }, { nil, "t.csv:1: is empty; a header is required" })
end

return require "suites" { { "TestDistributions", TestDistributions } }
