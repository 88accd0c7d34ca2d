#!/bin/sh
# Runs into one folder at the same time: choices and rows of both stay, and no rows of a sweep or of another
# run are overwritten. The launcher of the first run waits for all of the second run.
. "$(dirname "$0")/lib.sh"

into() {
    tune --dtype float32 --timeout 300 --out "$WORK/tuned" "$@"
}
# The launcher runs $WORK/second once, between what the first run reads and what it writes.
launcher <<'END_OF_LAUNCHER'
[ -e "$WORK/second.done" ] || {
    touch "$WORK/second.done"
    sh "$WORK/second" >"$WORK/second.out" 2>&1
    echo $? >"$WORK/second.status"
}
END_OF_LAUNCHER
export WORK GENTABLES BENCH
# second CODE COMMAND: what runs meanwhile, and its exit code; `ended` checks the code.
second() {
    wanted=$1
    shift
    echo "$*" >"$WORK/second"
    rm -f "$WORK/second.done"
}
ended() {
    [ "$(cat "$WORK/second.status")" = "$wanted" ] || fail "the second run: $(cat "$WORK/second.out")"
}

broadcast='"$GENTABLES" tune --bench "$BENCH" --samples 5 --warm-up 1 --launches 2 --dtype float32'
broadcast="$broadcast --timeout 300 --op broadcast --sizes 1K --strategies MPI"
second 0 "$broadcast" --out '"$WORK/tuned"'
into --op allgather --sizes 1K --strategies MPI --launches 2 --launcher "$WORK/launcher {ranks}"
[ "$status" = 0 ] || fail "the first run: $(cat "$WORK/err")"
ended
for op in allgather broadcast; do
    grep -q "\"$op\"" "$WORK/tuned/tuned.json" || fail "tuned.json has no $op"
    grep -q "\"$op\"" "$WORK/tuned/gentables_tuned.py" || fail "gentables_tuned.py has no $op"
    grep -q ",$op," "$WORK/tuned/benchmark.tp2.host.csv" || fail "the rows have no $op"
done
[ ! -e "$WORK/tuned/.lock" ] || fail "the lock is left"

# A sweep that is measuring refuses rows of others ...
cat >"$WORK/spec.lua" <<'END_OF_SPEC'
return { arch = "host", tp = { 2 }, dtypes = { "float32" }, fusions = { "NONE" }, hidden_sizes = { 128 },
  num_tokens = { 1 }, strategies = { "MPI" }, limits = { launches = 1, min_samples = 3, max_samples = 5 } }
END_OF_SPEC
echo "$broadcast --out $WORK/swept" >"$WORK/tune_there"
second 1 ". $WORK/tune_there"
gentables sweep "$WORK/spec.lua" --bench "$BENCH" --out "$WORK/swept" \
    --launcher "$WORK/launcher {ranks}"
ended
printed second.out "a sweep is measuring these rows; wait"
grep -q ,allreduce, "$WORK/swept/benchmark.tp2.host.csv" || fail "no rows of the sweep"

# ... and replaces none that another program has written since it began.
echo "mkdir -p $WORK/other && echo '{}' >$WORK/other/benchmark.tp2.host.json" >"$WORK/write_there"
second 0 ". $WORK/write_there"
status=0
"$GENTABLES" sweep "$WORK/spec.lua" --bench "$BENCH" --out "$WORK/other" --launcher "$WORK/launcher {ranks}" \
    >"$WORK/out" 2>"$WORK/err" || status=$?
ended
[ "$status" = 1 ] || fail "the sweep ended with $status: $(cat "$WORK/err")"
printed err "benchmark.tp2.host.json: another gentables has written it since this sweep began; the journal"
[ "$(cat "$WORK/other/benchmark.tp2.host.json")" = "{}" ] || fail "a file of another program was replaced"
[ -s "$WORK/other/benchmark.tp2.host.csv.part" ] || fail "no journal"
