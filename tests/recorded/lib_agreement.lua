-- Whether what choices of recorded sweeps state agrees with their held-out launches.
local calibration = dofile(os.getenv "SOURCE" .. "/tests/perf/calibration.lua")
local luaunit = require "luaunit"

local NAMES = { "measured", "interpolated", "bins" }

-- recordings: { path, runs }... of calibration.figures. Asserts at least `least` choices of each kind, and
-- `most`: shares { uncertain, uncertain_bins (of a planned sweep; a grid may have twice as many), avoidable
-- (of a planned sweep), loss (mean, beyond the least), error (of the calibration) }.
return function(recordings, least, most)
  for kind, groups in pairs(calibration.figures(recordings)) do
    local times = kind == "planned" and 1 or 2
    for _, name in ipairs(NAMES) do
      local of = groups[name]
      local words = kind .. " " .. calibration.words(name, of)
      print(words)
      luaunit.assertTrue(of.choices >= least, words)
      luaunit.assertTrue(of.error <= most.error, words)
      luaunit.assertTrue(of.loss <= 2 * of.stated + most.loss / 2, words)
      luaunit.assertTrue(of.loss - of.least <= times * most.loss, words)
      luaunit.assertTrue(of.uncertain <= times * (name == "bins" and most.uncertain_bins or most.uncertain),
        words)
      luaunit.assertTrue(kind == "grid" or of.avoidable <= most.avoidable, words)
    end
  end
end
