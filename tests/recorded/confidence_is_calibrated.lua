-- Stated confidence and losses agree with held-out launches (tests/perf/calibration.lua), on recorded rows.
local calibration = dofile(os.getenv "SOURCE" .. "/tests/perf/calibration.lua")
local luaunit = require "luaunit"

local tests = {}

local function agree(recording, runs)
  local path = os.getenv "SOURCE" .. "/tests/recorded/" .. recording
  local groups = calibration.figures(path, runs, { 1, 4, 16, 64, 256 })
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

function tests.test_held_out_launches_of_two_ranks_agree_with_what_was_stated()
  agree("benchmark.tp2.host.csv", 6)
end

function tests.test_held_out_launches_of_ranks_that_share_cores_agree_with_what_was_stated()
  agree("benchmark.tp4.host.csv", 8)
end

return require "suites" { { "calibration", tests } }
