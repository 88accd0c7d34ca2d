-- Values as Python literals: the sheets have shapes, types and details of kernels in this form, because
-- scripts that read such sheets parse it.
--
-- A value is a number, a text, a boolean, a list (written as a tuple), or python_literals.none.
local core_text = require "core.text"

local python_literals = {}

python_literals.none = setmetatable({}, { __name = "python.none" })

local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\" }

function python_literals.text(text)
  if not text:find("[%c\\']") then return "'" .. text .. "'" end
  local quote = text:find("'", 1, true) and not text:find('"', 1, true) and '"' or "'"
  text = text:gsub("[%c\\]", function(char) return escapes[char] or ("\\x%02x"):format(char:byte()) end)
  if quote == "'" then text = text:gsub("'", "\\'") end
  return quote .. text .. quote
end

function python_literals.number(number)
  if number ~= number then return "nan" end
  if number == math.huge or number == -math.huge then return number > 0 and "inf" or "-inf" end
  return core_text.shortest(number)
end

local function sequence(values, is_list)
  local out = {}
  for i, value in ipairs(values) do
    out[i] = math.type(value) == "integer" and value or python_literals.write(value, is_list)
  end
  if is_list then return "[" .. table.concat(out, ", ") .. "]" end
  return "(" .. table.concat(out, ", ") .. (#out == 1 and ",)" or ")")
end

-- The literal of a value. `as_lists`: lists are written with brackets, as in the columns named _first.
function python_literals.write(value, as_lists)
  local kind = type(value)
  if kind == "string" then return python_literals.text(value) end
  if kind == "number" then return python_literals.number(value) end
  if kind == "boolean" then return value and "True" or "False" end
  if kind ~= "table" or value == python_literals.none then return "None" end
  return sequence(value, as_lists)
end

return python_literals
