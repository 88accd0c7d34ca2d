#!/bin/sh
# Ranks with different candidates stop before anything is measured, and the message names the rank that
# differs. A cache belongs to one process and is complete, or rejected; rows of several launches are read
# again.
. "$(dirname "$0")/../../unit/tune/lib.sh"

printf 'pass samples=2 warm_up=0 seed=1 sync=pass\nmeasure op=allreduce dtype=float32 count=256\n' \
    >"$WORK/input"
. "$SOURCE/tests/mpirun.sh"
status=0
$mpirun -n 1 "$BENCH" \
    --pass "$WORK/input" : -n 1 "$BENCH" \
    --pass "$WORK/input" --plugin "$PLUGINS/chunked.so" >"$WORK/out" 2>"$WORK/err" || status=$?
[ "$status" != 0 ] || fail "ranks that differ are measured"
printed err "rank 1"
grep -q "^row" "$WORK/out" && fail "something was measured"

echo nonsense >"$WORK/nonsense"
tune --op allgather --sizes 1K --cache "$WORK/nonsense"
[ "$status" = 2 ] || fail "a broken cache ended with $status"
printed err "is no cache of this gentables"

tuned --op allgather,alltoallv --splits 3:1 --sizes 2K:8K:4 --launches 2 --out "$WORK/rows"
rows=$WORK/rows/benchmark.tp2.host.csv
head -1 "$rows" | grep -q ',launches (us),bits,splits$' || fail "the header lacks splits: $(head -1 "$rows")"
grep -q '^2,bfloat16,2048,,,DIRECT,NONE,allgather,.*,$' "$rows" || fail "no size alone: $(cat "$rows")"
grep -q ',DIRECT,NONE,alltoallv,.*,3:1$' "$rows" || fail "no alltoallv: $(cat "$rows")"
"$GENTABLES" merge "$rows" \
    --out "$WORK/again.csv" >/dev/null 2>"$WORK/err" || fail "merge: $(cat "$WORK/err")"
