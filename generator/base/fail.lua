-- Errors that a person can act on. A verb raises one; verbs.lua prints it as `gentables: text` and exits with
-- its code: 1 a difference or a failed measurement, 2 wrong use or unreadable input.
local fail = {}

local failure = {}
failure.__index = failure
failure.__tostring = function(self) return self.message end

-- Raises. `message` names what is wrong and what would be right; it is one line, whatever it quotes.
function fail.with(code, message, ...)
  if select("#", ...) > 0 then message = message:format(...) end
  message = message:gsub("%c", "?")
  error(setmetatable({ code = code, message = message }, failure), 0)
end

-- Wrong use, or input that cannot be read: exit code 2.
function fail.input(message, ...) fail.with(2, message, ...) end

-- A failed measurement, or a result that could not be written: exit code 1.
function fail.work(message, ...) fail.with(1, message, ...) end

-- Passes on what a C module returned; nil, message becomes fail.input(message).
function fail.unless(value, message)
  if not value then fail.with(2, "%s", message or "unknown error") end
  return value
end

function fail.is_failure(value) return getmetatable(value) == failure end

return fail
