-- JSON: decode(text), pick(text, key...), encode(value), compact(value). simdjson decodes (json.cpp). encode
-- is deterministic: sorted keys, an indent of two spaces, arrays of plain values on one line; compact writes
-- no spaces. Bytes of a text that are no UTF-8 are written as U+FFFD, so that any reader of JSON takes it.
--
-- null is json.null. Arrays that were decoded, or made by json.array{...}, stay arrays when they are empty;
-- any other table is an array if it is a sequence that is not empty, and else an object. json.object{...}
-- makes an object with keys in a given order.
local core_text = require "core.text"
local valid_utf8 = require("base.text").valid_utf8

local json = {}

local array_type = { __name = "json.array" }

json.null = setmetatable({}, { __tostring = function() return "null" end, __name = "json.null" })

-- Marks a list as an array, and returns it.
function json.array(list) return setmetatable(list, array_type) end

-- { { key, value }, ... } -> an object that encode writes in this order, without keys that have no value.
-- Keys must not be added later: encode raises an error.
function json.object(fields)
  local object, order = {}, {}
  for _, field in ipairs(fields) do
    local key, value = field[1], field[2]
    object[key] = value
    if value ~= nil then order[#order + 1] = key end
  end
  return setmetatable(object, { __name = "json.object", order = order })
end

-- text -> value | nil, message. The first call loads core.json, which takes a while.
function json.decode(text) return require("core.json").decode(text, json.null, array_type) end

-- The text with null in place of NaN, Infinity and -Infinity outside of strings.
local function finite(text)
  local is_string = false
  return (text:gsub('([^"]*)("?)', function(piece, quote)
    local out = piece
    if not is_string then
      out = out:gsub("%f[%w%-]%-?Infinity%f[%W]", "null"):gsub("%f[%w%-]NaN%f[%W]", "null")
    end
    local is_escaped = is_string and #piece:match("\\*$") % 2 == 1
    if not is_escaped then is_string = not is_string end
    return out .. quote
  end))
end

-- text, keys... -> { key = value } of the outermost object, with these keys only | nil, message. For large
-- texts of which little is needed. NaN, Infinity and -Infinity, which Python adds to JSON, count as null.
function json.pick(text, ...)
  local core = require "core.json"
  local picked, problem = core.pick(text, json.null, array_type, ...)
  if picked or not (text:find("Infinity", 1, true) or text:find("NaN", 1, true)) then
    return picked, problem
  end
  return core.pick(finite(text), json.null, array_type, ...)
end

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n",
  ["\r"] = "\\r", ["\t"] = "\\t" }

local function encode_text(text)
  return '"' .. valid_utf8(text):gsub('[%c"\\]', function(char)
    return escapes[char] or (char == "\127" and char) or ("\\u%04x"):format(char:byte())
  end) .. '"'
end

local function encode_number(number)
  if number ~= number or number == math.huge or number == -math.huge then
    error("JSON has no " .. tostring(number), 0)
  end
  return core_text.shortest(number)
end

local function is_array(value) return getmetatable(value) == array_type or #value > 0 end

local encode_value

local function keys_in_order(object)
  local keys, meta = {}, getmetatable(object)
  for key in pairs(object) do
    if type(key) ~= "string" then error("JSON has no key of type " .. type(key), 0) end
    keys[#keys + 1] = key
  end
  if meta and meta.order then
    if #meta.order ~= #keys then error("keys were added to an object of json.object", 0) end
    return meta.order
  end
  table.sort(keys)
  return keys
end

local function encode_array(array, indent)
  local items, plain = {}, true
  for i, item in ipairs(array) do
    plain = plain and (type(item) ~= "table" or item == json.null)
    items[i] = encode_value(item, indent and indent .. "  ")
  end
  if not indent then return "[" .. table.concat(items, ",") .. "]" end
  if plain then return "[" .. table.concat(items, ", ") .. "]" end
  local inner = "\n" .. indent .. "  "
  return "[" .. inner .. table.concat(items, "," .. inner) .. "\n" .. indent .. "]"
end

local function encode_object(object, indent)
  local fields = {}
  local colon = indent and ": " or ":"
  for i, key in ipairs(keys_in_order(object)) do
    fields[i] = encode_text(key) .. colon .. encode_value(object[key], indent and indent .. "  ")
  end
  if not indent then return "{" .. table.concat(fields, ",") .. "}" end
  if #fields == 0 then return "{}" end
  local inner = "\n" .. indent .. "  "
  return "{" .. inner .. table.concat(fields, "," .. inner) .. "\n" .. indent .. "}"
end

-- `indent`: that of the line on which the value begins; nil: compact.
function encode_value(value, indent)
  local kind = type(value)
  if value == json.null then return "null" end
  if kind == "string" then return encode_text(value) end
  if kind == "number" then return encode_number(value) end
  if kind == "boolean" then return tostring(value) end
  if kind ~= "table" then error("JSON has no " .. kind, 0) end
  if is_array(value) then return encode_array(value, indent) end
  return encode_object(value, indent)
end

-- value -> text, without a newline at the end. Raises an error for values that JSON cannot express: NaN,
-- infinity, functions, keys that are no texts.
function json.encode(value) return encode_value(value, "") end

-- The same on one line, without spaces.
function json.compact(value) return encode_value(value) end

return json
