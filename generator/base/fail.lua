-- Errors for users. A verb raises one; verbs.lua prints it as `gentables: text` and exits with its code: 1
-- for a difference or a failed measurement, 2 for wrong use or unreadable input.
local fail = {}

local failure = {}
failure.__index = failure
failure.__tostring = function(self) return self.message end

-- Raises an error. `message` names what is wrong, where, and what to do. Control characters in it become "?",
-- so that it is one line.
function fail.with(code, message, ...)
  if select("#", ...) > 0 then message = message:format(...) end
  message = message:gsub("%c", "?")
  error(setmetatable({ code = code, message = message }, failure), 0)
end

-- For wrong use, or input that cannot be read: exit code 2.
function fail.input(message, ...) fail.with(2, message, ...) end

-- For a failed measurement, or a result that cannot be written: exit code 1.
function fail.work(message, ...) fail.with(1, message, ...) end

-- Returns what a C module returned; nil, message becomes fail.input(message).
function fail.unless(value, message)
  if not value then fail.with(2, "%s", message or "unknown error") end
  return value
end

function fail.is_failure(value) return getmetatable(value) == failure end

return fail
