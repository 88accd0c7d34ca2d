-- Two sweeps of one machine, made up from recorded launches: their tables do not differ materially, and no
-- strategy seems slower; a strategy that is 10% slower in one of them is found, in either direction.
-- With GENTABLES_NIGHTLY=1 more pairs of sweeps are compared.
local lu = require "luaunit"
local lib = require "recorded.lib"

local RUNS = os.getenv "GENTABLES_NIGHTLY" == "1" and 10 or 3
local work = os.getenv "WORK"
local recording = lib.read(os.getenv "SOURCE" .. "/tests/recorded/benchmark.tp2.host.csv")

local function generate(folder, against)
  local command = "'%s' generate --data-dir '%s' --arch host --out '%s' --formats table --against '%s'"
  local _, well = lib.shell(command:format(gentables.program, folder, folder, against))
  lu.assertTrue(well)
end

-- The output of diff for two sweeps of five launches each; `slower` changes the second.
local function diff(seed, slower)
  local order, spec = lib.shuffled(#recording.any.launches, seed), lib.spec(recording)
  local old, new = work .. "/old", work .. "/new"
  lib.write_rows(old, recording, spec, lib.sweep(recording, order, 1, { on_grid = true }))
  lib.write_rows(new, recording, spec,
    lib.sweep(recording, order, lib.LAUNCHES + 1, { on_grid = true, slower = slower }))
  generate(old, "none")
  generate(new, old .. "/table.csv")
  return lib.shell(("'%s' diff '%s' '%s' --fail-on material"):format(gentables.program, old, new))
end

local TestRecorded = {}

function TestRecorded.test_nothing_differs_but_by_chance()
  for seed = 1, RUNS do
    local text, well = diff(seed)
    lu.assertTrue(well, ("seed %d: %s"):format(seed, text))
  end
end

function TestRecorded.test_ten_percent_are_found()
  for seed = 1, RUNS do
    local strategy = recording.strategies[seed % #recording.strategies + 1]
    local text, well = diff(seed, { [strategy] = 1.1 })
    lu.assertFalse(well, ("seed %d, %s"):format(seed, strategy))
    lu.assertStrContains(text, "! " .. strategy .. ": ")
  end
end

return require "suites" { { "TestRecorded", TestRecorded } }
