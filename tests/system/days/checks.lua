-- What must hold after each step of a day.
local file = require "core.file"
local json = require "codec.json"
local rows = require "core.rows"
local day = require "system.days.day"

local checks = {}

local END_S = 60 -- seconds until all processes of a killed run have ended
local INTERRUPTED = { [130] = true, [143] = true } -- exit codes

local function name_of(process_id)
  local handle <close> = io.open("/proc/" .. process_id .. "/cmdline")
  return handle and handle:read("a"):gsub("%z", " ") or process_id
end

-- ---- processes and temporary files ----------------------------------------------------------------

-- `others`: a set of names in these folders that belong to a hindrance. `kill`: that of the step, or nil.
-- Temporary files of a program that got SIGKILL stay until its next run.
function checks.nothing_is_left(today, others, kill)
  today.was_killed = today.was_killed or kill and kill[1] == "program" and kill[2] == "KILL"
  if not day.wait(END_S, function() return #today:processes() == 0 end) then
    local names = {}
    for i, pid in ipairs(today:processes()) do names[i] = name_of(pid) end
    error("processes are left: " .. table.concat(names, "; "))
  end
  for _, folder in ipairs { "tmp", "shm" } do
    for _, name in ipairs(assert(file.list(today:path(folder)))) do
      local is_left = today.was_killed and name:find("^gentables%-[%l-]+%.locked%.%w+$")
      if not is_left and not (others or {})[name] then error(("left in %s: %s"):format(folder, name)) end
    end
  end
end

-- ---- files ------------------------------------------------------------------------------------------

-- The names that output folders may have, apart from those of tables. A killed run leaves its lock.
local names = {
  rows = { "^spec%.lua$", "^benchmark%.tp%d%.host%.csv$", "^benchmark%.tp%d%.host%.csv%.part$",
    "^benchmark%.tp%d%.host%.json$", "^%.lock$" },
  tuned = { "^tuned%.json$", "^gentables_tuned%.py$", "^gentables_torch%.py$", "^%.lock$" },
  cache = { "^tune%.json$", "^tune%.json%.lock$" },
}

local function is_known(name, patterns)
  for _, pattern in ipairs(patterns) do
    if name:find(pattern) then return true end
  end
  return false
end

-- How the end of a file looks, or what reads it: by the ending of its name.
local whole = {
  csv = function(path) return rows.records(path) end,
  json = function(path) return json.decode(assert(file.read(path))) ~= nil end,
  py = function(path) return assert(file.read(path)):find("\n$") ~= nil end,
}

local function folder_is_whole(today, folder)
  for _, name in ipairs(assert(file.list(today:path(folder)))) do
    local path = today:path(folder .. "/" .. name)
    local read = whole[name:match("%.(%w+)$")]
    if not is_known(name, names[folder]) then error(("left behind: %s/%s"):format(folder, name)) end
    local ok, result, problem = true, true, nil
    if read then ok, result, problem = pcall(read, path) end
    if not ok or not result then
      error(("incomplete: %s/%s: %s"):format(folder, name, tostring(problem or result)))
    end
  end
end

-- All files but the tables are complete.
function checks.files_are_whole(today)
  for folder in pairs(names) do folder_is_whole(today, folder) end
end

-- The files of a folder: text by name.
function checks.texts(folder)
  local texts = {}
  for _, name in ipairs(assert(file.list(folder))) do
    local path = folder .. "/" .. name
    texts[name] = file.status(path) == "file" and file.read(path) or nil
  end
  return texts
end

-- Each table is as it was before, or as an undisturbed run writes it.
function checks.tables_are_whole(today, before, undisturbed)
  for name, text in pairs(checks.texts(today:path("tables"))) do
    local is_whole = text == before[name] or text == undisturbed[name] or name == ".lock"
    if not is_whole then
      error(("half-written or left behind: tables/%s: %d bytes, was %d, should be %d"):format(name, #text,
        #(before[name] or ""), #(undisturbed[name] or "")))
    end
  end
end

-- ---- ends -------------------------------------------------------------------------------------------

-- A run ended in order: with a message if it failed, and by a signal only if that was sent to it.
function checks.ended_well(ran, kill)
  local is_killed = kill and kill[1] == "program" and ran.was_hit
  local is_known_end = ran.code and (ran.code <= 2 or is_killed and INTERRUPTED[ran.code]) or
    is_killed and ran.how:find("^killed by SIG" .. kill[2])
  if not is_known_end then error(ran.how .. ": " .. ran.err) end
  for _, text in ipairs { "traceback", "internal error" } do
    if ran.err:find(text, 1, true) then error(ran.err) end
  end
  local needs_message = ran.code and ran.code > 0
  if needs_message and ran.err == "" and not ran.out:find("differ", 1, true) then
    error(ran.how .. " without a message: " .. ran.out)
  end
end

return checks
