-- Sheets (pages/sheets.lua) as tables of one SQLite database, with the names of sheets and columns. Beside
-- them are the tables
--
--   sheet_list    sheet, row_count, note (what is left out, else NULL)
--   column_list   sheet, position, column, unit (NULL: none)
--
-- and the views of the sheets: sheet.views = { { name = "top_kernels", sql = "SELECT ..." }, ... }.
--
-- Values are those of the CSVs: numbers are numbers, truth values 0 and 1, empty cells and numbers that are
-- not a number NULL. SQLite does not distinguish case in names: of two that differ in nothing else, the
-- second gets a number.
local optional = require "base.optional"
local sequences = require "base.sequences"
local valid_utf8 = require("base.text").valid_utf8

local sheet_database = {}

sheet_database.most_columns = 2000 -- of a table, in SQLite

local APPLICATION = 0x67747272 -- "gtrr"
local PIECE = 1000 -- rows that are inserted at once

-- The unit of a column: the first row with a pattern that its title matches. MB are 2^20 bytes in all sheets,
-- and bandwidths in GB/s are of 2^30.
local units = {
  { pattern = "_pct$", unit = "%" },
  { pattern = "ercent", unit = "%" },
  { pattern = "%(%%%)", unit = "%" },
  { pattern = "ount$" },
  { pattern = "µs", unit = "us" },
  { pattern = "%(us%)", unit = "us" },
  { pattern = "_us$", unit = "us" },
  { pattern = "_us_", unit = "us" },
  { pattern = "%f[%w]ms%f[%W]", unit = "ms" },
  { pattern = "%(s%)", unit = "s" },
  { pattern = "%(MB%)", unit = "MiB" },
  { pattern = "%(GB/s%)", unit = "GiB/s" },
  { pattern = "TB/s", unit = "TB/s" },
  { pattern = "TFLOPS/s", unit = "TFLOP/s" },
  { pattern = "GFLOPS", unit = "GFLOP" },
  { pattern = "FLOPS/Byte", unit = "FLOP/B" },
  { pattern = "nelems", unit = "elements" },
  { pattern = "kernel_time_", unit = "us" },
  { pattern = "%f[%w]dur%f[%W]", unit = "us" },
  { pattern = "%f[%w]ts$", unit = "us" },
  { pattern = "comm_latency", unit = "us" },
  { pattern = "^skew in ", unit = "us" },
  { pattern = "wait_time$", unit = "us" },
  { pattern = "wall_time$", unit = "us" },
  { pattern = "^bin_", unit = "us" },
}

-- Whether databases can be written here: true, or nil and why not.
function sheet_database.is_there()
  if optional "core.sqlite" then return true end
  return nil, "gentables was built without SQLite and writes no databases; install it (Debian:"
    .. " libsqlite3-dev) and build again, or use --formats csv"
end

local function unit_of(sheet, title)
  local own = sheet.units and sheet.units[title]
  if own ~= nil then return own end
  local row = sequences.find(units, function(one) return title:find(one.pattern) end)
  return row and row.unit or false
end

-- A name that is not in `taken` (by name in lower case), where it is added.
local function unique(name, taken)
  name = valid_utf8(name):gsub("%z", "_")
  if name:lower():find("^sqlite_") then name = "_" .. name end
  local free, count = name, 1
  while taken[free:lower()] do
    count = count + 1
    free = ("%s~%d"):format(name, count)
  end
  taken[free:lower()] = true
  return free
end

local function quoted(name) return '"' .. name:gsub('"', '""') .. '"' end

-- ---- values and types -------------------------------------------------------------------------

-- A cell as core.sqlite takes it; false is NULL.
local function value_of(cell)
  if type(cell) == "boolean" then return cell and 1 or 0 end
  if type(cell) == "string" then return valid_utf8(cell) end
  if cell == nil or cell ~= cell then return false end
  return cell
end

-- An iterator over the rows of a sheet.
local function each_row(sheet)
  if type(sheet.rows) == "function" then return (sheet.rows()) end
  local i = 0
  return function()
    i = i + 1
    return sheet.rows[i]
  end
end

-- The declared type of a column that has these kinds of values. A column of several kinds has none, so that
-- each value is stored as it is.
local function declared(kinds)
  if kinds.text then return (kinds.integer or kinds.float) and "" or "TEXT" end
  if kinds.float then return kinds.is_large and "" or "REAL" end
  return kinds.integer and "INTEGER" or ""
end

local function note_kind(kinds, value)
  if type(value) == "string" then
    kinds.text = true
  elseif math.type(value) == "integer" then
    kinds.integer = true
    if math.tointeger(value + 0.0) ~= value then kinds.is_large = true end
  elseif value then
    kinds.float = true
  end
end

local function types_of(sheet, count)
  local kinds = {}
  for i = 1, count do kinds[i] = {} end
  for row in each_row(sheet) do
    for i = 1, count do note_kind(kinds[i], value_of(row[i])) end
  end
  return sequences.map(kinds, declared)
end

-- ---- tables -----------------------------------------------------------------------------------

-- Raises a message of SQLite.
local function check(done, message)
  if not done then error({ sqlite = message }, 0) end
end

local function run(database, sql) check(database:query(sql, function() end)) end

local function insert_rows(database, name, sheet, count)
  local sql = ("INSERT INTO %s VALUES (%s)"):format(quoted(name), ("?, "):rep(count - 1) .. "?")
  local piece, inserted = {}, 0
  local function flush()
    check(database:insert(sql, piece))
    inserted, piece = inserted + #piece, {}
  end
  for row in each_row(sheet) do
    local values = {}
    for i = 1, count do values[i] = value_of(row[i]) end
    piece[#piece + 1] = values
    if #piece == PIECE then flush() end
  end
  flush()
  return inserted
end

local function note_of(sheet, name)
  local notes = {}
  if name ~= sheet.name then notes[1] = ("is %s"):format(sheet.name) end
  local more = #sheet.columns - sheet_database.most_columns
  if more > 0 then
    notes[#notes + 1] = ("the last %d columns are left out: a table has %d; the CSV is whole"):format(more,
      sheet_database.most_columns)
  end
  return notes[1] and valid_utf8(table.concat(notes, "; ")) or false
end

local function add_sheet(database, sheet, names)
  local name, taken, columns = unique(sheet.name, names), {}, {}
  local count = math.min(#sheet.columns, sheet_database.most_columns)
  local types = types_of(sheet, count)
  local declarations = {}
  for i = 1, count do
    local title = sheet.columns[i]
    local column = unique(title, taken)
    columns[i] = { name, i, column, unit_of(sheet, title) }
    declarations[i] = quoted(column) .. (types[i] ~= "" and " " .. types[i] or "")
  end
  run(database, ("CREATE TABLE %s (%s)"):format(quoted(name), table.concat(declarations, ", ")))
  local rows = insert_rows(database, name, sheet, count)
  check(database:insert("INSERT INTO sheet_list VALUES (?, ?, ?)", { { name, rows, note_of(sheet, name) } }))
  check(database:insert("INSERT INTO column_list VALUES (?, ?, ?, ?)", columns))
end

local function fill(database, list)
  local names = { sheet_list = true, column_list = true }
  run(database, ("PRAGMA application_id = %d"):format(APPLICATION))
  run(database, "PRAGMA user_version = 1")
  run(database, "BEGIN")
  run(database, "CREATE TABLE sheet_list (sheet TEXT, row_count INTEGER, note TEXT)")
  run(database, 'CREATE TABLE column_list (sheet TEXT, position INTEGER, "column" TEXT, unit TEXT)')
  for _, sheet in ipairs(list) do add_sheet(database, sheet, names) end
  for _, sheet in ipairs(list) do
    for _, view in ipairs(sheet.views or {}) do
      run(database, ("CREATE VIEW %s AS %s"):format(quoted(unique(view.name, names)), view.sql))
    end
  end
  run(database, "COMMIT")
end

-- Writes the sheets as a database, whole or not at all. Returns true, or nil, message. Raises the errors of
-- the sheets' rows.
function sheet_database.write(path, list)
  local can, why = sheet_database.is_there()
  if not can then return nil, ("%s: %s"):format(path, why) end
  local database, message = require("core.sqlite").memory()
  if not database then return nil, ("%s: %s"):format(path, message) end
  local done, problem = pcall(fill, database, list)
  if not done then
    database:close()
    if type(problem) == "table" and problem.sqlite then
      return nil, ("%s: %s"):format(path, problem.sqlite)
    end
    error(problem, 0)
  end
  done, message = database:write(path)
  database:close()
  return done, message
end

return sheet_database
