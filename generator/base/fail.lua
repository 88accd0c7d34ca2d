-- Errors for users. A verb raises one; verbs.lua prints it as `gentables: text` and exits with its code: 1
-- for a difference or a failed measurement, 2 for wrong use or unreadable input.
local texts = require "base.text"

local fail = {}

-- base/bindings.h has the same name, for failures that C code raises.
local NAME = "gentables.failure"
local failure = { __name = NAME }
failure.__index = failure
failure.__tostring = function(self) return self.message end

-- Maximum of bytes of a value in a message, and of a message.
local MOST_OF_VALUE, MOST_OF_MESSAGE = 1000, 4000

-- The first `most` bytes of a text, without the part of a character at their end.
local function beginning(value, most)
  local first = value:sub(1, most)
  local last = first:find("[\xC0-\xFF][\x80-\xBF]*$")
  return last and not utf8.len(first, last) and first:sub(1, last - 1) or first
end

-- A text as it is if it has at most `most` bytes; else its beginning and "...".
function fail.cut(value, most) return #value > most and beginning(value, most - 3) .. "..." or value end

-- The beginning and the end of a long text, without parts of characters; any other value as it is.
local function shortened(value, most)
  if type(value) ~= "string" or #value <= most then return value end
  local first = beginning(value, most // 2)
  local last = value:sub(-most // 4):gsub("^[\x80-\xBF]+", "")
  return first .. " [...] " .. last
end

-- A message of a sensible length, for a terminal: control characters apart from line ends become "?", and
-- bytes that are no UTF-8 become U+FFFD.
function fail.short(message)
  return (texts.valid_utf8(shortened(message, MOST_OF_MESSAGE)):gsub("[\0-\9\11-\31\127]", "?"))
end

-- A message for stderr, with its line end.
function fail.line(message) return "gentables: " .. fail.short(message) .. "\n" end

-- `message` with values, which are cut if they are long; without any, it is no format.
local function with_values(message, ...)
  local values, count = { ... }, select("#", ...)
  for i = 1, count do values[i] = shortened(values[i], MOST_OF_VALUE) end
  return count > 0 and message:format(table.unpack(values, 1, count)) or message
end

local notes = 0

-- Prints a message on stderr that is no note: one that says nothing about the data. The arguments are those
-- of fail.with.
function fail.print(message, ...) io.stderr:write(fail.line(with_values(message, ...))) end

-- Prints a note on stderr; the verb goes on. The arguments are those of fail.with.
function fail.note(message, ...)
  notes = notes + 1
  fail.print(message, ...)
end

-- The number of notes so far.
function fail.notes() return notes end

-- Raises an error. `message` names what is wrong, where, and what to do. Control characters in it become "?",
-- so that it is one line. Long values are cut.
function fail.with(code, message, ...)
  message = fail.short(with_values(message, ...)):gsub("\n", "?")
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

-- The same for a failed measurement, or a result that cannot be written.
function fail.unless_done(value, message)
  if not value then fail.work("%s", message) end
  return value
end

function fail.is_failure(value)
  local metatable = getmetatable(value)
  return type(metatable) == "table" and metatable.__name == NAME
end

-- A failure as it is; an error of Lua or C about memory as a failure; any other error as text.
function fail.of(err)
  if fail.is_failure(err) then return err end
  local text = tostring(err)
  if not (text:find("not enough memory$") or text:find("out of memory$")) then return text end
  return setmetatable({ code = 1, message = "out of memory" }, failure)
end

-- Raises a failure, or an error about memory, again. For errors of Lua that mean something after a pcall.
function fail.pass_on(err)
  local known = fail.of(err)
  if fail.is_failure(known) then error(known, 0) end
end

-- A message handler for xpcall: the same, and a traceback after a text. fail.of(what xpcall returns) is still
-- needed, because Lua calls no handler if its memory is short.
function fail.trace(err)
  local known = fail.of(err)
  return fail.is_failure(known) and known or debug.traceback(known, 2)
end

return fail
