"""databases.py FOLDER: checks for every NAME.sqlite below it that its tables equal the CSVs in NAME_csvs/ (or
NAME.csv beside it) value by value, that its lists name each table and column, and that its views answer."""
import csv
import math
import os
import sqlite3
import sys

csv.field_size_limit(1 << 30)


def same(cell, text):
    """Whether a value of a table is a cell of a CSV."""
    if cell is None:
        return text in ("", "nan")
    if isinstance(cell, str):
        return cell == text
    if text in ("True", "False"):
        return cell == (text == "True")
    try:
        number = int(text) if isinstance(cell, int) else float(text)
    except ValueError:
        return False
    return cell == number and math.isfinite(cell)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def check_table(database, path, name):
    with open(path, encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    cursor = database.execute("SELECT * FROM " + quoted(name))
    assert [column[0] for column in cursor.description] == head, (path, head)
    rows = cursor.fetchall()
    assert len(rows) == len(lines), (path, len(rows), len(lines))
    for row, line in zip(rows, lines):
        for title, cell, text in zip(head, row, line):
            assert same(cell, text), (path, title, cell, text)
    listed = database.execute("SELECT row_count FROM sheet_list WHERE sheet = ?", (name,)).fetchall()
    assert listed == [(len(lines),)], (path, listed)
    columns = database.execute('SELECT "column" FROM column_list WHERE sheet = ? ORDER BY position', (name,))
    assert [row[0] for row in columns] == head, path
    return len(lines) * len(head)


def check(path):
    base = path[: -len(".sqlite")]
    folder = base + "_csvs"
    if os.path.isdir(folder):
        files = [os.path.join(folder, name) for name in os.listdir(folder)]
    else:
        files = [base + ".csv"]
    database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], path
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    names = {os.path.basename(file)[: -len(".csv")]: file for file in files}
    assert tables - {"sheet_list", "column_list"} == set(names), (path, tables, set(names))
    cells = sum(check_table(database, file, name) for name, file in names.items())
    for (view,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
        assert database.execute("SELECT * FROM " + view).fetchall(), (path, view)
    return cells


found, cells = 0, 0
for root, _, names in os.walk(sys.argv[1]):
    for name in names:
        if name.endswith(".sqlite"):
            found, cells = found + 1, cells + check(os.path.join(root, name))
print("%d databases, %d cells" % (found, cells))
assert found > 0
