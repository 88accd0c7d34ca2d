#!/bin/sh
# Another program reads a workbook of sheets.lua: values, frozen titles, filters, formats, colours, and a note
# of data that did not fit.
. "$SOURCE/tests/lib.sh"

for python in python3 /usr/bin/python3 none; do
    if "$python" -c 'import openpyxl' 2>/dev/null; then break; fi
done
[ "$python" != none ] || skip "no openpyxl for python3"

cat >"$WORK/write.lua" <<'LUA'
local sheets = require "pages.sheets"
if not sheets.has_xlsx() then os.exit(77) end
local function many() -- more rows than a sheet has
  local i, row = 0, {}
  return function()
    i = i + 1
    row[1] = i
    if i <= 1048580 then return row end
  end
end
local function write(path, list)
  for _, note in ipairs(assert(sheets.write_xlsx(path, list))) do print(note[1] .. ": " .. note[2]) end
end
write(arg[1], {
  { name = "values", columns = { "text", "time (µs)", "truth", "odd", "share" },
    rows = { { "=1+1 <&>\"'", 1.5, true, 0 / 0, 0.25 }, { "µ\1\xff", 1 / 3, false, math.huge, 0.5 },
      { nil, 3, nil, 9007199254740993, 1 } },
    formats = { share = "0.0%" },
    colours = { share = { 0xFFFFFF, 0xFF0000 }, [2] = { 0xFF, 0xFF00, 0xFF0000 } } },
  { name = "a_name_that_is_too_long_for_a_sheet_of_a_workbook", columns = { "a" },
    rows = { { ("x"):rep(40000) }, { ("\u{1F600}"):rep(20000) } } },
  { name = "empty", columns = { "a", "b" }, rows = {} },
})
write(arg[2], { { name = "many", columns = { "i" }, rows = many } })
LUA
code=0
"$GENTABLES" lua "$WORK/write.lua" "$WORK/book.xlsx" "$WORK/many.xlsx" >"$stdout" 2>"$stderr" || code=$?
[ "$code" != 77 ] || skip "no libxlsxwriter"
[ "$code" = 0 ] || die "the workbook is not written"
grep -q '^many: the last 5 rows are left out' "$stdout" || die "no message about omitted rows"
grep -q ': 2 cells are cut' "$stdout" || die "no message about cut cells"
has 'is a_name_that_is_too_long_for_a_sheet_of_a_workbook;' "$stdout"

"$python" - "$WORK/book.xlsx" "$WORK/many.xlsx" <<'PYTHON' || die "another program reads something else"
import sys
import zipfile
from xml.etree import ElementTree

import openpyxl

path = sys.argv[1]
with zipfile.ZipFile(path) as parts:
    assert parts.testzip() is None
    for name in parts.namelist():  # well formed, by a strict reader
        ElementTree.fromstring(parts.read(name))
with zipfile.ZipFile(sys.argv[2]) as parts:
    many = parts.read("xl/worksheets/sheet1.xml")
assert b'<c r="A1048576"><v>1048575</v></c>' in many and b"1048577" not in many

book = openpyxl.load_workbook(path)
names = book.sheetnames
assert names[0] == "values" and names[2:] == ["empty", "notes"] and len(names[1]) == 31, names
sheet = book["values"]
rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
assert rows[0] == ["text", "time (µs)", "truth", "odd", "share"], rows[0]
assert rows[1] == ["=1+1 <&>\"'", 1.5, True, "nan", 0.25], rows[1]
assert rows[2][0].startswith("µ") and "\ufffd" in rows[2][0], rows[2]
assert abs(rows[2][1] - 1 / 3) < 1e-15 and rows[2][2:] == [False, "inf", 0.5], rows[2]
assert rows[3] == [None, 3, None, "9007199254740993", 1], rows[3]
assert sheet["A2"].data_type != "f"
assert sheet.freeze_panes == "A2" and sheet.auto_filter.ref == "A1:E4"
assert sheet["A1"].font.b and sheet["E2"].number_format == "0.0%" and sheet["B2"].number_format == "#,##0.000"
scales = {str(area.sqref): len(rule.colorScale.color)
          for area in sheet.conditional_formatting for rule in area.rules}
assert scales == {"E2:E4": 2, "B2:B4": 3}, scales
cells = [cell.value for cell in book[names[1]]["A"]]
assert len(cells[1]) == 32767 and len(cells[2]) == 32767 // 2
assert book[names[1]].column_dimensions["A"].width < 80
assert [cell.value for cell in book["empty"][1]] == ["a", "b"]
PYTHON
