#!/bin/sh
# A candidate that fails in the group, after it has passed its trial: the group is killed, the samples of that
# launch are dropped, and the group starts again without it; all others are measured as often as requested.
# One fault of each kind is tested twice, the others once; with GENTABLES_NIGHTLY=1 all are tested twice.
. "$(dirname "$0")/../../unit/tune/lib.sh"
hurries

# A launcher that records its commands; with IN_GROUP, HANGS or CRASHES, bad_start fails there, and not in the
# trial.
launcher <<'END'
case " $* " in
*" --pass "*) echo group >>"$LAUNCHES"; [ -z "${IN_GROUP:-}" ] || export "BAD_START_$IN_GROUP=1" ;;
*) echo trial >>"$LAUNCHES" ;;
esac
END
LAUNCHES=$WORK/launches
export LAUNCHES

launches=1
[ "${GENTABLES_NIGHTLY:-}" != 1 ] || launches=2
twice() {
    launches=2
    "$@"
}

# later FAULT [SAMPLES]: one launch more than requested, because the first is lost.
later() {
    samples=${2:-120}
    tuned --op allreduce,allgather --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_$1.so" --fresh --json \
        --launches "$launches" --strategies MPI,GOOD,FAULTY --timeout $timeout \
        --launcher "$WORK/launcher {ranks}"
}

# launched WORDS: expects these commands, in this order.
launched() {
    [ "$(tr '\n' ' ' <"$LAUNCHES")" = "$1" ] || fail "launches: $(cat "$LAUNCHES")"
}

# All candidates with a time, as NAME LAUNCHES, one a line.
each() {
    "$GENTABLES" lua "$(dirname "$0")/results.lua" "$WORK/out"
}

# timed NAME...: expects that only these have a time in each launch, for both ops.
timed() {
    for op in allgather allreduce; do printf "$op %s $launches\n" "$@"; done >"$WORK/right"
    each | LC_ALL=C sort | cmp -s - "$WORK/right" || fail "times: $(each)"
}

# in_call FAULT PATTERN
in_call() {
    later "$1"
    printed err "FAULTY: $2.*; it is left out"
    [ "$(wc -l <"$WORK/err")" = 1 ] || fail "$1: more than a line: $(cat "$WORK/err")"
    if [ "$launches" = 1 ]; then launched "trial group group "; else launched "trial group group group "; fi
    timed GOOD MPI
}

# Faults after all samples: while a plan is released, the fault is the candidate's; in fini it is the
# plug-in's, which ends only when all its candidates have ended.
# in_release FAULT PATTERN
in_release() {
    later "$1" 5
    printed err "^gentables: FAULTY: $2.*; it is left out"
    [ "$(wc -l <"$WORK/err")" = 1 ] || fail "$1: more than a line: $(cat "$WORK/err")"
    each | grep -q "allreduce GOOD $launches" || fail "$1: no GOOD: $(each)"
}

# in_fini FAULT PATTERN
in_fini() {
    later "$1" 5
    printed err "^gentables: FAULTY: $2.*; it is left out"
    printed err "^gentables: GOOD: its plug-in: $2.*; it is left out"
    [ "$(wc -l <"$WORK/err")" = 2 ] || fail "$1: more than two lines: $(cat "$WORK/err")"
    timed MPI
}

# A result that is wrong now and then ends nothing: the candidate has a reason in place of a time.
wrong_later() {
    later later_wrong
    [ ! -s "$WORK/err" ] || fail "later_wrong: $(cat "$WORK/err")"
    launched "trial group group "
    each | grep -q FAULTY && fail "a wrong candidate has a time"
    each | grep -q "allreduce GOOD $launches" || fail "later_wrong: no GOOD: $(each)"
    printed out "wrong result in"
}

# A fault in init excludes all candidates of its plug-in, and no others.
# in_start FAULT PATTERN
in_start() {
    IN_GROUP=$1
    export IN_GROUP
    tuned --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_start.so" --fresh \
        --timeout $timeout --strategies MPI,GOOD,FAULTY --launcher "$WORK/launcher {ranks}" --json
    printed err "^gentables: GOOD: $2.*; it is left out"
    printed err "^gentables: FAULTY: .*$2.*; it is left out"
    [ "$(wc -l <"$WORK/err")" = 2 ] || fail "a start that $1: more than two lines: $(cat "$WORK/err")"
    [ "$(each)" = "allreduce MPI 1" ] || fail "a start that $1: $(each)"
}

# An init that returns a state only after its cancellation is late, and that state is ended. Only this plug-in
# is excluded, since the others were not cancelled.
late_start() {
    IN_GROUP=HANGS
    export IN_GROUP
    tuned --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_start_late.so" \
        --plugin "$PLUGINS/chunked.so" --strategies MPI,GOOD,FAULTY,CHUNKED_8192 --fresh \
        --timeout $timeout --launcher "$WORK/launcher {ranks}" --json
    [ "$(each | LC_ALL=C sort | tr '\n' ' ')" = "allreduce CHUNKED_8192 1 allreduce MPI 1 " ] ||
        fail "a late start: $(each)"
    printed out "its init failed: did not return in time"
    printed err "^gentables: bad, rank 0: fini$"
    printed err "^gentables: bad, rank 1: fini$"
    [ "$(wc -l <"$WORK/err")" = 2 ] || fail "a late start: $(cat "$WORK/err")"
}

cases "$@" <<'END'
in_call later_hang "did not return in time"
in_release release_hang "did not return in time"
in_fini fini_hang "did not return in time"
in_start HANGS "did not return in time"
late_start
twice in_call later_crash crashed
in_call later_late "writes after it has returned"
in_call later_stack "crashed (segmentation fault)"
in_call later_kill "was killed by SIGKILL"
in_call later_term "was killed by SIGTERM"
in_call later_unhandled "was killed by SIGSEGV"
in_call later_exec "ended the process, or replaced it by another program"
twice in_release release_crash crashed
twice in_fini fini_crash crashed
in_fini fini_leave "ended the process"
twice wrong_later
in_start CRASHES crashed
END
