-- Days of the program. A day is a folder in which, at random, cells are swept, tables are made and checked,
-- collectives are tuned and the spec changes, while processes are killed, files of other users are in the way
-- and the disk is full (steps.lua). After each step
--
-- - no process, no shared memory and no temporary file is left;
-- - each file is complete: as it was, or as an undisturbed run writes it;
-- - the exit code is 0, 1 or 2, or that of a signal, and a failure has a message.
--
-- At the end of the day, without disturbance, the sweep completes. Its tables equal those of a new folder
-- with the same rows. Without ranks, its rows equal those of a new sweep.
--
-- The test has two short days; with GENTABLES_NIGHTLY=1 their seeds are random.
--   DAYS_STEPS=N   days of N steps together
--   DAYS_SEED=N    the seed of the first day; each further one has the next number
--
-- A seed decides the steps and their moments, but not the state of the processes then. After a failure the
-- steps are printed, and the folder is copied to GENTABLES_NIGHTLY_FOLDER if that is set.
local file = require "core.file"
local process = require "core.process"
local day = require "system.days.day"
local steps = require "system.days.steps"

local STEPS = 25             -- of a day
local SHORT_STEPS = 8        -- of a day in CI
local SHORT_SEEDS = { 1, 6 } -- the second one has ranks, and a limit of file sizes that kills them
local MOST_SECONDS, MOST_FAILURES = 3600, 5 -- then the rest is left out

local is_nightly = os.getenv("GENTABLES_NIGHTLY") == "1"

-- Copies what a failed day left to the folder of the nightly run.
local function keep(today)
  local folder = os.getenv("GENTABLES_NIGHTLY_FOLDER")
  if not folder then return end
  local copy = ("%s/days-%d"):format(folder, today.seed)
  file.remove_tree(copy)
  os.execute(("mkdir -p '%s' && cp -a '%s' '%s'"):format(folder, today.folder, copy))
  assert(file.write(copy .. "/steps", table.concat(today.log, "\n") .. "\n"))
  print("kept in " .. copy)
end

-- Lives one day of `count` steps. Returns whether all was right.
local function live(seed, count)
  local today, began = day.new(seed), process.now()
  local ok, problem = xpcall(function()
    for _ = 1, count do steps.take(today) end
    steps.end_of_day(today)
  end, debug.traceback)
  print(("day %d: %s; %.0f s"):format(seed, today:describe(), process.now() - began))
  if not ok then
    print(("FAILED: day %d, step %d: %s"):format(seed, #today.log, problem))
    for i, line in ipairs(today.log) do print(("  %d. %s"):format(i, line)) end
    keep(today)
  end
  today:clean()
  io.stdout:flush()
  return ok
end

-- Returns the seeds of the days, and the number of steps of each day.
local function plan()
  local all, seed = tonumber(os.getenv("DAYS_STEPS")), tonumber(os.getenv("DAYS_SEED"))
  local first, seeds = math.tointeger(seed or os.time()), {}
  for i = 0, (all or 0) // STEPS - 1 do seeds[i + 1] = first + i end
  if all then return seeds, STEPS end
  return (is_nightly or seed) and { first, first + 1 } or SHORT_SEEDS, SHORT_STEPS
end

local seeds, count = plan()
local began, failures, days = process.now(), 0, 0
for _, seed in ipairs(seeds) do
  if process.now() - began > MOST_SECONDS or failures == MOST_FAILURES then break end
  days = days + 1
  if not live(seed, count) then failures = failures + 1 end
end
steps.print_counts()
print(("%d of %d days of %d steps passed, in %.0f s"):format(days - failures, days, count,
  process.now() - began))
os.exit(failures == 0 and 0 or 1)
