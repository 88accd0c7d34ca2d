-- Lua values as texts, for a child process that sends them to its parent, and for files: pack writes, unpack
-- reads. Values are nil, booleans, numbers, texts, and tables of them without cycles. Lists of floats and
-- lists of integers have a fast format.
local pack = {}

local CHUNK = 100 -- numbers packed by one call
local LEAST = 8 -- numbers in a list with the fast format

-- The fast formats, by the type of the numbers: the mark in the text, and the format of one number.
local lists = { float = { mark = "D", one = "<d" }, integer = { mark = "I", one = "<i8" } }
for _, list in pairs(lists) do list.many = "<" .. list.one:sub(2):rep(CHUNK) end

-- The fast format of a list of numbers of one type; nil: it has none.
local function format_of(list)
  local kind, count = math.type(list[1]), #list
  if not kind or count < LEAST then return nil end
  for i = 2, count do
    if math.type(list[i]) ~= kind then return nil end
  end
  return next(list, count) == nil and lists[kind] or nil
end

local function pack_numbers(out, list, format)
  out[#out + 1] = string.pack("<c1I8", format.mark, #list)
  local i = 1
  while i + CHUNK - 1 <= #list do
    out[#out + 1] = string.pack(format.many, table.unpack(list, i, i + CHUNK - 1))
    i = i + CHUNK
  end
  for k = i, #list do out[#out + 1] = string.pack(format.one, list[k]) end
end

local pack_value

local function pack_table(out, value)
  local length = #value
  out[#out + 1] = string.pack("<c1I8", "T", length)
  for i = 1, length do pack_value(out, value[i]) end
  for key, item in pairs(value) do
    if not (math.type(key) == "integer" and key >= 1 and key <= length) then
      pack_value(out, key)
      pack_value(out, item)
    end
  end
  out[#out + 1] = "E"
end

function pack_value(out, value)
  local kind = math.type(value) or type(value)
  if kind == "float" then
    out[#out + 1] = string.pack("<c1d", "d", value)
  elseif kind == "integer" then
    out[#out + 1] = string.pack("<c1i8", "i", value)
  elseif kind == "string" then
    out[#out + 1] = string.pack("<c1s8", "s", value)
  elseif kind == "boolean" then
    out[#out + 1] = value and "t" or "f"
  elseif kind == "nil" then
    out[#out + 1] = "n"
  elseif kind == "table" then
    local format = format_of(value)
    if format then pack_numbers(out, value, format) else pack_table(out, value) end
  else
    error("a value of type " .. kind .. " cannot be packed", 0)
  end
end

-- value -> text
function pack.pack(value)
  local out = {}
  pack_value(out, value)
  return table.concat(out)
end

local function unpack_numbers(text, at, format)
  local count
  count, at = string.unpack("<I8", text, at)
  local list, i = {}, 1
  while i + CHUNK - 1 <= count do
    local values = { string.unpack(format.many, text, at) }
    at = table.remove(values)
    table.move(values, 1, CHUNK, i, list)
    i = i + CHUNK
  end
  for k = i, count do list[k], at = string.unpack(format.one, text, at) end
  return list, at
end

local unpack_value

local function unpack_table(text, at)
  local value, length = {}, string.unpack("<I8", text, at)
  at = at + 8
  for i = 1, length do value[i], at = unpack_value(text, at) end
  while text:sub(at, at) ~= "E" do
    local key
    key, at = unpack_value(text, at)
    value[key], at = unpack_value(text, at)
  end
  return value, at + 1
end

local readers = {
  d = function(text, at) return string.unpack("<d", text, at) end,
  i = function(text, at) return string.unpack("<i8", text, at) end,
  s = function(text, at) return string.unpack("<s8", text, at) end,
  t = function(_, at) return true, at end,
  f = function(_, at) return false, at end,
  n = function(_, at) return nil, at end,
  D = function(text, at) return unpack_numbers(text, at, lists.float) end,
  I = function(text, at) return unpack_numbers(text, at, lists.integer) end,
  T = unpack_table,
}

function unpack_value(text, at) return readers[text:sub(at, at)](text, at + 1) end

-- text -> value
function pack.unpack(text) return (unpack_value(text, 1)) end

return pack
