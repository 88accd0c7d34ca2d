-- The steps of a day: what a user, an operator or the machine does. days.lua lists what must hold after each.
--
-- How to add one: a row { name, weight, take(today) }. `take` notes what it did with today:note; it raises an
-- error if something is wrong.
local cell_records = require "rows.cell_records"
local file = require "core.file"
local rows = require "core.rows"
local checks = require "system.days.checks"
local hindrances = require "system.days.hindrances"

local steps = {}

local values = { tokens = { "1", "1, 4", "1, 4, 16", "4, 8" }, hidden = { "64", "128", "64, 256" },
  fusions = { '"NONE"', '"NONE", "RESIDUAL_RMS_NORM"' },
  strategies = { '"MPI", "ONESHOT"', '"MPI", "ONESHOT", "TWOSHOT"' } }
local CELL_US = 10000
local USUAL_S = 0.05 -- of a run that has not been timed yet
-- Seconds: of undisturbed runs, however busy the machine is; and of others, in which mpirun may hang.
local PATIENT, HASTY = 120, 10
local counts = {} -- by step and what happened

-- The folders that a verb reads or writes, and the verbs that start ranks.
local folders_of = { sweep = { "rows", "tmp", "shm" }, generate = { "rows", "tables" },
  check = { "rows", "tables" }, diff = { "rows", "tables" }, tune = { "tuned", "cache", "tmp", "shm" } }
local launches = { sweep = true, tune = true }

local function pick(list) return list[math.random(#list)] end

local function count(name) counts[name] = (counts[name] or 0) + 1 end

-- ---- the spec ---------------------------------------------------------------------------------------

-- A day has one limit of launches: a sweep that has ended stays complete if a spec allows more of them.
local function write_spec(today)
  today.launches = today.launches or math.random(2)
  local text = ([[
return { arch = "host", tp = { 2 }, fusions = { %s }, hidden_sizes = { %s }, num_tokens = { %s },
  strategies = { %s }, limits = { cell_us = %d, launches = %d } }
]]):format(pick(values.fusions), pick(values.hidden), pick(values.tokens), pick(values.strategies),
    CELL_US, today.launches)
  assert(file.write(today:path("rows/spec.lua"), text))
  today.has_spec = true
  today:note("another spec: %s", text:gsub("%s+", " "))
end

-- ---- disturbances -----------------------------------------------------------------------------------

-- A kill of someone in the run of a verb, at any moment of its usual time.
local function random_kill(today, verb)
  local victims = launches[verb] and { "program", "launcher", "rank" } or { "program" }
  return { pick(victims), pick { "TERM", "INT", "KILL" },
    after = math.random() * (today.takes[verb] or USUAL_S) }
end

-- The range of moments shrinks after a miss, and grows after a hit.
local function learn(today, verb, was_hit)
  today.takes[verb] = (was_hit and 1.2 or 0.8) * (today.takes[verb] or USUAL_S)
end

-- A hindrance and what it put; nil if none applies.
local function random_hindrance(today, verb)
  for _ = 1, 2 * #hindrances do
    local hindrance = pick(hindrances)
    local what = hindrance.put(today, folders_of[verb])
    if what then return hindrance, what end
  end
end

-- Chooses what disturbs a run: nothing, a kill or a hindrance.
local function disturb(today, verb)
  local die = math.random()
  today.patience = PATIENT
  if die < 0.35 then return { text = "undisturbed" } end
  if die < 0.7 then
    local kill = random_kill(today, verb)
    today.patience = HASTY
    return { kill = kill, text = ("SIG%s to %s after %.3f s"):format(kill[2], kill[1], kill.after) }
  end
  local hindrance, what = random_hindrance(today, verb)
  if not hindrance then return { text = "undisturbed" } end
  today.patience = HASTY
  return { hindrance = hindrance, what = what,
    text = hindrance.name .. (what.path and ": " .. what.path:sub(#today.folder + 2) or "") }
end

-- Runs a verb with a disturbance; checks its end, and that nothing is left. `judge(ran)` checks more.
local function run(today, verb, arguments, disturbance, judge)
  local what = disturbance.what or {}
  today:note("%s, %s", verb, disturbance.text)
  local at = #today.log
  local ran = today:run(arguments, { kill = disturbance.kill, limit = what.limit })
  local kind = disturbance.hindrance and disturbance.hindrance.name or
    disturbance.kill and (ran.was_hit and "hit by a signal" or "missed by a signal") or "undisturbed"
  today.log[at] = ("%s: %s after %.1f s%s"):format(today.log[at], ran.how, ran.took, ran.code == 0 and "" or
    ": " .. (ran.err:match("[^\n]*") or ""))
  count(("%s: %s"):format(verb, kind))
  checks.ended_well(ran, disturbance.kill)
  if disturbance.kill then learn(today, verb, ran.was_hit) end
  if disturbance.hindrance then disturbance.hindrance.take(today, what) end
  checks.nothing_is_left(today, what.names, disturbance.kill)
  checks.files_are_whole(today)
  judge(ran)
  return ran
end

-- ---- verbs ------------------------------------------------------------------------------------------

local function nothing_more() end

local function sweep(today)
  if not today.has_spec then write_spec(today) end
  local disturbance = disturb(today, "sweep")
  local arguments = math.random(2) == 1 and today:sweep("--fresh") or today:sweep()
  run(today, "sweep", arguments, disturbance, function(ran)
    local is_wrong = disturbance.text == "undisturbed" and ran.code ~= 0
    if is_wrong then error(ran.how .. ": " .. ran.out .. ran.err) end
  end)
end

-- Generates with the usual hysteresis or without. The reference is the same command, undisturbed, in a copy.
local function generate(today)
  local against = math.random(2) == 1 and { "--against", "none" } or {}
  local before = checks.texts(today:path("tables"))
  os.execute(("rm -rf '%s' && cp -a '%s' '%s'"):format(today:path("reference"), today:path("tables"),
    today:path("reference")))
  local good = today:run(today:generate("reference", table.unpack(against)))
  local undisturbed = checks.texts(today:path("reference"))
  os.execute(("rm -rf '%s'"):format(today:path("reference")))
  local disturbance = disturb(today, "generate")
  run(today, "generate", today:generate("tables", table.unpack(against)), disturbance, function(ran)
    checks.tables_are_whole(today, before, undisturbed)
    if disturbance.text == "undisturbed" and ran.how ~= good.how then
      error(("%s, and %s in a copy"):format(ran.how, good.how))
    end
  end)
end

local function check(today)
  local before = checks.texts(today:path("tables"))
  run(today, "check", today:check(), disturb(today, "check"), function()
    checks.tables_are_whole(today, before, before)
  end)
end

local function diff(today)
  local arguments = { "diff", today:path("tables"), today:path("rows") }
  run(today, "diff", arguments, disturb(today, "diff"), nothing_more)
end

local function tune(today)
  local disturbance = disturb(today, "tune")
  local arguments = today:tune(pick { "allreduce", "allgather" }, math.random(2) == 1 and "--fresh" or nil)
  run(today, "tune", arguments, disturbance, nothing_more)
end

local list = {
  { "sweep", 8, sweep }, { "generate", 6, generate }, { "check", 2, check }, { "diff", 1, diff },
  { "tune", 3, tune }, { "spec", 2, write_spec },
}

-- Takes one step of the list, at random by weight.
function steps.take(today)
  local sum = 0
  for _, step in ipairs(list) do sum = sum + step[2] end
  local die = math.random(sum)
  for _, step in ipairs(list) do
    die = die - step[2]
    if die <= 0 then return step[3](today) end
  end
end

-- ---- the end of the day -----------------------------------------------------------------------------

-- What differs between two folders: a name, or nil.
local function difference(one, other)
  for name, text in pairs(one) do
    if other[name] ~= text then return name end
  end
  for name in pairs(other) do
    if not one[name] then return name end
  end
end

-- Makes a folder with the files of `rows` that match a pattern of the shell; returns its path.
local function new_folder(today, name, pattern)
  local from, new = today:path("rows"), today:path(name)
  assert(os.execute(("mkdir '%s' && cp -p '%s'/%s '%s' && chown --reference='%s' '%s'"):format(new, from,
    pattern, new, from, new)))
  return new
end

-- Checks that a new folder with the same rows gets the same tables.
local function compare_tables(today)
  local new = new_folder(today, "new", "*")
  today:must { "generate", "--data-dir", new, "--arch", "host", "--out", new .. "/tables", "--against",
    "none" }
  local name = difference(checks.texts(today:path("tables")), checks.texts(new .. "/tables"))
  if name then error("a table differs from that of a new folder: " .. name) end
end

-- The times of a folder's rows, by cell and strategy.
local function times_in(folder)
  local times = {}
  for _, name in ipairs(assert(file.list(folder))) do
    for _, row in ipairs(name:find("%.csv$") and rows.records(folder .. "/" .. name) or {}) do
      times[cell_records.key(row)] = row.time_us
    end
  end
  return times
end

-- Checks that a new sweep has the same times, as the stand-in always gives. The rows may have more cells, of
-- earlier specs.
local function compare_rows(today)
  local again = new_folder(today, "again", "spec.lua")
  today:must(today:sweep_in("again"))
  local ours = times_in(today:path("rows"))
  for key, time in pairs(times_in(again)) do
    if ours[key] ~= time then
      error(("%s: %s us, and %s us in a new folder"):format(key, ours[key], time))
    end
  end
end

-- Completes the sweep and the tables without disturbance, and compares them with those of a new folder.
function steps.end_of_day(today)
  today:note("the end of the day")
  today.patience = PATIENT
  if not today.has_spec then write_spec(today) end
  today:must(today:sweep())
  local again = today:must(today:sweep())
  local is_whole = again.out:find("up to date", 1, true)
  if not is_whole then error("a complete sweep measures again: " .. again.out) end
  today:must(today:generate("tables", "--against", "none"))
  today:must(today:check())
  today:must(today:tune("allreduce", "--fresh"))
  today.was_killed = false
  checks.nothing_is_left(today)
  checks.files_are_whole(today)
  compare_tables(today)
  if not today.has_ranks then compare_rows(today) end
  for folder in pairs { rows = 1, tables = 1, tuned = 1 } do
    for _, left in ipairs(assert(file.list(today:path(folder)))) do
      if left == ".lock" or left:find("%.part$") then error(("left in %s: %s"):format(folder, left)) end
    end
  end
end

function steps.print_counts()
  local lines = {}
  for name, number in pairs(counts) do lines[#lines + 1] = ("  %4d %s"):format(number, name) end
  table.sort(lines, function(a, b) return a:sub(8) < b:sub(8) end)
  print(table.concat(lines, "\n"))
end

return steps
