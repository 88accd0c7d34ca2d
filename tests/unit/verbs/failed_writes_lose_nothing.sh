#!/bin/sh
# A full disk and a read-only folder end in one line, exit code 1, with earlier files unchanged and nothing
# half-written.
. "$SOURCE/tests/lib.sh"

out=$WORK/out
cp -r "$SOURCE/tests/golden/sm90" "$WORK/data"
# One cell, with rows: no line about cells without rows.
grep -E '^(world_size|2,bfloat16,2048,1,1024,.*,NONE,allreduce)' "$WORK/data/benchmark.tp2.sm90.csv" \
    >"$WORK/rows"
rm "$WORK"/data/benchmark.tp*.csv
mv "$WORK/rows" "$WORK/data/benchmark.tp2.sm90.csv"
mkdir "$out"
echo old >"$out/allreduce_table.h"

# A limit on the size of files acts like a full disk: write() fails half-way. 1 is 512 bytes.
ends_with 1 sh -c 'ulimit -f 1; exec "$0" generate --data-dir "$1" --arch sm90 --out "$2"' \
    "$GENTABLES" "$WORK/data" "$out" </dev/null
one_line 'generated_lookup_table.cpp: cannot be written: File too large; the old file is unchanged'
[ "$(ls -A "$out")" = allreduce_table.h ] || die "left behind: $(ls -A "$out")"
[ "$(cat "$out/allreduce_table.h")" = old ] || die "what was there is gone"

# The second of two files does not fit: the first is not written either.
ends_with 1 sh -c 'ulimit -f 8; exec "$0" generate "$@"' "$GENTABLES" \
    --data-dir "$WORK/data" --arch sm90 --out "$out" --formats table,c </dev/null
one_line 'allreduce_table.h: cannot be written: File too large'
[ "$(ls -A "$out")" = allreduce_table.h ] || die "left behind: $(ls -A "$out")"

# The same for a merged trace, and for a workbook that needs more open files than permitted: no CSV is written
# beside it, and its library prints nothing.
for i in 1 2 3 4; do
    cat <<END
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": $i, "dur": 9, "args":
 {"External id": $i, "Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": $i, "dur": 1,
 "args": {"correlation": $i, "External id": $i}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10$i, "dur": 1,
 "args": {"correlation": $i, "External id": $i, "device": 0, "stream": 7}},
END
done >"$WORK/events"
{ echo '{"traceEvents": [' && cat "$WORK/events" && echo '{}]}'; } >"$WORK/rank0.json"
ends_with 1 sh -c 'ulimit -f 1; exec "$0" trace merge "$@"' "$GENTABLES" "$WORK/rank0.json" -o "$WORK/merged"
one_line 'merged: cannot be written: File too large'
[ ! -e "$WORK/merged" ] || die "a trace that is cut off"
ends_with 1 sh -c 'ulimit -n 12; exec "$0" trace report "$@"' "$GENTABLES" "$WORK/rank0.json" \
    --out "$WORK/reports"
if ! grep -q 'was built without libxlsxwriter' "$stderr"; then
    one_line 'rank0.xlsx: cannot be written: Too many open files'
    [ -z "$(find "$WORK/reports" -type f)" ] || die "left behind: $(find "$WORK/reports" -type f)"
fi

# Output that cannot be written is a failure, too.
code=0
"$GENTABLES" generate --data-dir "$WORK/data" --arch sm90 --out "$WORK/unsaid" \
    >/dev/full 2>"$stderr" || code=$?
[ "$code" = 1 ] || die "exit code $code, not 1, with standard output full"
one_line 'standard output cannot be written'
"$GENTABLES" metric --list 2>"$stderr" | head -n 1 >"$stdout"
[ ! -s "$stderr" ] || die "an error about a reader that stopped reading"

skip_unless_unprivileged_reads "$WORK/data/benchmark.tp2.sm90.csv"
mkdir "$WORK/readonly"
chmod 555 "$out" "$WORK/readonly"
ends_with 1 unprivileged "$GENTABLES" generate --data-dir "$WORK/data" --arch sm90 --out "$out"
chmod 755 "$out"
one_line 'cannot be written: Permission denied'
ends_with 1 unprivileged "$GENTABLES" generate --data-dir "$WORK/data" --arch sm90 --out "$WORK/readonly/new"
one_line 'readonly/new: the folder cannot be made: Permission denied'
[ "$(ls -A "$out")" = allreduce_table.h ] || die "left behind: $(ls -A "$out")"
[ "$(cat "$out/allreduce_table.h")" = old ] || die "what was there is gone"
