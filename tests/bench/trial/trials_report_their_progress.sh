#!/bin/sh
# A trial of many sizes reports its progress, at most once a second, so that its reader does not take it for a
# hanging one. The candidate sleeps for 2 ms after each call; here the trial makes more than 700 calls.
. "$(dirname "$0")/../../unit/tune/lib.sh"

echo "pass samples=2 warm_up=0 seed=1 sync=pass" >"$WORK/input"
count=256
while [ "$count" -le 1536 ]; do
    echo "measure op=allreduce dtype=float32 count=$count strategies=CHUNKED_8192,CHUNKED_65536"
    count=$((count + 256))
done >>"$WORK/input"
. "$SOURCE/tests/mpirun.sh"
$mpirun -n 2 "$BENCH" --trial "$WORK/input" \
    --plugin "$PLUGINS/chunked.so" --timeout 60 >"$WORK/out" 2>"$WORK/err" ||
    fail "a trial: $(cat "$WORK/err")"
printed out "^progress done=[1-9][0-9]*$"
printed out "^trial strategy=CHUNKED_8192 status=passed$"
printed out "^trial strategy=CHUNKED_65536 status=passed$"
case $(tail -n 1 "$WORK/out") in
    trial*) ;;
    *) fail "not the verdicts are last: $(cat "$WORK/out")" ;;
esac
