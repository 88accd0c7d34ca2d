-- Sheets to files: a folder of CSVs, one workbook, or one database. A sheet is
--
--   { name = "GEMM", columns = { "name", "time ms" }, rows = { { "aten::mm", 1.5 }, ... } }
--
-- Row values are text, numbers, truth values or nil (an empty cell). Instead of a list, `rows` may be a
-- function that returns an iterator over rows, for sheets too large to hold. Optional, keyed by title or
-- index of the column:
--   formats = { ["time ms"] = "0.00" }   number formats (default: default_formats)
--   colours = { ["time ms"] = { 0xFFFFFF, 0xC0392B } }   a scale of two or three colours
--   units   = { ["time ms"] = "ms" }     for the database (default: by the title, pages/sheet_database.lua)
-- and, for the database, views = { { name, sql }... } over its own table.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local optional = require "base.optional"
local sequences = require "base.sequences"
local text = require "core.sheet_text"
local valid_utf8 = require("base.text").valid_utf8

local sheets = {}

-- The number format of a column without one of its sheet: the first row with a pattern that its title
-- matches.
local default_formats = {
  { pattern = "_pct$", format = "0.00" },
  { pattern = "percent", format = "0.00" },
  { pattern = "%(%%%)", format = "0.00" },
  { pattern = "count$", format = "#,##0" },
  { pattern = "µs", format = "#,##0.000" },
  { pattern = "_us$", format = "#,##0.000" },
  { pattern = "_us_", format = "#,##0.000" },
  { pattern = "%f[%w]ms%f[%W]", format = "#,##0.000" },
  { pattern = "%(MB%)", format = "#,##0.000" },
  { pattern = "B/s", format = "0.000" },
  { pattern = "FLOPS", format = "#,##0.000" },
}

sheets.most_rows = 1048575 -- below the titles
sheets.most_columns = 16384
sheets.most_name = 31
sheets.most_text = 32767 -- in a cell
local notes_name = "notes"

local function default_format(title)
  return sequences.first(default_formats, function(row) return title:find(row.pattern) and row.format end)
end

-- The values of `given`, which is keyed by title or index, by index.
local function by_index(given, columns)
  local out = {}
  for index, title in ipairs(columns) do out[index] = given and (given[title] or given[index]) end
  return out
end

local function formats_of(sheet)
  local out = by_index(sheet.formats, sheet.columns)
  for index, title in ipairs(sheet.columns) do out[index] = out[index] or default_format(title) end
  return out
end

-- The rows for the C modules: a list, or a function that returns the next one.
local function rows_of(sheet)
  if type(sheet.rows) == "function" then return (sheet.rows()) end
  return sheet.rows
end

-- The first `count` characters of a text, and its last ones.
local function first(name, count) return name:sub(1, (utf8.offset(name, count + 1) or #name + 1) - 1) end
local function last(name, count) return name:sub(utf8.offset(name, -count)) end

-- Leaves out the middle of a name: most long names differ at their ends.
local function shorten(name, most)
  if utf8.len(name) <= most then return name end
  local tail = (most - 1) // 2
  return first(name, most - 1 - tail) .. "~" .. last(name, tail)
end

-- A valid name of a sheet that is not in `taken` (by name in lower case), where it is added.
function sheets.short_name(name, taken)
  local clean = utf8.len(name) and name or name:gsub("[\x80-\xff]", "_")
  clean = clean:gsub("[%[%]:*?/\\%c]", "_"):gsub("^'", "_"):gsub("'$", "_")
  if clean == "" then clean = "sheet" end
  local short, count = shorten(clean, sheets.most_name), 1
  while taken[short:lower()] or short:lower() == "history" do -- the second is a spreadsheet program's own
    count = count + 1
    local suffix = "~" .. count
    short = shorten(clean, sheets.most_name - #suffix) .. suffix
  end
  taken[short:lower()] = true
  return short
end

-- The sheet as CSV.
function sheets.csv(sheet) return text.csv(sheet.columns, rows_of(sheet)) end

-- A number as in the CSVs: the shortest text that reads back the same.
sheets.number = text.number

-- The file name of a sheet.
function sheets.csv_name(sheet) return (sheet.name:gsub("[/%z]", "_")) .. ".csv" end

-- Removes CSVs of an earlier report that this one does not have, from a report's own folder, NAME_csvs. In
-- other folders CSVs may belong to something else.
local function remove_others(folder, files)
  if not folder:find("_csvs$") then return end
  local ours = sequences.set(sequences.field(files, 1))
  for _, name in ipairs(file.list(folder) or {}) do
    local path = folder .. "/" .. name
    if name:find("%.csv$") and not ours[path] then os.remove(path) end
  end
end

-- Writes NAME.csv of every sheet into the folder, which it makes: all or none. In a folder NAME_csvs these
-- are then the only CSVs. Returns true, or nil, message.
function sheets.write_folder(folder, list)
  local made, message = file.make_folder(folder)
  if not made then return nil, message end
  local files = sequences.map(list, function(sheet)
    return { folder .. "/" .. sheets.csv_name(sheet), sheets.csv(sheet) }
  end)
  local written
  written, message = file.write_all(files)
  if not written then return nil, message end
  remove_others(folder, files)
  return true
end

-- Whether workbooks can be written here: true, or nil and why not.
function sheets.has_xlsx()
  if optional "core.xlsx" then return true end
  return nil, "gentables was built without libxlsxwriter and writes no xlsx; install it (Debian:"
    .. " libxlsxwriter-dev) and build again, or use CSV"
end

-- Notes of what did not fit into the workbook.
local function note_fit(notes, sheet, cut, left_out)
  local function add(...) notes[#notes + 1] = { sheet.short, string.format(...) } end
  if sheet.short ~= sheet.name then add("is %s; a sheet's name has at most 31 characters", sheet.name) end
  if #sheet.columns > sheets.most_columns then
    add("the last %d columns are left out: a sheet has %d", #sheet.columns - sheets.most_columns,
      sheets.most_columns)
  end
  if cut > 0 then
    add("%d cells are cut to 32,767 characters, the maximum of a cell; the CSV is whole", cut)
  end
  if left_out > 0 then
    add("the last %d rows are left out: a sheet has 1,048,576; the CSV is whole", left_out)
  end
end

local function add_sheet(book, sheet)
  local columns = table.move(sheet.columns, 1, math.min(#sheet.columns, sheets.most_columns), 1, {})
  return book:add { name = sheet.short, columns = columns, rows = rows_of(sheet),
    formats = formats_of(sheet), colours = by_index(sheet.colours, sheet.columns) }
end

local function with_short_names(list)
  local taken = { [notes_name] = true }
  return sequences.map(list, function(sheet)
    return setmetatable({ short = sheets.short_name(sheet.name, taken) }, { __index = sheet })
  end)
end

-- A text for a cell of a workbook, and whether it was cut: bytes that are no character of XML become U+FFFD.
local function cell_text(words)
  words = valid_utf8(words):gsub("[\0-\8\11\12\14-\31]", "\u{FFFD}")
    :gsub("\u{FFFE}", ("\u{FFFD}"):rep(3)):gsub("\u{FFFF}", ("\u{FFFD}"):rep(3))
  local units = 0 -- of UTF-16
  for at, code in utf8.codes(words) do
    units = units + (code > 0xFFFF and 2 or 1)
    if units > sheets.most_text then return words:sub(1, at - 1), true end
  end
  return words, false
end

-- Writes one workbook of all sheets (at least one), whole or not at all. A last sheet, `notes`, lists what
-- was shortened, cut or left out. Returns its rows, { sheet, note }; or nil, message.
function sheets.write_xlsx(path, list)
  local can, why = sheets.has_xlsx()
  if not can then return nil, ("%s: %s"):format(path, why) end
  local book <close>, message = require("core.xlsx").open(path, cell_text)
  if not book then return nil, message end
  local notes = {}
  local cut, left_out -- or nil, message
  for _, sheet in ipairs(with_short_names(list)) do
    cut, left_out = add_sheet(book, sheet)
    if not cut then return nil, left_out end
    note_fit(notes, sheet, cut, left_out)
  end
  if #notes > 0 then
    cut, left_out = book:add { name = notes_name, columns = { "sheet", "note" }, rows = notes }
    if not cut then return nil, left_out end
  end
  local closed
  closed, message = book:close()
  if not closed then return nil, message end
  return notes
end

-- Sheets for JSON: their names to lists of rows, which have the titles of their cells. Cells without a value,
-- or without a finite one, are left out.
function sheets.for_json(list)
  local out = {}
  for _, sheet in ipairs(list) do
    local rows = {}
    for _, row in ipairs(rows_of(sheet)) do
      local fields = {}
      for index, title in ipairs(sheet.columns) do
        local cell = row[index]
        if math.type(cell) ~= "float" or cell - cell == 0 then fields[title] = cell end
      end
      rows[#rows + 1] = fields
    end
    out[sheet.name] = json.array(rows)
  end
  return out
end

-- Writes all sheets as tables of a database. Returns true, or nil, message.
function sheets.write_sqlite(...) return require("pages.sheet_database").write(...) end

-- The option of verbs that write sheets. `names`: the formats of the verb (default: all).
function sheets.formats_option(names)
  return { name = "formats", value = "LIST", comma = true,
    one_of = names or { "csv", "xlsx", "sqlite" }, without = { "csv", "xlsx" },
    help = names and table.concat(names, ", ") .. " or both (default: csv)"
      or "of csv, xlsx, sqlite: --formats sqlite writes a database, a table for each sheet" }
end

-- Sets args.csv, args.xlsx and args.sqlite for the formats in args. Returns whether there are some. Raises if
-- a database is wanted and cannot be written.
function sheets.take_formats(args)
  for _, name in ipairs(args.formats or {}) do args[name] = true end
  if args.sqlite then fail.unless(require("pages.sheet_database").is_there()) end
  return args.csv or args.xlsx or args.sqlite or false
end

-- Selects the forms of a verb's output: those of the command line; without any, CSVs and a workbook. If the
-- library for workbooks is missing, prints that and selects CSVs alone.
function sheets.choose(args)
  if sheets.take_formats(args) then return end
  local has, why = sheets.has_xlsx()
  args.csv, args.xlsx = true, has
  if not has then fail.note("no workbook: " .. why) end
end

-- The paths of a list of sheets named `base`, as sheets.save takes them, for those of forms.csv, forms.xlsx
-- and forms.sqlite that are true.
function sheets.paths(base, forms)
  return { folder = forms.csv and base .. "_csvs", xlsx = forms.xlsx and base .. ".xlsx",
    sqlite = forms.sqlite and base .. ".sqlite" }
end

-- Calls write_xlsx, write_sqlite and write_folder for the given paths; raises their failures. The workbook,
-- which needs more space and open files, is the first: if it fails, no CSV is written.
function sheets.save(list, paths)
  local parent = (paths.xlsx or paths.sqlite or ""):match("^(.+)/")
  if parent then fail.unless_done(file.make_folder(parent)) end
  for _, kind in ipairs { "xlsx", "sqlite", "folder" } do
    local path = paths[kind]
    if path then fail.unless_done(sheets["write_" .. kind](path, list)) end
  end
end

return sheets
