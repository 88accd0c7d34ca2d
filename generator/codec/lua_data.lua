-- Lua files that only return a table, such as specs and workloads: they run without any function, and with
-- limits on their size, their instructions and their memory.
local fail = require "base.fail"
local system = require "core.system"

local lua_data = {}

local MAX_BYTES, MAX_INSTRUCTIONS, MAX_MEMORY = 1 << 20, 10000000, 64 << 20
local ADVICE = "a short table is required"
local NO_MEMORY = "not enough memory"

-- Calls fn, while strings have no methods: one call of a method could take hours.
local function without_methods(fn, ...)
  local strings = getmetatable("")
  local methods = strings.__index
  local _ <close> = setmetatable({}, { __close = function() strings.__index = methods end })
  strings.__index = nil
  return fn(...)
end

-- Raises the error of a chunk that is named "data". Lua shortens long names, so its messages lack the path.
local function refuse(path, message)
  message = tostring(message):gsub("C stack overflow.*", "is nested too deeply; " .. ADVICE)
  local line, problem = message:match("^data:(%d+): (.*)$")
  if line then fail.input("%s:%s: %s", path, line, problem) end
  fail.input("%s:1: %s", path, message)
end

-- Raises Lua's error if it found no memory, although the limit was not reached.
local function check_memory(is_reached, message)
  if message == NO_MEMORY and not is_reached then error(message, 0) end
end

-- Runs the chunk of a thread. Returns true and its result, or false and the message, with the line.
local function resume(thread)
  local is_reached, ran, ok, value = without_methods(system.within, MAX_MEMORY, coroutine.resume, thread)
  if not ran then ok, value = false, ok end
  check_memory(is_reached, value)
  if value ~= NO_MEMORY then return ok, value end
  local place = debug.getinfo(thread, 0, "l")
  return false, ("data:%d: needs more than %d MiB; %s"):format(place and place.currentline or 1,
    MAX_MEMORY >> 20, ADVICE)
end

-- Runs the text of the file at `path`, which may begin with a byte order mark. Returns the table that it
-- returns; raises an error with path and line.
function lua_data.run(path, text)
  if #text > MAX_BYTES then fail.input("%s: is larger than %d MiB; %s", path, MAX_BYTES >> 20, ADVICE) end
  text = text:gsub("^\239\187\191", "")
  local is_reached, loaded, chunk, message = system.within(MAX_MEMORY, load, text, "=data", "t", {})
  check_memory(is_reached, loaded and message or chunk)
  if not loaded or not chunk then refuse(path, loaded and message or chunk) end
  local thread = coroutine.create(chunk)
  debug.sethook(thread, function() error("runs too long; " .. ADVICE, 2) end, "", MAX_INSTRUCTIONS)
  local ok, value = resume(thread)
  if not ok then refuse(path, value) end
  if type(value) ~= "table" then
    fail.input("%s:1: returns %s; a table is required: return { ... }", path, type(value))
  end
  return value
end

return lua_data
