-- sheets.lua: sheets as CSV and, with libxlsxwriter, as workbooks. workbooks_open_elsewhere.sh reads
-- workbooks with another program.
local file = require "core.file"
local luaunit = require "luaunit"
local sheets = require "pages.sheets"

local folder = os.getenv "WORK" -- of the test's own
assert(file.make_folder(folder))
local tests = {}

local function sheet(columns, ...) return { name = "numbers", columns = columns, rows = { ... } } end

function tests.test_csv_quotes_fields_that_need_it()
  local csv = sheets.csv(sheet({ "a", "b" }, { "x,y", 'say "no"' }, { "two\nlines", "('a', 1)" },
    { "plain", "" }))
  luaunit.assertEquals(csv, 'a,b\n"x,y","say ""no"""\n"two\nlines","(\'a\', 1)"\nplain,\n')
end

function tests.test_csv_has_as_many_cells_in_every_line()
  luaunit.assertEquals(sheets.csv(sheet({ "a", "b", "c" }, {}, { nil, nil, 3 }, { true, nil, false })),
    "a,b,c\n,,\n,,3\nTrue,,False\n")
end

function tests.test_an_empty_cell_alone_is_still_a_row()
  luaunit.assertEquals(sheets.csv(sheet({ "a" }, {}, { 1 })), 'a\n""\n1\n')
end

function tests.test_numbers_are_as_short_as_reads_back_the_same()
  for text, value in pairs {
    ["0.1"] = 0.1, ["0.30000000000000004"] = 0.1 + 0.2, ["1.0"] = 1.0, ["1"] = 1, ["-0.0"] = -0.0,
    ["1e+16"] = 1e16, ["1234567890123456.8"] = 1234567890123456.75, ["9.9e-05"] = 9.9e-5, ["0.0001"] = 1e-4,
    ["1.7976931348623157e+308"] = 0x1.fffffffffffffp1023, ["5e-324"] = 0x1p-1074,
    ["9223372036854775807"] = math.maxinteger, ["inf"] = math.huge, ["-inf"] = -math.huge,
  } do
    luaunit.assertEquals(sheets.number(value), text)
    if value == value and value ~= math.huge and value ~= -math.huge then
      luaunit.assertEquals(tonumber(text), value)
    end
  end
  luaunit.assertEquals(sheets.number(0 / 0), "nan")
end

function tests.test_rows_may_come_one_after_the_other()
  local function rows()
    local i = 0
    return function()
      i = i + 1
      if i <= 2 then return { i } end
    end
  end
  local stream = { name = "stream", columns = { "i" }, rows = rows }
  luaunit.assertEquals(sheets.csv(stream), "i\n1\n2\n")
  luaunit.assertEquals(sheets.csv(stream), "i\n1\n2\n")
end

function tests.test_a_value_that_is_no_cell_is_refused()
  luaunit.assertErrorMsgContains("neither text", sheets.csv, sheet({ "a" }, { {} }))
  luaunit.assertErrorMsgContains("broke", sheets.csv, { name = "a", columns = { "a" },
    rows = function() return function() error "broke" end end })
end

function tests.test_a_folder_is_written_whole_or_not_at_all()
  luaunit.assertTrue(sheets.write_folder(folder .. "/csv", { sheet({ "a" }, { 1 }) }))
  luaunit.assertEquals(file.read(folder .. "/csv/numbers.csv"), "a\n1\n")
  local second = { name = "x" .. ("y"):rep(300), columns = { "a" }, rows = {} } -- too long for a file
  local written, message = sheets.write_folder(folder .. "/csv", { sheet({ "a" }, { 2 }), second })
  luaunit.assertNil(written)
  luaunit.assertStrContains(message, "cannot be written")
  luaunit.assertEquals(file.read(folder .. "/csv/numbers.csv"), "a\n1\n")
end

function tests.test_sheets_of_an_earlier_report_are_removed()
  local report, other = folder .. "/report_csvs", folder .. "/mine"
  for _, place in ipairs { report, other } do
    file.make_folder(place)
    file.write(place .. "/incomplete.csv", "what\nold\n")
    file.write(place .. "/notes.txt", "mine")
    luaunit.assertTrue(sheets.write_folder(place, { sheet({ "a" }, { 1 }) }))
    luaunit.assertTrue(file.exists(place .. "/numbers.csv"))
    luaunit.assertTrue(file.exists(place .. "/notes.txt"))
  end
  luaunit.assertFalse(file.exists(report .. "/incomplete.csv"))
  luaunit.assertTrue(file.exists(other .. "/incomplete.csv"))
end

function tests.test_names_of_sheets_stay_apart()
  local taken = {}
  local first = sheets.short_name("unified_perf_summary_only_baseline_512thread", taken)
  local second = sheets.short_name("unified_perf_summary_only_baseline_512thread", taken)
  luaunit.assertEquals(#first, 31)
  luaunit.assertEquals(#second, 31)
  luaunit.assertNotEquals(first, second)
  luaunit.assertEquals(sheets.short_name("GEMM", taken), "GEMM")
  luaunit.assertEquals(sheets.short_name("gemm", taken), "gemm~2")
  luaunit.assertEquals(sheets.short_name("a/b[c]:*?\\", taken), "a_b_c_____")
  luaunit.assertNotEquals(sheets.short_name("History", taken):lower(), "history")
  luaunit.assertEquals(utf8.len(sheets.short_name(("µ"):rep(40), taken)), 31)
end

function tests.test_the_same_sheets_give_the_same_workbook()
  if not sheets.has_xlsx() then luaunit.skip("no libxlsxwriter") end
  local texts = {}
  for i = 1, 2 do
    local path = ("%s/same%d.xlsx"):format(folder, i)
    luaunit.assertEquals(sheets.write_xlsx(path, { sheet({ "a" }, { 1.5 }, { "x" }) }), {})
    texts[i] = file.read(path)
  end
  luaunit.assertTrue(texts[1] == texts[2])
end

function tests.test_a_failing_workbook_leaves_the_old_one()
  if not sheets.has_xlsx() then luaunit.skip("no libxlsxwriter") end
  local path = folder .. "/books/book.xlsx"
  file.make_folder(folder .. "/books")
  file.write(path, "before")
  luaunit.assertErrorMsgContains("a cell is a table", sheets.write_xlsx, path,
    { sheet({ "a" }, { 1 }, { {} }) })
  luaunit.assertEquals(file.read(path), "before")
  luaunit.assertEquals(#file.list(folder .. "/books"), 1)
  local written, message = sheets.write_xlsx(folder .. "/nowhere/book.xlsx", { sheet({ "a" }) })
  luaunit.assertNil(written)
  luaunit.assertStrContains(message, "nowhere/book.xlsx: cannot be written")
end

return require "suites" { { "sheets", tests } }
