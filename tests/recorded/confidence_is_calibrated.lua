-- Stated confidence and losses agree with held-out launches (tests/perf/calibration.lua), on recorded rows.
local calibration = dofile(os.getenv "SOURCE" .. "/tests/perf/calibration.lua")
local luaunit = require "luaunit"

local tests = {}

function tests.test_held_out_launches_agree_with_what_was_stated()
  local path = os.getenv "SOURCE" .. "/tests/recorded/benchmark.tp2.host.csv"
  local groups = calibration.figures(path, 6, { 1, 4, 16, 64, 256 })
  local most_error = { measured = 0.03, interpolated = 0.05, bins = 0.05 }
  for name, of in pairs(groups) do
    local words = ("%s: %d choices, loss %.4f, stated %.4f, calibration error %.4f, %.3f uncertain"):format(
      name, of.choices, of.loss, of.stated, of.error, of.uncertain)
    print(words)
    luaunit.assertTrue(of.choices >= 300, words)
    luaunit.assertTrue(of.error <= most_error[name], words)
    luaunit.assertTrue(of.loss <= 2 * of.stated + 0.0005 and of.stated <= 0.01, words)
    luaunit.assertTrue(of.uncertain <= 0.25, words)
  end
end

return require "suites" { { "calibration", tests } }
