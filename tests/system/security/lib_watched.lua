-- Runs the jobs of lib_jobs.lua under watcher.c, several at a time. Fails unless each ends as it should; each
-- verb has a job; and in the jobs each module that can start a process or make a temporary folder does so, as
-- does each verb that uses such a module.
--
--   gentables lua lib_watched.lua LOG        see lib_observed.lua
local child_process = require "system.child_process"
local fail = require "base.fail"
local file = require "core.file"
local sorted_keys = require("base.ordering").sorted_keys
local starters = require "system.security.lib_starters"
local system = require "core.system"
local verbs = require "verbs"
local workers = require "system.workers"

local work, log = os.getenv("WORK"), arg[1]
local observed = arg[0]:gsub("[^/]*$", "lib_observed.lua")
local PATIENCE = 120 -- seconds for a job
local IN_FOLDER = 'cd "$0" && PATH=$PWD/in/bin:$PATH && exec "$@"'

-- Verbs that start nothing. They use the lists of modules that start benches and launchers.
local START_NOTHING = { completion = true, diff = true, import = true, manual = true,
  ["workload show"] = true }

-- ---- the jobs ---------------------------------------------------------------------------------

-- The module and the name of the verb of a command line, with its command if it has some.
local function verb_of(arguments)
  local module = "verbs." .. arguments[1]
  if not require(module).commands then return module, arguments[1] end
  return module .. "." .. arguments[2], arguments[1] .. " " .. arguments[2]
end

-- The file in which all jobs of a verb record what they start.
local function record_of(module) return work .. "/started/" .. module end

local function write(path, text)
  assert(file.make_folder(path:match("^(.*)/")))
  assert(file.write(path, text))
end

local function prepare(row, folder)
  for _, name in ipairs { "in", "out", "home" } do assert(file.make_folder(folder .. "/" .. name)) end
  for name, text in pairs(row[2]) do write(folder .. "/in/" .. name, text) end
  for name, text in pairs(row.before or {}) do write(folder .. "/out/" .. name, text) end
  for _, name in ipairs(row.programs or {}) do
    assert(child_process.run({ "chmod", "+x", folder .. "/" .. name }, {}).well)
  end
end

-- Runs a verb in the job's folder, without GPUs. Raises unless it ends with this exit code.
local function run_verb(row, folder, arguments, code)
  local argv = { "/bin/sh", "-c", IN_FOLDER, folder, system.program(), "lua", observed,
    record_of(verb_of(arguments)), log }
  table.move(arguments, 1, #arguments, #argv + 1, argv)
  local home = folder .. "/home"
  local ran = child_process.run(argv, { seconds = PATIENCE, environment = { "HOME=" .. home,
    "XDG_CACHE_HOME=" .. home, "CUDA_VISIBLE_DEVICES=", table.unpack(row.environment or {}) } })
  if code == 0 and ran.well or ran.reason == "exit code " .. code then return end
  fail.work("%s: gentables %s: %s: %s", row[1], table.concat(arguments, " "), ran.reason, ran.errors)
end

local function run_job(row)
  local folder = work .. "/jobs/" .. row[1]:gsub("%W+", "_")
  prepare(row, folder)
  if row.first then run_verb(row, folder, row.first, 0) end
  run_verb(row, folder, table.move(row, 3, #row, 1, {}), row.code or 0)
  return ""
end

-- The rows without those that need a missing module, and whether there are such.
local function without_missing(rows)
  local left = {}
  for _, row in ipairs(rows) do
    local is_missing = row.needs and not pcall(require, row.needs)
    if is_missing then print(("left out: %s: no %s"):format(row[1], row.needs)) else left[#left + 1] = row end
  end
  return left, #left < #rows
end

-- ---- what they must cover ---------------------------------------------------------------------

-- The modules of all verbs, and of the commands of those that have some: name -> module.
local function all_verbs()
  local modules = {}
  for _, verb in ipairs(verbs.list) do
    for _, command in ipairs(require("verbs." .. verb.name).commands or { false }) do
      local module, name = verb_of { verb.name, command and command.name }
      modules[name] = module
    end
  end
  return modules
end

local problems = {}
local function complain(...) problems[#problems + 1] = string.format(...) end

local function check_verbs(rows)
  local seen = {}
  for _, row in ipairs(rows) do seen[select(2, verb_of { row[3], row[4] })] = true end
  for _, name in ipairs(sorted_keys(all_verbs())) do
    if not seen[name] then complain("%s has no job; add one to lib_jobs.lua", name) end
  end
end

-- Adds the modules that started something in the jobs of a verb to `started`. Returns whether there are any.
local function read_record(module, started)
  local text = file.read(record_of(module)) or ""
  for name in text:gmatch("%S+") do started[name] = true end
  return text ~= ""
end

local function check_starters()
  local started = {}
  for name, module in pairs(all_verbs()) do
    local starts = read_record(module, started)
    if next(starters.of(module)) and not starts and not START_NOTHING[name] then
      complain("%s can start processes, and its jobs in lib_jobs.lua do not", name)
    elseif starts and START_NOTHING[name] then
      complain("%s starts processes; remove it from START_NOTHING", name)
    end
  end
  for _, starter in ipairs(starters.all()) do
    if not started[starter] then complain("no job in lib_jobs.lua starts what %s can start", starter) end
  end
end

-- ---- all of it --------------------------------------------------------------------------------

local all = require "system.security.lib_jobs"
local rows, are_some_missing = without_missing(all)
assert(file.make_folder(work .. "/started"))
for _, result in ipairs(workers.map(rows, run_job)) do
  if not result.ok then complain("%s", result.value) end
end
check_verbs(all)
if not are_some_missing then check_starters() end
for _, problem in ipairs(problems) do print("FAILED: " .. problem) end
return #problems == 0 and 0 or 1
