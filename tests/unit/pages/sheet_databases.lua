-- sheet_databases.lua: sheets as tables of a database: names that SQLite does not distinguish, values of
-- several kinds, too many columns. sheets_in_databases.sh compares the databases of reports with their CSVs.
-- Needs: sqlite
local file = require "core.file"
local luaunit = require "luaunit"
local sheets = require "pages.sheets"
local sqlite = require "core.sqlite"

local folder = os.getenv "WORK" -- of the test's own
assert(file.make_folder(folder))
local path = folder .. "/sheets.sqlite"
local tests = {}

-- The rows that a query of the written database has, each as a list; NULL is "NULL".
local function query(sql)
  local database, rows = assert(sqlite.open(path)), {}
  assert(database:query(sql, function(...)
    local row = table.pack(...)
    for i = 1, row.n do if row[i] == nil then row[i] = "NULL" end end
    row.n = nil
    rows[#rows + 1] = row
  end))
  return rows
end

function tests.test_values_keep_their_types()
  local list = { { name = "values", columns = { "whole", "real", "text", "truth", "several", "huge", "none" },
    rows = { { 1, 1, "a", true, 1, math.maxinteger }, { 2, 0.1, "\xff", false, "1", 0.5 },
      { nil, 0 / 0, "", nil, 1.0, nil } } } }
  assert(sheets.write_sqlite(path, list))
  luaunit.assertEquals(query 'SELECT whole, real, text, truth, several, huge, none FROM "values"', {
    { 1, 1.0, "a", 1, 1, math.maxinteger, "NULL" }, { 2, 0.1, "\u{FFFD}", 0, "1", 0.5, "NULL" },
    { "NULL", "NULL", "", "NULL", 1.0, "NULL", "NULL" } })
  luaunit.assertEquals(query "SELECT type FROM pragma_table_info('values')", { { "INTEGER" }, { "REAL" },
    { "TEXT" }, { "INTEGER" }, { "" }, { "" }, { "" } })
end

function tests.test_names_that_sqlite_does_not_distinguish_get_numbers()
  assert(sheets.write_sqlite(path, {
    { name = "GEMM", columns = { "m", "M", 'a"b' }, rows = { { 1, 2, 3 } } },
    { name = "gemm", columns = { "m" }, rows = { { 4 } }, views = { { name = "Gemm", sql = "SELECT 5" } } },
    { name = "sqlite_x", columns = { "m" }, rows = {} },
    { name = "sheet_list", columns = { "m" }, rows = {} },
  }))
  luaunit.assertEquals(query 'SELECT m, "M~2", "a""b" FROM GEMM', { { 1, 2, 3 } })
  luaunit.assertEquals(query 'SELECT m FROM "gemm~2"', { { 4 } })
  luaunit.assertEquals(query 'SELECT * FROM "Gemm~3"', { { 5 } })
  luaunit.assertEquals(query "SELECT sheet, row_count, note FROM sheet_list", { { "GEMM", 1, "NULL" },
    { "gemm~2", 1, "is gemm" }, { "_sqlite_x", 0, "is sqlite_x" }, { "sheet_list~2", 0, "is sheet_list" } })
end

function tests.test_columns_beyond_the_limit_are_noted()
  local columns, row = {}, {}
  for i = 1, 2003 do columns[i], row[i] = "c" .. i, i end
  assert(sheets.write_sqlite(path, { { name = "wide", columns = columns, rows = { row } } }))
  luaunit.assertEquals(query "SELECT c2000 FROM wide", { { 2000 } })
  luaunit.assertEquals(query "SELECT note FROM sheet_list",
    { { "the last 3 columns are left out: a table has 2000; the CSV is whole" } })
end

function tests.test_rows_may_come_one_after_the_other()
  local function rows()
    local i = 0
    return function()
      i = i + 1
      if i <= 2500 then return { i, i == 2500 and 0.5 or nil } end
    end
  end
  assert(sheets.write_sqlite(path, { { name = "stream", columns = { "i", "x" }, rows = rows } }))
  luaunit.assertEquals(query "SELECT count(*), sum(i), sum(x) FROM stream",
    { { 2500, 2500 * 2501 // 2, 0.5 } })
end

function tests.test_units_are_those_of_the_sheet_or_of_the_title()
  assert(sheets.write_sqlite(path, { { name = "units", rows = {}, units = { time_ms = "s" },
    columns = { "time_ms", "x_us", "busy percent", "bus bw (GB/s)_mean", "count", "rank_3_dur" } } }))
  luaunit.assertEquals(query 'SELECT unit FROM column_list ORDER BY position', { { "s" }, { "us" }, { "%" },
    { "GiB/s" }, { "NULL" }, { "us" } })
end

function tests.test_a_broken_sheet_leaves_the_old_file()
  assert(file.write(path, "old"))
  local broken = { name = "a", columns = { "a" }, rows = function() return function() error "broke" end end }
  luaunit.assertErrorMsgContains("broke", sheets.write_sqlite, path, { broken })
  local written, message = sheets.write_sqlite(path, { { name = "a", columns = { "a" }, rows = {},
    views = { { name = "v", sql = "SELEC" } } } })
  luaunit.assertNil(written)
  luaunit.assertStrContains(message, "syntax error")
  luaunit.assertEquals(file.read(path), "old")
end

return require "suites" { { "sheet_databases", tests } }
