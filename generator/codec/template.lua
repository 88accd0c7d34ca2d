-- Templates: text with % and ${}, compiled to a function from a model to text.
--
--   % for _, n in ipairs(sizes) do      a line that starts with % is Lua
--   int size_${n};                      ${...} is a value; nil is an error that names template and line
--   % end
--   %% a line of text that starts with one %
--
-- Every line of the template becomes one line of Lua, so that Lua's errors name the template's line. Braces
-- within ${...} must balance.
local fail = require "base.fail"
local file = require "core.file"

local template = {}

local PERCENT = ("%"):byte()

local base = { ipairs = ipairs, pairs = pairs, math = math, string = string, table = table,
  tostring = tostring, tonumber = tonumber, select = select, type = type, error = error, assert = assert,
  require = require }

local function value_of(value, text)
  if value == nil then error("${" .. text .. "} is nil", 2) end
  return tostring(value)
end

-- The Lua that outputs one line of text. Errors name the template and the line's number.
local function translate_text(line, newline, name, number)
  if newline ~= "" and not line:find("${", 1, true) then return ("_out(%q .. '\\n')"):format(line) end
  local pieces, at = {}, 1
  for first, body, last in line:gmatch("()%$(%b{})()") do
    if first > at then pieces[#pieces + 1] = ("%q"):format(line:sub(at, first - 1)) end
    local expression = body:sub(2, -2)
    pieces[#pieces + 1] = ("_value(%s, %q)"):format(expression, expression)
    at = last
  end
  local rest = line:sub(at)
  if rest:find("${", 1, true) then
    return ("error(%q, 0)"):format(("%s:%d: ${ is not closed on its line"):format(name, number))
  end
  -- The newline is an escape, so that the Lua text has one line for each line of the template.
  if rest ~= "" or newline ~= "" then
    pieces[#pieces + 1] = ('%q%s'):format(rest, newline ~= "" and ' .. "\\n"' or "")
  end
  return #pieces > 0 and ("_out(%s)"):format(table.concat(pieces, " .. ")) or ""
end

local function translate(text, name)
  local out, count = {}, 0
  for line, newline in text:gmatch("([^\n]*)(\n?)") do
    count = count + 1
    if line:byte() ~= PERCENT then
      out[count] = translate_text(line, newline, name, count)
    elseif line:byte(2) == PERCENT then
      out[count] = translate_text(line:sub(2), newline, name, count)
    else
      out[count] = line:sub(2)
    end
  end
  return table.concat(out, "\n")
end

-- Compiles the text of a template; errors contain `name`. Returns function(model) -> text. Raises an error
-- for a broken template.
function template.compile(text, name)
  local environment = {}
  local code = "local _out, _value = ... " .. translate(text, name)
  local chunk = fail.unless(load(code, "@" .. name, "t", environment))
  return function(model)
    for key in pairs(environment) do environment[key] = nil end -- set by the last rendering
    setmetatable(environment, { __index = function(_, key)
      local found = model[key]
      if found == nil then found = base[key] end
      return found
    end })
    local pieces, count = {}, 0
    local function out(piece) count = count + 1; pieces[count] = piece end
    local ok, problem = pcall(chunk, out, value_of)
    if fail.is_failure(problem) then error(problem, 0) end
    if not ok then fail.input("%s", problem) end
    return table.concat(pieces)
  end
end

-- Reads and compiles the template at `path`. Returns function(model) -> text.
function template.load(path)
  return template.compile(fail.unless(file.read(path)), path)
end

return template
