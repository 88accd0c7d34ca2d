#!/bin/sh
# By hand: a table with size, count, type, time, algbw, busbw and #wrong; wrong options end with code 2.
. "$(dirname "$0")/lib.sh"

run 2 -b 1K -e 4K -f 4 -d float32 --samples 3 --budget 0.01 --strategies MPI,ONESHOT >"$WORK/out"
grep -q "^#.* size .*count .*type .*redop .*time .*algbw .*busbw .*#wrong" "$WORK/out" ||
    fail "no head: $(cat "$WORK/out")"
awk '!/^#/ { rows++; if (NF != 9 || $1 != 4 * $2 || $3 != "float32" || $6 <= 0 || $9 != 0) bad = 1 }
     END { exit rows != 4 || bad }' "$WORK/out" || fail "rows: $(cat "$WORK/out")"
"$BENCH" --help | grep -q "example:" || fail "no example in --help"

run 2 -b 1 -e 1 -d float32 --samples 1 --strategies ONESHOT >"$WORK/out" || fail "one byte"
for wrong in "--samples 4G" "-e 99999999999G" "-b 0" "-b 12Q" "-f 1" "-d int8" "--fusion X" "--strategies X" \
    "--budget 0" "--timeout x" "--nonsense" "word"; do
    status=0
    # shellcheck disable=SC2086
    "$BENCH" $wrong >"$WORK/out" 2>"$WORK/err" || status=$?
    [ "$status" = 2 ] || fail "'$wrong' ended with $status"
    [ -s "$WORK/err" ] || fail "'$wrong' said nothing"
done
