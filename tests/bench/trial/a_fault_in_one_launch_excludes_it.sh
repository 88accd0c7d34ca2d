#!/bin/sh
# A candidate must succeed in each of several launches. If its result was wrong in one of them, or it crashed,
# it is chosen nowhere, has no row, and is recorded as failed, so that the next run does not measure it again.
. "$(dirname "$0")/../../unit/tune/lib.sh"

# Sets the fault in one launch of the group, the second.
launcher <<'END'
case " $* " in
*" --pass "*)
    echo group >>"$LAUNCHES"
    [ "$(wc -l <"$LAUNCHES")" != 2 ] || export BAD_FAULT="$FAULT"
    ;;
esac
END
LAUNCHES=$WORK/launches
export LAUNCHES FAULT

# FAULTY and GOOD differ only in the fault; with GOOD's times FAULTY would win somewhere, if it competed.
again() {
    rm -f "$LAUNCHES"
    tuned --op allreduce,allgather --sizes 1K,2K,4K --dtype float32 --plugin "$PLUGINS/bad_told.so" \
        --strategies GOOD,FAULTY --launches 2 --launcher "$WORK/launcher {ranks}" \
        --cache "$WORK/$FAULT.json" --out "$WORK/$FAULT" "$@"
}

# excluded FAULT LAUNCHES
excluded() {
    FAULT=$1
    again
    [ "$(wc -l <"$LAUNCHES")" = "$2" ] || fail "$FAULT: $(wc -l <"$LAUNCHES") launches"
    "$GENTABLES" lua "$(dirname "$0")/results.lua" "$WORK/$FAULT/tuned.json" >"$WORK/each"
    ! grep -q FAULTY "$WORK/each" || fail "$FAULT: it has a time: $(cat "$WORK/each")"
    [ "$(grep -c 'GOOD 2' "$WORK/each")" = 6 ] || fail "$FAULT: GOOD: $(cat "$WORK/each")"
    ! grep -q FAULTY "$WORK/$FAULT/benchmark.tp2.host.csv" || fail "$FAULT: it has a row"
    ! grep -q FAULTY "$WORK/$FAULT/gentables_tuned.py" || fail "$FAULT: it is chosen"
    cp "$WORK/out" "$WORK/first"
    again
    [ ! -e "$LAUNCHES" ] || fail "$FAULT: measured anew"
    ! grep -q FAULTY "$WORK/$FAULT/gentables_tuned.py" || fail "$FAULT: it is chosen from the cache"
    printed out "FAULTY: .*\(wrong result\|crashed\)"
    grep -q "FAULTY: .*\(wrong result\|crashed\)" "$WORK/first" || fail "$FAULT: not reported at first"
}

# A candidate that was left out under a shorter timeout is tried again.
retried() {
    excluded "$@"
    again --timeout 31
    [ -e "$LAUNCHES" ] || fail "a candidate that a shorter deadline excluded is not tried again"
}

cases "$@" <<'END'
excluded wrong 2
retried crash 3
END
