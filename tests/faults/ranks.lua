-- A rank that is killed, stopped or hangs, whichever it is and wherever it happens: it is named, nothing is
-- left of it, what was measured is whole, and only the cell in flight is measured again.
package.path = package.path .. ";" .. arg[0]:match("^(.*/)") .. "?.lua"
local lu = require "luaunit"
local lib = require "lib"

local AT_ONCE = 6 -- cases; most of their time they wait

if lib.skip_without_mpirun() then return 77 end

local before_cells, in_cell, after_cells = "before", "in", "after"
-- Where it happens, and in what words the bench says so.
local places = {
  start = { when = before_cells, words = "at the start" },
  segment = { when = before_cells, words = "at the start" },
  connected = { when = before_cells, words = "at the start" },
  ["set-up"] = { when = before_cells, words = "in the set-up of MPI" },
  ["warm-up"] = { when = in_cell, words = "in the warm-up of MPI" },
  timed = { when = in_cell, words = "in timed calls of MPI" },
  teardown = { when = after_cells },
  finalize = { when = after_cells },
}
local phases = { "start", "segment", "set-up", "warm-up", "timed", "teardown" }
if os.getenv("FAULTS_EVERYWHERE") then
  phases = { "start", "segment", "connected", "set-up", "warm-up", "timed", "teardown", "finalize" }
end

local verbs = { STOP = "is stopped", HANG = "hangs" }

local NAMELESS = "one rank died, and mpirun does not say which"

-- What stderr has to say of it. At the end it may be the sweep that says it, which knows no phases.
local function blame(fault, at, rank)
  if fault == "KILL" then return ("rank %d died: "):format(rank) end
  local words = places[at].words
  return ("rank %d %s%s"):format(rank, verbs[fault], words and ", " .. words or "")
end

local function check(case)
  local what = ("%s at %s of rank %d"):format(case.fault, case.at, case.rank)
  local ended, _, err = case:finish()
  -- Of one that has hardly begun mpirun does not always say which it was.
  local is_nameless = case.fault == "KILL" and places[case.at].words == "at the start"
    and err:find(NAMELESS, 1, true)
  if not is_nameless then lu.assertStrContains(err, blame(case.fault, case.at, case.rank)) end
  case:leaves_nothing(what)
  local when = places[case.at].when
  if when == before_cells then
    lu.assertEquals(ended, "exit code 1", what)
    lu.assertEquals(select(2, err:gsub("\n", "")), 1, what .. ": " .. err)
    lu.assertEquals(case:requests(), 0, what)
    ended, _, err = case:run()
    lu.assertEquals(err, "", what)
  end
  lu.assertEquals(ended, "exit code 0", what .. ": " .. err)
  if when == in_cell then lu.assertStrContains(err, "once more, with a fresh bench") end
  if when == after_cells then lu.assertStrContains(err, "the bench did not end well") end
  lu.assertEquals(case:requests(), when == in_cell and 3 or 2, what)
  case:is_finished(what)
end

-- Runs cases, some at once, each { fault, at, rank }.
local function run_all(wanted)
  for first = 1, #wanted, AT_ONCE do
    local cases = {}
    for i = first, math.min(#wanted, first + AT_ONCE - 1) do
      local case = lib.new_case()
      case.fault, case.at, case.rank = table.unpack(wanted[i])
      case:start { FAULT = case.fault, AT = case.at, RANK = case.rank }
      cases[#cases + 1] = case
    end
    for _, case in ipairs(cases) do
      check(case)
      case:clean()
    end
  end
end

local TestRanks = {}

local function each_place(fault, names)
  local wanted = {}
  for _, at in ipairs(names) do
    for rank = 0, 1 do wanted[#wanted + 1] = { fault, at, rank } end
  end
  run_all(wanted)
end

function TestRanks.test_a_rank_that_is_killed()
  each_place("KILL", phases)
end

function TestRanks.test_a_rank_that_is_stopped()
  each_place("STOP", phases)
end

function TestRanks.test_a_call_that_hangs() each_place("HANG", { "set-up", "timed" }) end

-- Nobody waits with a deadline for rank 0 between two cells but the sweep itself.
function TestRanks.test_rank_0_stopped_between_cells_is_named_by_the_sweep()
  local case <close> = setmetatable({}, { __close = function(self) self.of:clean() end })
  case.of = lib.new_case()
  local ended, _, err = case.of:run { FAULT = "STOP", AT = "idle", RANK = 0 }
  lu.assertEquals(ended, "exit code 0", err)
  lu.assertStrContains(err, ("the bench did not answer within %s s (rank 0 is stopped); once more"):format(
    lib.waits_s))
  case.of:leaves_nothing("idle")
  case.of:is_finished("idle")
end

local suites = dofile(arg[0]:match("^(.*/)") .. "../suites.lua")
return suites { { "TestRanks", TestRanks } }
