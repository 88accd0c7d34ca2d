-- Faults of the whole group of a pass, not of a candidate: a rank that is stopped, or does not return, while
-- all start, agree, call or reduce. One line names the rank and the place, every op has its default, nothing
-- is left, and the next run measures.
local lu = require "luaunit"
local json = require "codec.json"
local lib = require "system.faults.lib"
local process = require "core.process"

if lib.skip_without_mpirun() then return 77 end

local SAMPLES, WARM_UP = 3, 1
local OPS = { "allreduce", "allgather" }
local CALLS = #OPS * (SAMPLES + WARM_UP)
local AT_ONCE = 6    -- cases; they mostly wait
local OF_WORK = 0.9  -- of the time that ranks wait, for one piece of work (bench/trial/run_input.c)

local function command(case)
  return { lib.gentables, "tune", "--op", table.concat(OPS, ","), "--sizes", "4K", "--dtype", "float32",
    "--strategies", "MPI", "--samples", tostring(SAMPLES), "--warm-up", tostring(WARM_UP), "--timeout",
    lib.timeout, "--bench", case.bench, "--launcher", case:mpirun("-n {ranks}"), "--cache",
    case.folder .. "/cache", "--out", case.folder .. "/tuned", "--json" }
end

local function start(case, faults)
  local argv = command(case)
  if case.plugin then table.move({ "--plugin", case.plugin }, 1, 2, #argv + 1, argv) end
  case.child = assert(process.start(argv, case:environment(faults)))
end

-- The answers for each op, by the printed JSON and by that in the folder.
local function answers(case, out, what)
  local printed = json.decode(out)
  lu.assertEquals(json.decode(lib.read(case.folder .. "/tuned/tuned.json")), printed, what)
  lu.assertEquals(#printed.cells, #OPS, what)
  return printed.cells
end

-- Starts a case of { fault, at, rank, call, words, phase, plugin }: the expected message; with a phase, by
-- any rank. With an unused plug-in, ranks have a process between them and their launcher.
local function begin(wanted)
  local fault, at, rank, call = table.unpack(wanted)
  local case = lib.new_case()
  case.wanted, case.plugin = wanted, wanted.plugin
  case.what = ("%s at %s of rank %d%s"):format(fault, at, rank, case.plugin and ", with a plug-in" or "")
  case.waits_s = OF_WORK * lib.timeout_s
  start(case, { FAULT = fault, AT = at, RANK = rank, CALL = call })
  return case
end

-- Checks messages and answers, and starts the next run, without a fault.
local function check_fault(case)
  local what, wanted = case.what, case.wanted
  local ended, out, err = case:finish()
  local reason = err:match("^gentables: TP 2: ([^\n]*); every op takes its default, MPI\n$")
  lu.assertNotNil(reason, what .. ": " .. err)
  local said = wanted.phase and reason:gsub("; rank %d waited for it", "", 1) or reason
  local words = wanted.phase and wanted.words .. " " .. wanted.phase or wanted.words
  lu.assertEquals(said, "the group failed: " .. words, what)
  lu.assertEquals(ended, "exit code 1", what)
  for _, cell in ipairs(answers(case, out, what)) do
    lu.assertEquals({ cell.strategy, cell.is_default, cell.candidates }, { "MPI", true, {} }, what)
    lu.assertEquals(cell.reason, reason, what)
  end
  case:leaves_nothing(what)
  case.plugin = nil
  start(case)
end

local function check_rest(case)
  local ended, out, err = case:finish()
  local rest = err:gsub("^gentables: [^\n]*: cells measured now: [^\n]*\n", "") -- they replace the defaults
  lu.assertEquals({ ended, rest }, { "exit code 0", "" }, case.what)
  for _, cell in ipairs(answers(case, out, case.what)) do lu.assertEquals(#cell.candidates, 1, case.what) end
end

local function waited_for(words) return ("%s; rank 0 waited for %s s"):format(words, lib.timeout) end

-- A stopped rank, in these words.
local before_pass = "rank 1 is stopped, in the set-up of MPI; rank 0 waited for it "
local of_0, of_1 = "rank 0 is stopped, in the pass; rank 1 waited for it ",
  "rank 1 is stopped, in the pass; rank 0 waited for it "

local TestTune = {}

function TestTune.test_a_group_that_does_not_get_on()
  local list = {
    -- They share no memory yet; only the operating system knows the state.
    { "STOP", "connected", 1, 0, words = waited_for "rank 1 is stopped, at the start" },
    { "STOP", "connected", 1, 0, words = waited_for "rank 1 is stopped, at the start",
      plugin = os.getenv("PLUGIN") },
    { "STOP", "set-up", 1, 0, words = before_pass .. "(start)" },
    { "STOP", "data", 1, 0, words = of_1 .. "(start)" },
    { "STOP", "agreement", 0, 0, words = of_0 .. "(agreement)" },
    { "STOP", "agreement", 1, 0, words = of_1 .. "(agreement)" },
    { "STOP", "call", 1, CALLS // 2, words = of_1 .. "(strategy MPI)" },
    { "STOP", "called", 0, CALLS, words = of_0 .. "(reduction)" },
    { "STOP", "called", 1, CALLS, words = of_1 .. "(reduction)" },
    -- Between two calls ranks wait for each other without MPI, and no candidate is at work.
    { "STOP", "called", 1, CALLS // 2, words = waited_for "rank 1 is stopped, in the pass" },
    -- A rank that does not return.
    { "HANG", "set-up", 1, 0, words = "rank 1 hangs, in the set-up of MPI", phase = "(start)" },
    { "HANG", "agreement", 1, 0, words = "rank 1 hangs, in the pass", phase = "(agreement)" },
  }
  lib.run_all(list, AT_ONCE, begin, check_fault, check_rest)
end

return require "suites" { { "TestTune", TestTune } }
