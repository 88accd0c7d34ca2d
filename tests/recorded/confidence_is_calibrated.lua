-- Stated confidence and losses agree with held-out launches (tests/perf/calibration.lua), on recorded rows.
-- With GENTABLES_NIGHTLY=1 there are enough runs for groups of 400 choices, and narrower limits.
local agree = require "recorded.lib_agreement"

local NIGHTLY = os.getenv "GENTABLES_NIGHTLY" == "1"

local tests = {}

-- recordings: { name = the end of its name, runs = in CI }... With GENTABLES_NIGHTLY=1 each has six runs.
local function entries_of(tp, recordings)
  local entries = {}
  for _, recording in ipairs(recordings) do
    entries[#entries + 1] = { runs = NIGHTLY and 6 or recording.runs,
      path = ("%s/tests/recorded/benchmark.tp%d.host%s.csv"):format(os.getenv "SOURCE", tp, recording.name) }
  end
  return entries
end

function tests.test_held_out_launches_of_two_ranks_agree_with_what_was_stated()
  local entries = entries_of(2, { { name = "", runs = 0 }, { name = ".slower_mpi", runs = 1 },
    { name = ".xeon", runs = 1 } })
  agree(entries, NIGHTLY and 400 or 50,
    NIGHTLY and { uncertain = 0.10, uncertain_bins = 0.10, avoidable = 0.03, loss = 0.001, error = 0.03 }
    or { uncertain = 0.15, uncertain_bins = 0.20, avoidable = 0.03, loss = 0.002, error = 0.05 })
end

function tests.test_held_out_launches_of_ranks_that_share_cores_agree_with_what_was_stated()
  local entries = entries_of(4, { { name = "", runs = 1 }, { name = ".xeon", runs = 1 } })
  agree(entries, NIGHTLY and 400 or 50,
    NIGHTLY and { uncertain = 0.15, uncertain_bins = 0.15, avoidable = 0.03, loss = 0.007, error = 0.05 }
    or { uncertain = 0.20, uncertain_bins = 0.20, avoidable = 0.03, loss = 0.007, error = 0.07 })
end

return require "suites" { { "calibration", tests } }
