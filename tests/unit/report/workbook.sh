#!/bin/sh
# Another program reads the workbook of rows, table and summary: frozen titles, filters, number formats,
# colours, and the numbers of table.csv.
. "$SOURCE/tests/lib.sh"

for python in python3 /usr/bin/python3 none; do
    if "$python" -c 'import openpyxl' 2>/dev/null; then break; fi
done
[ "$python" != none ] || skip "no openpyxl for python3"
code=0
"$GENTABLES" report --data-dir "$SOURCE/tables/host" --arch host --out "$WORK" --xlsx \
    >"$stdout" 2>"$stderr" || code=$?
if grep -q 'was built without libxlsxwriter' "$stderr"; then skip "no libxlsxwriter"; fi
[ "$code" = 0 ] || die "the workbook is not written"

"$python" - "$WORK/report.host.xlsx" "$SOURCE/tables/host" <<'PYTHON' || die "openpyxl reads other cells"
import csv
import glob
import sys

import openpyxl

book, folder = openpyxl.load_workbook(sys.argv[1]), sys.argv[2]
assert book.sheetnames == ["summary", "table", "rows", "numerics", "without time"], book.sheetnames
for sheet in book:
    assert sheet.freeze_panes == "A2" and sheet.auto_filter.ref == sheet.dimensions, sheet.title


def records(sheet):
    lines = list(sheet.iter_rows(values_only=True))
    return [dict(zip(lines[0], line)) for line in lines[1:]]


# The table equals table.csv, which has four decimals.
wanted = list(csv.DictReader(open(folder + "/table.csv")))
table = records(book["table"])
keys = {"arch": "arch", "TP": "world_size", "fusion": "fusion", "dtype": "dtype", "op": "op", "mode": "mode",
        "hidden size": "hidden_size", "tokens": "num_tokens"}
values = {"time (µs)": "time (us)", "margin": "margin", "confidence": "confidence",
          "expected loss": "expected loss", "worst loss (µs)": "worst loss (us)"}
assert len(table) == len(wanted)
for got, line in zip(table, wanted):
    assert [str(got[name]) for name in keys] == [line[name] for name in keys.values()]
    assert got["strategy"] == line["strategy"]
    assert (got["state"] or "") == line["state"], (got, line)
    for a, b in values.items():
        assert line[b] == "" and got[a] is None or abs(got[a] - float(line[b])) < 5.1e-5, (got, line)
assert any(line["strategy"] == "unmeasured" for line in table)

# The rows are those of the files.
rows = records(book["rows"])
files = [line for path in glob.glob(folder + "/benchmark.*.csv") for line in csv.DictReader(open(path))]
assert len(rows) == len(files)
assert sorted((r["TP"], r["fusion"], r["tokens"], r["hidden size"], r["strategy"], r["time (µs)"],
               r["samples"]) for r in rows) == sorted(
    (int(f["world_size"]), f["fusion"], int(f["num_tokens"]), int(f["hidden_size"]), f["strategy"],
     float(f["time (us)"]), int(f["samples"])) for f in files)

# The summary counts the cells of the table.
assert records(book["summary"])
for line in records(book["summary"]):
    cells = [c for c in table if c["TP"] == line["TP"] and c["fusion"] == line["fusion"]]
    assert line["cells"] == len(cells)
    assert line["unmeasured"] == sum(c["strategy"] == "unmeasured" for c in cells)
    best = sum(c["strategy"] == line["best in most cells"] for c in cells)
    assert abs(line["in how many"] - best / (line["cells"] - line["unmeasured"])) < 1e-12

titles = {c.value: c.column for c in book["table"][1]}
assert book["table"].cell(2, titles["time (µs)"]).number_format == "#,##0.000"
assert book["table"].cell(2, titles["margin"]).number_format == "0.0%"
coloured = {str(area.sqref) for area in book["table"].conditional_formatting}
first = openpyxl.utils.get_column_letter(titles["margin"]) + "2:"
assert any(area.startswith(first) for area in coloured), coloured
PYTHON
