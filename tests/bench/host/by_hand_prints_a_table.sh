#!/bin/sh
# By hand: a table with size, count, type, time, algbw, busbw and #wrong; invalid options end with code 2.
. "$(dirname "$0")/lib.sh"

run 2 -b 1K -e 4K -f 4 -d float32 --samples 3 --budget 0.01 --strategies MPI,ONESHOT >"$WORK/out"
printed out "^#.* size .*count .*type .*redop .*time .*algbw .*busbw .*#wrong"
awk '!/^#/ { rows++; if (NF != 9 || $1 != 4 * $2 || $3 != "float32" || $6 <= 0 || $9 != 0) bad = 1 }
     END { exit rows != 4 || bad }' "$WORK/out" || fail "rows: $(cat "$WORK/out")"
"$BENCH" --help | grep -q "example:" || fail "no example in --help"

# Like nccl-tests: calls in a row, sizes by steps, JSON, and the lines around the table.
run 2 -b 1K -e 3K -i 1K -n 20 -w 2 -d float16 --strategies MPI,TWOSHOT -J "$WORK/out.json" >"$WORK/out"
printed out "warmup iters: 2 iters: 20 .*validation: 1 graph: 0"
printed out "^#  Rank  1 Pid .* device  1 "
printed out "^# Out of bounds values : 0 OK"
awk '!/^#/ { rows++; if (NF != 9 || $1 != 1024 * int((rows + 1) / 2) || $6 <= 0 || $9 != 0) bad = 1 }
     END { exit rows != 6 || bad }' "$WORK/out" || fail "rows: $(cat "$WORK/out")"
run 2 -b 1K -e 1K -c 0 --strategies MPI >"$WORK/unchecked"
awk '!/^#/ && $9 == "N/A" { found = 1 } END { exit !found }' "$WORK/unchecked" ||
    fail "-c 0: errors are counted"
run 2 -b 1K -e 1K -n 5 --strategies MPICH_RECURSIVE_DOUBLING >"$WORK/none"
printed none "MPICH_RECURSIVE_DOUBLING"
printed out.json '"--strategies","MPI,TWOSHOT"'
# The printed table and the JSON are read back.
"$GENTABLES" import "$WORK/out" --arch host --out "$WORK/rows" >"$WORK/said"
"$GENTABLES" import "$WORK/out.json" --arch host --out "$WORK/rows_json" >"$WORK/said"
for rows in rows rows_json; do
    cut -d, -f1-6 "$WORK/$rows/benchmark.tp2.host.csv" >"$WORK/$rows.keys"
done
cmp "$WORK/rows.keys" "$WORK/rows_json.keys" || fail "the table and the JSON differ"
[ "$(grep -c "^2,float16,.*,TWOSHOT" "$WORK/rows.keys")" = 3 ] || fail "not read back"

# One byte is less than an element: one element is sent.
run 2 -b 1 -e 1 -d float32 --samples 1 --strategies ONESHOT >"$WORK/out" ||
    fail "a message of one byte is rejected"
awk '!/^#/ { rows++; if (NF != 9 || $1 != 4 || $2 != 1 || $5 != "ONESHOT" || $6 <= 0 || $9 != "0") bad = 1 }
     END { exit rows != 1 || bad }' "$WORK/out" || fail "one byte: $(cat "$WORK/out")"
for wrong in "--samples 4G" "-e 99999999999G" "-b 0" "-b 12Q" "-f 1" "-d int8" "--fusion X" "--strategies X" \
    "--budget 0" "-G 1" "-n 0" "-w -1" "-c 2" "-i 0" "--timeout x" "--nonsense" "word"; do
    status=0
    # shellcheck disable=SC2086
    "$BENCH" $wrong >"$WORK/out" 2>"$WORK/err" || status=$?
    [ "$status" = 2 ] || fail "'$wrong' ended with $status"
    printed err "^gentables-bench: "
done
