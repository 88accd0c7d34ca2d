#!/bin/sh
# A candidate that fails in the group, after it has passed its trial: the group is killed, that launch's
# samples are dropped, and it starts again without it; all others are measured as often as was asked for.
. "$(dirname "$0")/lib.sh"

# A launcher that notes what it starts; with IN_GROUP, HANGS or CRASHES, bad_start does so there, and not in
# the trial.
launcher <<'END'
case " $* " in
*" --pass "*) echo group >>"$LAUNCHES"; [ -z "${IN_GROUP:-}" ] || export "BAD_START_$IN_GROUP=1" ;;
*) echo trial >>"$LAUNCHES" ;;
esac
END
LAUNCHES=$WORK/launches
export LAUNCHES

# later FAULT TIMEOUT: two launches, of which the first is lost.
samples=120
later() {
    rm -f "$LAUNCHES"
    tune --op allreduce,allgather --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_$1.so" --launches 2 \
        --fresh --strategies MPI,GOOD,FAULTY --timeout "$2" --launcher "$WORK/launcher {ranks}" --json
    [ "$status" = 0 ] || fail "$1 ended with $status: $(cat "$WORK/err")"
}

# launched WORDS: what was started, in this order.
launched() {
    [ "$(tr '\n' ' ' <"$LAUNCHES")" = "$1" ] || fail "launches: $(cat "$LAUNCHES")"
}

# All candidates with a time, as NAME LAUNCHES, one a line.
each() {
    "$GENTABLES" lua "$(dirname "$0")/results.lua" "$WORK/out"
}

for fault in "later_crash 10 crashed" "later_hang 10 did.not.come.back.in.time" \
    "later_late 10 writes.after.it.has.returned" \
    "later_stack 10 crashed.(segmentation.fault)" "later_kill 10 was.killed.by.SIGKILL" \
    "later_term 10 was.killed.by.SIGTERM" "later_unhandled 10 was.killed.by.SIGSEGV" \
    "later_exec 10 ended.the.process,.or.let.another.program.take.its.place"; do
    # shellcheck disable=SC2086
    set -- $fault
    later "$1" "$2"
    said err "FAULTY: $3.*; it is left out"
    [ "$(wc -l <"$WORK/err")" = 1 ] || fail "$1: more than a line: $(cat "$WORK/err")"
    launched "trial group group group "
    each >"$WORK/each"
    printf '%s\n' "allgather GOOD 2" "allgather MPI 2" "allreduce GOOD 2" "allreduce MPI 2" >"$WORK/right"
    LC_ALL=C sort "$WORK/each" | cmp -s - "$WORK/right" || fail "$1: $(cat "$WORK/each")"
done

# What comes when all samples are there: of a plan, that candidate's fault; of fini, its plug-in's, which ends
# as long as anything of it is in.
samples=5
for fault in "release_crash 10 crashed" "release_hang 4 did.not.come.back.in.time"; do
    # shellcheck disable=SC2086
    set -- $fault
    later "$1" "$2"
    said err "^gentables: FAULTY: $3.*; it is left out"
    [ "$(wc -l <"$WORK/err")" = 1 ] || fail "$1: more than a line: $(cat "$WORK/err")"
    each | grep -q "allreduce GOOD 2" || fail "$1: no GOOD: $(each)"
done
for fault in "fini_crash 10 crashed" "fini_hang 4 did.not.come.back.in.time" \
    "fini_leave 10 ended.the.process"; do
    # shellcheck disable=SC2086
    set -- $fault
    later "$1" "$2"
    said err "^gentables: FAULTY: $3.*; it is left out"
    said err "^gentables: GOOD: its plug-in: $3.*; it is left out"
    [ "$(wc -l <"$WORK/err")" = 2 ] || fail "$1: more than two lines: $(cat "$WORK/err")"
    printf '%s\n' "allgather MPI 2" "allreduce MPI 2" >"$WORK/right"
    each | LC_ALL=C sort | cmp -s - "$WORK/right" || fail "$1: $(each)"
done
samples=120

# A result that is wrong now and then ends nothing: it has no time, and says so.
later later_wrong 10
[ ! -s "$WORK/err" ] || fail "later_wrong: $(cat "$WORK/err")"
launched "trial group group "
each | grep -q FAULTY && fail "a wrong candidate has a time"
each | grep -q "allreduce GOOD 2" || fail "later_wrong: no GOOD: $(each)"
said out "wrong result in"

# An init that does so takes all that its plug-in has with it, and nobody else.
export IN_GROUP
for fault in "CRASHES crashed" "HANGS did.not.come.back.in.time"; do
    IN_GROUP=${fault% *}
    tune --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_start.so" --fresh --timeout 4 \
        --strategies MPI,GOOD,FAULTY --launcher "$WORK/launcher {ranks}" --json
    [ "$status" = 0 ] || fail "a start that $fault ended with $status: $(cat "$WORK/err")"
    said err "^gentables: GOOD: ${fault#* }.*; it is left out"
    said err "^gentables: FAULTY: .*${fault#* }.*; it is left out"
    [ "$(wc -l <"$WORK/err")" = 2 ] || fail "a start that $fault: more than two lines: $(cat "$WORK/err")"
    [ "$(each)" = "allreduce MPI 1" ] || fail "a start that $fault: $(each)"
done
IN_GROUP=HANGS

# An init that comes back with a state when it is told to is late, and ends that state; it alone is out, for
# the others were told nothing.
tune --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_start_late.so" \
    --plugin "$PLUGINS/chunked.so" --strategies MPI,GOOD,FAULTY,CHUNKED_8192 --fresh --timeout 10 \
    --launcher "$WORK/launcher {ranks}" --json
[ "$status" = 0 ] || fail "a late start ended with $status: $(cat "$WORK/err")"
[ "$(each | LC_ALL=C sort | tr '\n' ' ')" = "allreduce CHUNKED_8192 1 allreduce MPI 1 " ] ||
    fail "a late start: $(each)"
said out "its init failed: did not come back in time"
said err "^gentables: bad, rank 0: fini$"
said err "^gentables: bad, rank 1: fini$"
[ "$(wc -l <"$WORK/err")" = 2 ] || fail "a late start: $(cat "$WORK/err")"
