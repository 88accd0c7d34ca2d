-- The expected gain of `sweep --refine` (planning/refinement.lua) agrees with the actual one, played on
-- recorded rows: a sweep that its budget ended, then its refinement with the other recorded launches. The
-- budgets are small, because the recordings have few launches and points. With GENTABLES_NIGHTLY=1 more of
-- them are played.
local lu = require "luaunit"
local clocked = require "recorded.lib_clocked"
local lib = require "recorded.lib"

local NIGHTLY = os.getenv "GENTABLES_NIGHTLY" == "1"

local function count(set)
  local total = 0
  for _ in pairs(set) do total = total + 1 end
  return total
end

-- The number of choices that are uncertain before, and not after.
local function count_settled(before, after)
  local settled = 0
  for key in pairs(before) do settled = settled + (after[key] and 0 or 1) end
  return settled
end

-- Plays a sweep and its refinement. Returns the expectation, and { uncertain, settles, measures, seconds } as
-- played.
local function play(recording, seed, first_s, more_s)
  local spec = lib.spec(recording)
  spec.num_tokens = { 1, 4, 16, 64, 256 }
  local sweep = clocked.new(recording, spec, lib.shuffled(#recording.any.launches, seed))
  sweep:measure(first_s)
  local before, measured, expected, began = sweep:uncertain(), sweep.first_visits, sweep:expect(more_s),
    sweep.clock
  lu.assertEquals(expected.uncertain, count(before))
  sweep:measure(more_s)
  return expected, { uncertain = count(before), settles = count_settled(before, sweep:uncertain()),
    measures = sweep.first_visits - measured, seconds = sweep.clock - began }
end

-- The means over `seeds` plays agree within a factor, and one choice. For first visits the factor is 2:
-- the forecast makes fewer tables, and so visits more cells around the same choice.
local function agrees(name, seeds, first_s, more_s, most_factor)
  local recording = lib.read(os.getenv "SOURCE" .. "/tests/recorded/" .. name)
  local sums = { expected = { settles = 0, measures = 0 }, played = { settles = 0, measures = 0 } }
  for seed = 1, seeds do
    local expected, played = play(recording, seed, first_s, more_s)
    print(("%s, seed %d: of %d uncertain %d expected, %d settled; %d first visits expected, %d made; "
      .. "%.1f s expected, %.1f s taken"):format(name, seed, played.uncertain, expected.settles,
      played.settles, expected.measures, played.measures, expected.seconds, played.seconds))
    lu.assertTrue(expected.seconds <= more_s + 0.1)
    lu.assertTrue(expected.settles <= played.uncertain)
    for gain in pairs(sums.played) do
      sums.expected[gain] = sums.expected[gain] + expected[gain]
      sums.played[gain] = sums.played[gain] + played[gain]
    end
  end
  for gain, of_played in pairs(sums.played) do
    local of_expected, factor = sums.expected[gain], gain == "settles" and most_factor or 2
    local words = ("%s: %d expected, %d played"):format(gain, of_expected, of_played)
    lu.assertTrue(of_expected <= factor * of_played + seeds, words)
    lu.assertTrue(of_played <= factor * of_expected + seeds, words)
  end
end

local tests = {}

function tests.test_ranks_that_share_cores()
  agrees("benchmark.tp4.host.csv", NIGHTLY and 12 or 3, 4, 8, 1.5)
end

-- Some choices are settled while others become uncertain.
function tests.test_a_sweep_that_reached_a_part_of_its_cells()
  agrees("benchmark.tp2.host.csv", NIGHTLY and 8 or 2, 6, 12, 1.5)
end

function tests.test_a_sweep_that_hardly_began()
  if NIGHTLY then agrees("benchmark.tp2.host.csv", 8, 3, 6, 2) end
end

-- The longer the first sweep, the less is left to settle.
function tests.test_a_sweep_that_almost_ended()
  if NIGHTLY then agrees("benchmark.tp2.host.csv", 8, 12, 12, 2) end
end

return require "suites" { { "refinement", tests } }
