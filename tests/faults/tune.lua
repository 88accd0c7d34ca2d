-- What the whole group of a pass fails at, and no candidate: a rank that is stopped, or does not come back,
-- while all start, agree, call or reduce. One line says which rank and where, every op has its default,
-- nothing is left, and the next run measures.
package.path = package.path .. ";" .. arg[0]:match("^(.*/)") .. "?.lua"
local lu = require "luaunit"
local json = require "json"
local lib = require "lib"
local process = require "core.process"

if lib.skip_without_mpirun() then return 77 end

local SAMPLES, WARM_UP = 3, 1
local OPS = { "allreduce", "allgather" }
local CALLS = #OPS * (SAMPLES + WARM_UP)

local function command(case)
  return { lib.gentables, "tune", "--op", table.concat(OPS, ","), "--sizes", "4K", "--dtype", "float32",
    "--strategies", "MPI", "--samples", tostring(SAMPLES), "--warm-up", tostring(WARM_UP), "--timeout",
    lib.timeout, "--bench", case.bench, "--launcher", case:mpirun("-n {ranks}"), "--cache",
    case.folder .. "/cache", "--out", case.folder .. "/tuned", "--json" }
end

-- With a plug-in, of which nothing is asked, ranks have a process between them and their launcher.
local function start(case, faults, plugin)
  local argv = command(case)
  if plugin then table.move({ "--plugin", plugin }, 1, 2, #argv + 1, argv) end
  case.child = assert(process.start(argv, case:environment(faults)))
end

-- What each op is answered with, by the JSON that is printed and by the one in the folder.
local function answers(case, out, what)
  local told = json.decode(out)
  lu.assertEquals(json.decode(lib.read(case.folder .. "/tuned/tuned.json")), told, what)
  lu.assertEquals(#told.cells, #OPS, what)
  return told.cells
end

-- { fault, at, rank, call, words, phase }: what is said of it; with a phase, by whichever rank.
local function check(case, wanted)
  local fault, at, rank, _, words, phase = table.unpack(wanted)
  local what = ("%s at %s of rank %d"):format(fault, at, rank)
  local ended, out, err = case:finish()
  local reason = err:match("^gentables: TP 2: ([^\n]*); every op takes its default, MPI\n$")
  lu.assertNotNil(reason, what .. ": " .. err)
  local said = phase and reason:gsub("; rank %d waited for it", "", 1) or reason
  lu.assertEquals(said, "the group failed: " .. (phase and words .. " " .. phase or words), what)
  lu.assertEquals(ended, "exit code 1", what)
  for _, cell in ipairs(answers(case, out, what)) do
    lu.assertEquals({ cell.strategy, cell.is_default, cell.candidates }, { "MPI", true, {} }, what)
    lu.assertEquals(cell.reason, reason, what)
  end
  case:leaves_nothing(what)
  start(case)
  ended, out, err = case:finish()
  local rest = err:gsub("^gentables: [^\n]*: cells measured now: [^\n]*\n", "") -- they replace the defaults
  lu.assertEquals({ ended, rest }, { "exit code 0", "" }, what)
  for _, cell in ipairs(answers(case, out, what)) do lu.assertEquals(#cell.candidates, 1, what) end
end

local function run_all(list, plugin)
  local cases = {}
  for i, wanted in ipairs(list) do
    cases[i] = lib.new_case()
    start(cases[i], { FAULT = wanted[1], AT = wanted[2], RANK = wanted[3], CALL = wanted[4] },
      plugin)
  end
  for i, wanted in ipairs(list) do
    check(cases[i], wanted)
    cases[i]:clean()
  end
end

local TestTune = {}

-- They share no memory then, and only the system knows.
function TestTune.test_a_rank_that_is_stopped_before_they_know_each_other()
  local list = { { "STOP", "connected", 1, 0,
    ("rank 1 is stopped, at the start; rank 0 waited for %s s"):format(lib.timeout) } }
  run_all(list)
  run_all(list, os.getenv("PLUGIN"))
end

function TestTune.test_a_rank_that_is_stopped()
  run_all {
    { "STOP", "set-up", 1, 0, "rank 1 is stopped, in the set-up of MPI; rank 0 waited for it (start)" },
    { "STOP", "data", 1, 0, "rank 1 is stopped, in the pass; rank 0 waited for it (start)" },
    { "STOP", "agreement", 0, 0, "rank 0 is stopped, in the pass; rank 1 waited for it (agreement)" },
    { "STOP", "agreement", 1, 0, "rank 1 is stopped, in the pass; rank 0 waited for it (agreement)" },
    { "STOP", "call", 1, CALLS // 2, "rank 1 is stopped, in the pass; rank 0 waited for it (strategy MPI)" },
    { "STOP", "called", 0, CALLS, "rank 0 is stopped, in the pass; rank 1 waited for it (reduction)" },
    { "STOP", "called", 1, CALLS, "rank 1 is stopped, in the pass; rank 0 waited for it (reduction)" },
  }
end

function TestTune.test_a_rank_that_does_not_come_back()
  run_all {
    { "HANG", "set-up", 1, 0, "rank 1 hangs, in the set-up of MPI", "(start)" },
    { "HANG", "agreement", 1, 0, "rank 1 hangs, in the pass", "(agreement)" },
  }
end

-- Between two calls ranks wait for each other without MPI, and no candidate is at work.
function TestTune.test_a_rank_that_is_stopped_between_two_calls()
  run_all { { "STOP", "called", 1, CALLS // 2,
    ("rank 1 is stopped, in the pass; rank 0 waited for %s s"):format(lib.timeout) } }
end

local suites = dofile(arg[0]:match("^(.*/)") .. "../suites.lua")
return suites { { "TestTune", TestTune } }
