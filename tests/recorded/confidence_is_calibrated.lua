-- Stated confidence and losses agree with held-out launches (tests/perf/calibration.lua), on recorded rows.
-- With GENTABLES_NIGHTLY=1 there are enough runs for groups of 400 choices, and narrower limits.
local calibration = dofile(os.getenv "SOURCE" .. "/tests/perf/calibration.lua")
local luaunit = require "luaunit"

local NIGHTLY = os.getenv "GENTABLES_NIGHTLY" == "1"
local NAMES = { "measured", "interpolated", "bins" }

local tests = {}

-- `most`: limits for the share of uncertain choices of a sweep, for losses beyond the least, and for the
-- calibration error.
local function agree(recordings, most)
  local entries = {}
  for name, runs in pairs(recordings) do
    entries[#entries + 1] = { path = os.getenv "SOURCE" .. "/tests/recorded/" .. name, runs = runs }
  end
  for kind, groups in pairs(calibration.figures(entries)) do
    for _, name in ipairs(NAMES) do
      local of = groups[name]
      local words = kind .. " " .. calibration.words(name, of)
      print(words)
      luaunit.assertTrue(of.choices >= (NIGHTLY and 400 or 50), words)
      luaunit.assertTrue(of.error <= most.error, words)
      luaunit.assertTrue(of.loss <= 2 * of.stated + most.loss / 2, words)
      luaunit.assertTrue(of.loss - of.least <= (kind == "planned" and 1 or 2) * most.loss, words)
      luaunit.assertTrue(of.uncertain <= (kind == "planned" and 1 or 2) * most.uncertain, words)
    end
  end
end

function tests.test_held_out_launches_of_two_ranks_agree_with_what_was_stated()
  agree({ ["benchmark.tp2.host.csv"] = NIGHTLY and 6 or 0,
    ["benchmark.tp2.host.slower_mpi.csv"] = NIGHTLY and 6 or 1,
    ["benchmark.tp2.host.xeon.csv"] = NIGHTLY and 6 or 1 },
    NIGHTLY and { uncertain = 0.10, loss = 0.001, error = 0.03 }
    or { uncertain = 0.15, loss = 0.002, error = 0.05 })
end

function tests.test_held_out_launches_of_ranks_that_share_cores_agree_with_what_was_stated()
  agree({ ["benchmark.tp4.host.csv"] = NIGHTLY and 6 or 1,
    ["benchmark.tp4.host.xeon.csv"] = NIGHTLY and 6 or 1 },
    NIGHTLY and { uncertain = 0.15, loss = 0.007, error = 0.05 }
    or { uncertain = 0.20, loss = 0.007, error = 0.07 })
end

return require "suites" { { "calibration", tests } }
