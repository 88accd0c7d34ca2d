-- A rank that is killed, stopped or hangs, any rank at any place: it is named, nothing is left of it,
-- measured cells are complete, and only the cell in flight is measured again.
--
-- Each fault happens at each place, and at each place one rank is killed and the other one stopped; with
-- GENTABLES_NIGHTLY=1 each rank has each fault, at more places.
local lu = require "luaunit"
local lib = require "system.faults.lib"

local AT_ONCE = 8 -- cases; they mostly wait

if lib.skip_without_mpirun() then return 77 end

local before_cells, between_cells, in_cell, after_cells = "before", "between", "in", "after"
-- The place of the fault, and the bench's words for it.
local places = {
  start = { when = before_cells, words = "at the start" },
  segment = { when = before_cells, words = "at the start" },
  connected = { when = before_cells, words = "at the start" },
  ["set-up"] = { when = before_cells, words = "in the set-up of MPI" },
  ["warm-up"] = { when = in_cell, words = "in the warm-up of MPI" },
  timed = { when = in_cell, words = "in timed calls of MPI" },
  teardown = { when = after_cells },
  finalize = { when = after_cells },
  idle = { when = between_cells },
}
local is_nightly = os.getenv("GENTABLES_NIGHTLY") == "1"
local phases = { "start", "segment", "set-up", "warm-up", "timed", "teardown" }
if is_nightly then
  phases = { "start", "segment", "connected", "set-up", "warm-up", "timed", "teardown", "finalize" }
end

local verbs = { STOP = "is stopped", HANG = "hangs" }

local NAMELESS = "one rank died; mpirun does not name it"

-- The expected line on stderr. At the end the sweep may print it, which does not know the phase.
local function blame(fault, at, rank)
  if fault == "KILL" then return ("rank %d died: "):format(rank) end
  if places[at].when == between_cells then
    return ("the bench did not answer within %s s (rank %d is stopped); tried"):format(lib.waits_s, rank)
  end
  local words = places[at].words
  return ("rank %d %s%s"):format(rank, verbs[fault], words and ", " .. words or "")
end

-- Checks the sweep with the fault.
local function check_fault(case)
  local ended, _, err = case:finish()
  -- mpirun cannot always name a rank that has hardly begun.
  local is_nameless = case.fault == "KILL" and places[case.at].words == "at the start"
    and err:find(NAMELESS, 1, true)
  if not is_nameless then lu.assertStrContains(err, blame(case.fault, case.at, case.rank)) end
  case:leaves_nothing(case.what)
  local when = places[case.at].when
  lu.assertEquals(ended, "exit code 0", case.what .. ": " .. err)
  if when == before_cells then
    lu.assertEquals(select(2, err:gsub("; the bench is started again\n", "")), 1, case.what .. ": " .. err)
  end
  if when == in_cell then lu.assertStrContains(err, "tried again with a new bench") end
  if when == after_cells then lu.assertStrContains(err, "the bench did not end well") end
end

local function check_rest(case)
  local when = places[case.at].when
  -- A rank that is stopped between two cells may begin the next one when mpirun continues it to end it.
  if when ~= between_cells then
    lu.assertEquals(case:requests(), when == in_cell and 3 or 2, case.what)
  end
  case:requests()
  case:is_finished(case.what)
end

-- Starts a case of { fault, at, rank }.
local function start(wanted)
  local fault, at, rank = table.unpack(wanted)
  local case = lib.new_case()
  case.fault, case.at, case.rank, case.what = fault, at, rank, ("%s at %s of rank %d"):format(fault, at, rank)
  -- Between two cells only the sweep itself waits with a deadline for rank 0.
  if places[at].when == between_cells then case:is_noticed_by_the_sweep() end
  case:start { FAULT = fault, AT = at, RANK = rank }
  return case
end

-- Adds both ranks, or one, the other one at each next place.
local function add(wanted, fault, names, rank)
  for i, at in ipairs(names) do
    for each = 0, 1 do
      if is_nightly or each == (rank + i) % 2 then wanted[#wanted + 1] = { fault, at, each } end
    end
  end
end

local TestRanks = {}

function TestRanks.test_a_rank_that_goes_wrong()
  local wanted = { { "STOP", "idle", 0 } }
  add(wanted, "STOP", phases, 0)
  add(wanted, "HANG", { "set-up", "timed" }, 0)
  add(wanted, "KILL", phases, 1)
  lib.run_all(wanted, AT_ONCE, start, check_fault, check_rest)
  print(#wanted .. " cases")
end

return require "suites" { { "TestRanks", TestRanks } }
