-- Mutants of CSV: other fields, columns and lines, quotes, a byte order mark, line ends, cut lines.
local values = require "fuzz.structure.values"

local csv = {}

local one_of, chance = values.one_of, values.chance

-- Splits at every comma outside quotes.
local function fields_of(line)
  local fields, at = {}, 1
  while at do
    local quoted, after = line:match('^("[^"]*")()', at)
    if not quoted then quoted, after = line:match("^([^,]*)()", at) end
    fields[#fields + 1] = quoted
    at = line:sub(after, after) == "," and after + 1 or nil
  end
  return fields
end

local function read(text)
  local rows = {}
  for line in text:gmatch("[^\n]+") do rows[#rows + 1] = fields_of(line) end
  return rows
end

-- The text of a row. Fields that were never set are empty.
local function line_of(fields)
  local last, filled = 0, {}
  for column in pairs(fields) do last = math.max(last, column) end
  for column = 1, last do filled[column] = fields[column] or "" end
  return table.concat(filled, ",") .. "\n"
end

local function write(rows)
  local out = {}
  for i, fields in ipairs(rows) do out[i] = line_of(fields) end
  return table.concat(out)
end

local function quoted(text) return '"' .. text:gsub('"', '""') .. '"' end

-- Another value for a field: of its kind, of another row, or any.
local function other_value(rows, row, column)
  local old = rows[row][column] or ""
  if chance(0.2) then return quoted(old) end
  if chance(0.3) then return one_of(rows)[column] or "" end
  if chance(0.2) then return one_of(rows[row]) end
  if tonumber(old) and chance(0.8) then return values.number() end
  return chance(0.5) and values.any():gsub("[\n,]", "") or quoted(values.any())
end

local function each_row(rows, change)
  for _, fields in ipairs(rows) do change(fields) end
end

-- Columns as a whole, the header too.
local column_ways = {
  function(rows, column)
    each_row(rows, function(fields) table.remove(fields, math.min(column, #fields)) end)
  end,
  function(rows, column)
    each_row(rows, function(fields) table.insert(fields, 1, fields[math.min(column, #fields)] or "") end)
  end,
  function(rows, column)
    local other = math.random(#rows[1])
    each_row(rows, function(fields)
      fields[column], fields[other] = fields[other] or "", fields[column] or ""
    end)
  end,
  function(rows, column) rows[1][column] = chance(0.5) and one_of(rows[1]) or values.any() end,
  function(rows, column)
    local value = values.any():gsub("[\n,]", "")
    for i = 2, #rows do rows[i][column] = value end
  end,
}

local row_ways = {
  function(rows, row) table.remove(rows, row) end,
  function(rows, row) table.insert(rows, row, rows[row]) end,
  function(rows, row)
    local other = math.random(#rows)
    rows[row], rows[other] = rows[other], rows[row]
  end,
  function(rows, row) rows[row] = table.move(rows[row], 1, math.random(#rows[row]), 1, {}) end,
  function(rows, row) table.insert(rows[row], values.any()) end,
  function(rows, row) table.insert(rows, row, { "" }) end,
  function(rows, row) for i = #rows, row, -1 do rows[i] = nil end end,
  function(rows, row) for _ = 1, values.count() do rows[#rows + 1] = rows[row] end end,
  function(rows, row) table.insert(rows, row, { "# a comment" }) end,
}

local text_ways = {
  function(text) return "\xEF\xBB\xBF" .. text end,
  function(text) return (text:gsub("\n", "\r\n")) end,
  function(text) return (text:gsub("\n", "\r")) end,
  function(text) return text:sub(1, -2) end,
  function(text) return (text:gsub(",", one_of { ";", "\t", ", ", ",," })) end,
  values.damage,
}

function csv.mutate(text)
  local rows = read(text)
  for _ = 1, chance(0.6) and 1 or math.random(4) do
    local row, way = #rows > 0 and math.random(#rows), math.random(10)
    if not row or #rows[row] == 0 or #rows[1] == 0 then break end
    local column = math.random(#rows[row])
    if way <= 6 then
      rows[row] = table.move(rows[row], 1, #rows[row], 1, {})
      rows[row][column] = other_value(rows, row, column)
    elseif way <= 8 then
      one_of(row_ways)(rows, row)
    elseif way == 9 then
      one_of(column_ways)(rows, math.random(#rows[1]))
    end
  end
  local mutant = write(rows)
  return chance(0.15) and one_of(text_ways)(mutant) or mutant
end

return csv
