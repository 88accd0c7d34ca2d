#!/bin/sh
# Unreadable profiler files end in one line that names the file, exit code 2; known mistakes of profilers are
# read.
. "$SOURCE/tests/unit/metric/lib.sh"

skip_without_traces
python3 "$SOURCE/tests/unit/profile/make_trace.py" "$WORK"

# refuses PATTERN FILE: expects one line, and nothing on stdout.
refuses() {
    ends_in_one_line 2 "$2: .*$1|$2: $1" timeout 200 "$GENTABLES" metric kernel_time --trace "$WORK/$2"
    [ ! -s "$stdout" ] || die "a number was printed"
}

# is VALUE FILE
is() {
    succeeds metric kernel_time --trace "$WORK/$2"
    [ "$(cat "$stdout")" = "$1" ] || die "kernel_time of $2 is not $1"
}

# Cut off, at any byte.
size=$(wc -c <"$WORK/rank0.json")
for part in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
    head -c $((size * part / 20)) "$WORK/rank0.json" >"$WORK/cut.json"
    refuses 'byte [0-9]+: the text ends here, ' cut.json
done
head -c $((size - 1)) "$WORK/rank0.json" >"$WORK/cut.json"
refuses 'byte [0-9]+: the text ends here, ' cut.json
size=$(wc -c <"$WORK/rank0.json.gz")
for part in 3 50 200 $((size - 9)) $((size - 1)); do
    head -c "$part" "$WORK/rank0.json.gz" >"$WORK/cut.json.gz"
    refuses 'the gzip data are cut off' cut.json.gz
done
cp "$WORK/rank0.json.gz" "$WORK/damaged.json.gz"
printf 'XXXX' | dd of="$WORK/damaged.json.gz" bs=1 seek=200 conv=notrunc 2>/dev/null
refuses 'gzip data are damaged' damaged.json.gz

# No trace, or an empty one.
: >"$WORK/empty.json"
refuses 'byte 0: the text ends here' empty.json
echo 'no JSON' >"$WORK/text.json"
refuses 'not a profiler trace' text.json
echo '{"a": [1, 2]}' >"$WORK/other.json"
refuses 'not a profiler trace: it has no traceEvents' other.json
echo '"a text"' >"$WORK/scalar.json"
refuses 'not a profiler trace' scalar.json
for events in 5 '{}' '[1]' null; do
    echo "{\"traceEvents\": $events}" >"$WORK/type.json"
    refuses 'not a profiler trace: traceEvents is not a list of objects' type.json
done
echo '{"traceEvents": []}' >"$WORK/none.json"
refuses 'no GPU events' none.json
event='"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2'
echo "{\"traceEvents\": [{$event}]}" >"$WORK/cpu.json"
refuses 'no GPU events' cpu.json
echo '{"traceEvents": []} {"traceEvents": []}' >"$WORK/two.json"
refuses 'byte 20: not JSON: the root ended before this' two.json
refuses 'is not a file' .
refuses 'cannot be read: No such file' absent.json
printf '\050\265\057\375rest' >"$WORK/trace.json.zst"
refuses 'zstd' trace.json.zst
printf 'Quad' >"$WORK/run.nsys-rep"
refuses 'nsys export --type sqlite' run.nsys-rep

# SQLite.
python3 - "$WORK" <<'END'
import sqlite3, sys
def make(name, script):
    out = sqlite3.connect(sys.argv[1] + "/" + name)
    out.executescript(script)
    out.commit()
make("no_table.sqlite", "CREATE TABLE StringIds (id INTEGER, value TEXT)")
kernels = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, name TEXT);"
make("no_rows.sqlite", kernels)
make("no_columns.sqlite", "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)")
make("graphs.sqlite", kernels + "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER)")
make("bare.sqlite", kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 3000000, 0, 'k')")
END
refuses 'no kernels: no table CUPTI_ACTIVITY_KIND_KERNEL' no_table.sqlite
refuses 'no GPU events' no_rows.sqlite
refuses 'CUPTI_ACTIVITY_KIND_KERNEL has no name, start or end' no_columns.sqlite
refuses 'CUDA graphs without their kernels' graphs.sqlite
head -c 5000 "$WORK/rank0.sqlite" >"$WORK/cut.sqlite"
refuses '(malformed|not a database|disk image)' cut.sqlite
is 3.0 bare.sqlite

# One bad file among good ones is named.
ends_with 2 "$GENTABLES" metric kernel_time --trace "$WORK/rank0.json" --trace "$WORK/cut.json"
one_line 'cut.json: byte [0-9]+: the text ends here'

# Bytes that JSON forbids, keys in another order, a bare list, events without usable times.
python3 - "$WORK" <<'END'
import sys
def write(name, data):
    with open(sys.argv[1] + "/" + name, "wb") as out:
        out.write(data)
write("bytes.json", b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a\x01\xff\tb", "ts": 1,'
      b' "dur": 1500}]}')
write("order.json", b'{"traceEvents": [{"args": {"device": 1, "x": {"y": [1, {}]}}, "tid": 7, "dur": 2000.0,'
      b' "pid": "GPU", "ts": 1, "name": "k", "cat": "kernel", "ph": "X"}], "z": {"traceEvents": 1}}')
write("text.json", b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "1", "dur": "1500"}]}')
write("list.json", b'[{"ph": "X", "cat": "kernel", "name": "k", "ts": 1e3, "dur": 1E3}]')
write("times.json", b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1000},'
      b'{"ph": "X", "cat": "kernel", "name": "k", "ts": 2, "dur": "twelve"},'
      b'{"ph": "X", "cat": "kernel", "name": "k", "ts": 2, "dur": -1},'
      b'{"ph": "X", "cat": "kernel", "name": "k", "ts": 2, "dur": 1e300},'
      b'{"ph": "X", "cat": "kernel", "name": "k", "dur": 4},'
      b'{"ph": "X", "cat": "kernel", "name": 7, "ts": 3, "dur": 4}]}')
END
is 1.5 bytes.json
is 2.0 order.json
is 1.0 list.json
is 1.5 text.json
if command -v zstd >/dev/null; then
    zstd -qf "$WORK/list.json" -o "$WORK/list.json.zst"
    is 1.0 list.json.zst
fi
is 1.0 times.json
[ "$(wc -l <"$stderr")" = 2 ] || die "not two lines on stderr"
grep -q 'times.json: 4 events without usable times are left out' "$stderr" || die "left out in silence"
grep -q 'times.json: 1 durations below zero are taken as zero' "$stderr" || die "mended in silence"

# A view without an end in place of a table.
sqlite3 "$WORK/view.sqlite" <<'END'
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
  SELECT i AS start, i + 5 AS "end", 1 AS demangledName, 1 AS shortName, 0 AS deviceId, 7 AS streamId FROM n;
END
refuses 'a query does not end: the file has a view without an end' view.sqlite
