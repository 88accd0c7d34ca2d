-- Stated confidence and losses agree with held-out launches of this machine: sweeps of two and of four ranks
-- are recorded, as the recorded rows were, and judged as they are. It takes minutes: GENTABLES_NIGHTLY=1.
if os.getenv "GENTABLES_NIGHTLY" ~= "1" then require "skip" "runs at night" end
local agree = require "recorded.lib_agreement"
local child_process = require "system.child_process"
local file = require "core.file"
local luaunit = require "luaunit"

local LAUNCHES, RUNS = 24, 16 -- 12 give fewer than 400 choices that are measured
local SPEC = [[
return { arch = "host", tp = { %d }, dtypes = { "bfloat16" }, fusions = { "NONE", "RESIDUAL_RMS_NORM" },
  hidden_sizes = { 1024, 1472, 2880, 3584, 4096, 5824, 8192 },
  num_tokens = { 1, 2, 4, 8, 16, 23, 64, 128, 256 },
  strategies = { "MPI", "ONESHOT", "TWOSHOT", "MPI_RING", "MPI_RABENSEIFNER" },
  limits = { cell_us = 20000, launches = %d, min_samples = 10, max_samples = 1000, message_bytes = 4194304 } }
]]

local tests = {}

-- Sweeps exhaustively; returns the path of the rows.
local function record(tp)
  local folder = ("%s/tp%d"):format(os.getenv "WORK", tp)
  assert(file.make_folder(folder))
  assert(file.write(folder .. "/spec.lua", SPEC:format(tp, LAUNCHES)))
  local ran = child_process.run({ os.getenv "GENTABLES", "sweep", "--out", folder, "--bench",
    os.getenv "BENCH", "--exhaustive", "--fresh" }, { seconds = 850 })
  luaunit.assertTrue(ran.well, ran.errors)
  return ("%s/benchmark.tp%d.host.csv"):format(folder, tp)
end

function tests.test_two_ranks()
  agree({ { path = record(2), runs = RUNS } }, 400,
    { uncertain = 0.15, uncertain_bins = 0.25, avoidable = 0.10, loss = 0.002, error = 0.05 })
end

function tests.test_ranks_that_share_cores()
  agree({ { path = record(4), runs = RUNS } }, 400,
    { uncertain = 0.15, uncertain_bins = 0.25, avoidable = 0.10, loss = 0.007, error = 0.07 })
end

return require "suites" { { "live", tests } }
