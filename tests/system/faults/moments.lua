-- A kill at random moments: of a sweep with a stand-in bench, 50 times, so that each write of its files is
-- hit; and of a sweep under mpirun, or of a rank, some times. After each kill rows are complete, the next
-- sweep resumes from the journal, and the table equals that of an undisturbed sweep.
--
-- The moments are the same in each run. GENTABLES_NIGHTLY=1 uses others each time, and more under mpirun; a
-- failure prints its seed, which FAULTS_SEED repeats.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "system.faults.lib"
local process = require "core.process"
local rows = require "core.rows"

local SIGKILL = 9
local KILLS = 50
local is_nightly = os.getenv("GENTABLES_NIGHTLY") == "1"
local KILLS_UNDER_MPIRUN = is_nightly and 50 or 3

local seed = tonumber(os.getenv("FAULTS_SEED")) or is_nightly and os.time() or 1
print("FAULTS_SEED=" .. seed)
math.randomseed(seed)

local spec = [[
return { arch = "host", tp = { 2, 4 }, fusions = { "NONE", "RESIDUAL_RMS_NORM" }, hidden_sizes = { 64, 128 },
  num_tokens = { 4, 8, 16 }, strategies = { "MPI", "ONESHOT", "TWOSHOT" }, limits = { launches = 1 } }
]]
local CELLS, ROWS = 24, 36 -- cells of both TP sizes; rows of each

-- ---- the checks after each kill ---------------------------------------------------------------

local function text_of(path) return file.exists(path) and lib.read(path) or "" end

-- The complete cells of journals.
local function journaled(folder)
  local count = 0
  for _, name in ipairs(assert(file.list(folder))) do
    if name:find("%.part$") then
      count = count + select(2, lib.read(folder .. "/" .. name):gsub("\ndone sum=%x+%f[\n]", ""))
    end
  end
  return count
end

local function rows_are_whole(folder, count, what)
  for _, name in ipairs(assert(file.list(folder))) do
    if name:find("%.csv$") then lu.assertEquals(#assert(rows.records(folder .. "/" .. name)), count, what) end
  end
end

local function table_of(folder)
  local ended, _, err = lib.run { lib.gentables, "generate", "--data-dir", folder, "--arch", "host", "--out",
    folder .. "/tables", "--against", "none" }
  lu.assertEquals(ended, "exit code 0", err)
  return lib.read(folder .. "/tables/table.csv")
end

local function remove_results(folder)
  for _, name in ipairs(assert(file.list(folder))) do
    if name:find("^benchmark") then os.remove(folder .. "/" .. name) end
  end
end

-- Reads its output until `seconds` have passed. Returns whether it still runs.
local function runs_after(child, seconds)
  local deadline = process.now() + seconds
  while process.now() < deadline do
    local _, problem = child:read_line(deadline - process.now())
    if problem == "end" then return false end
  end
  return true
end

-- ---- with a stand-in --------------------------------------------------------------------------

local TestMoments = {}

local function stand_in_sweep(folder)
  return assert(process.start(lib.sweep_command(folder), { "STAND_IN_LOG=" .. folder .. "/log" }))
end

local function requests(folder) return select(2, text_of(folder .. "/log"):gsub("measure id", "")) end

function TestMoments.test_a_sweep_that_is_killed_at_any_moment_resumes()
  local whole, folder = lib.scratch(), lib.scratch()
  lib.write(whole .. "/spec.lua", spec)
  lib.write(folder .. "/spec.lua", spec)
  local started = process.now()
  runs_after(stand_in_sweep(whole), 60)
  local takes_s, wanted = process.now() - started, table_of(whole)
  local kept, kills, asked, sweeps, within_s = 0, 0, 0, 0, takes_s
  while kills < KILLS do
    local child = stand_in_sweep(folder)
    local what = ("kill %d, seed %d"):format(kills + 1, seed)
    -- The range of moments shrinks after a miss: the first sweep may have been slower than all others.
    if runs_after(child, math.random() * within_s) then
      child:kill(SIGKILL)
      kills, asked, within_s = kills + 1, asked + 1, math.min(takes_s, 1.2 * within_s)
    else
      within_s = 0.8 * within_s
    end
    runs_after(child, 60)
    child:close(60)
    rows_are_whole(folder, ROWS, what)
    local has = journaled(folder)
    -- Fewer cells than before are right only if the files have been written.
    lu.assertTrue(has >= kept or file.exists(folder .. "/benchmark.tp4.host.csv"), what)
    kept = has
    if has == 0 and file.exists(folder .. "/benchmark.tp4.host.csv") then
      lu.assertEquals(table_of(folder), wanted, what)
      sweeps = sweeps + 1
      remove_results(folder)
    end
  end
  local child = stand_in_sweep(folder)
  lu.assertFalse(runs_after(child, 60))
  lu.assertEquals(child:close(60), "exit code 0", child:errors())
  lu.assertEquals(table_of(folder), wanted)
  -- Each kill costs one cell at most.
  lu.assertTrue(requests(folder) <= (sweeps + 1) * CELLS + asked)
  lib.clean(whole)
  lib.clean(folder)
end

-- ---- under mpirun -----------------------------------------------------------------------------

-- Kills the sweep, or one of its ranks, while a case runs; returns the process, or nil if there was none. (A
-- killed mpirun cannot remove its own files.)
local function kill(case, is_of_sweep)
  local victim = is_of_sweep and case.child:pid() or math.tointeger(tonumber(case:ranks()[math.random(1, 2)]))
  return victim and os.execute(("kill -KILL %d 2>/dev/null"):format(victim)) and victim
end

-- Runs a case and kills within so many seconds; returns whether something was hit. A zombie can be killed,
-- too: the sweep counts as hit if the signal ended it.
local function run_with_kill(case, is_of_sweep, within_s)
  case:start()
  local victim = runs_after(case.child, math.random() * within_s) and kill(case, is_of_sweep)
  local ended = case:finish()
  return victim and (not is_of_sweep or ended:find("^killed by SIGKILL") ~= nil)
end

function TestMoments.test_a_kill_under_mpirun()
  if lib.skip_without_mpirun() then lu.skip("no mpirun of Open MPI") end
  local case = lib.new_case()
  local started = process.now()
  lu.assertEquals(case:run(), "exit code 0")
  local takes_s = process.now() - started
  case:is_finished("before")
  remove_results(case.folder)
  local hits, misses = 0, 0
  while hits < KILLS_UNDER_MPIRUN do
    local what = ("kill %d under mpirun, seed %d"):format(hits + 1, seed)
    case:requests()
    local kept = journaled(case.folder)
    local is_of_sweep = hits % 3 == 0
    if run_with_kill(case, is_of_sweep, takes_s) then
      hits = hits + 1
    else
      misses = misses + 1
      lu.assertTrue(misses < 20 * KILLS_UNDER_MPIRUN, what .. ": there is nothing to kill")
    end
    lib.wait_for(assert(process.start({ "cat" })), function() return #case:processes() == 0 end)
    case:leaves_nothing(what)
    rows_are_whole(case.folder, 2, what)
    lu.assertTrue(case:requests() <= 2 - kept + (is_of_sweep and 0 or 1), what) -- a cell that lost its rank
    if file.exists(case.csv) then remove_results(case.folder) end
  end
  local kept = journaled(case.folder)
  lu.assertEquals(case:run(), "exit code 0")
  lu.assertEquals(case:requests(), 2 - kept)
  case:is_finished("after")
  case:clean()
end

return require "suites" { { "TestMoments", TestMoments } }
