-- With --numerics stable no result has other bits when tables are made again from other launches
-- (tests/perf/stability.lua); without it some have. In the plain sums of two ranks all strategies have equal
-- bits, so this is about a fusion. With GENTABLES_NIGHTLY=1 tables are made from more sets of launches.
local stability = dofile(os.getenv "SOURCE" .. "/tests/perf/stability.lua")
local luaunit = require "luaunit"

local SETS = os.getenv "GENTABLES_NIGHTLY" == "1" and 1000 or 50

local tests = {}

function tests.test_resampled_launches_change_no_bits_of_stable_tables()
  local path = os.getenv "SOURCE" .. "/tests/recorded/benchmark.tp2.host.csv"
  local figures = stability.figures(path, SETS, { 1, 16, 256 }, "RESIDUAL_RMS_NORM")
  for name, of in pairs(figures) do print(stability.words(name, of)) end
  for _, kind in ipairs { "log2", "bytes" } do
    luaunit.assertTrue(figures.any[kind] > 0, kind .. ": nothing changes, so the test shows nothing")
  end
  for _, kind in ipairs { "nearest", "log2", "bytes" } do
    luaunit.assertEquals(figures.stable[kind], 0, kind)
  end
end

return require "suites" { { "stability", tests } }
