#!/bin/sh
# Each fault of a plug-in gives a clear line, and leaves the rest unharmed. What a library says wrongly is
# wrong
# use; what a candidate does wrongly leaves it out, and it alone, and all others are measured.
. "$(dirname "$0")/lib.sh"

# refused FAULT PATTERN: exit 2 and one line.
refused() {
    tune --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_$1.so"
    [ "$status" = 2 ] || fail "$1 ended with $status: $(cat "$WORK/err")"
    [ "$(wc -l <"$WORK/err")" = 1 ] || fail "$1: not one line: $(cat "$WORK/err")"
    said err "$2"
}
refused abi "another version of the interface"
refused symbol "exports no gentables_plugin"
refused twice "there is another of this name"
refused op "has an op that this gentables does not know"
refused dtype "has a data type that this gentables does not know"
tune --op allreduce --sizes 1K --plugin bad_abi.so
[ "$status" = 2 ] || fail "a path without a slash is taken"
said err "has a slash"
tune --op allreduce --sizes 1K --plugin /nowhere/mine.so
[ "$status" = 2 ] || fail "a library that is not there is taken"
said err "cannot be loaded"

# left_out FAULT PATTERN [TIMEOUT]
left_out() {
    tune --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_$1.so" \
        --strategies MPI,GOOD,FAULTY \
        --timeout "${3:-10}" --fresh --json
    [ "$status" = 0 ] || fail "$1 ended with $status: $(cat "$WORK/err")"
    said err "FAULTY: $2"
    [ "$(wc -l <"$WORK/err")" -le "${4:-1}" ] || fail "$1: more than a line: $(cat "$WORK/err")"
    grep -q '"strategy": "MPI", ' "$WORK/out" || grep -q '"strategy": "MPI"' "$WORK/out" || fail "$1: no MPI"
    [ "$1" = leak ] || grep -q '"strategy": "GOOD"' "$WORK/out" || fail "$1: no GOOD: $(cat "$WORK/err")"
}
left_out beyond "touched memory beyond a buffer\|writes beyond a buffer"
left_out late "writes after it has returned\|wrong result"
left_out differs "wrong result"
left_out crash "crashed (segmentation fault)"
left_out hang "did not come back in time" 2
left_out leave "ended the process"
left_out leak "its plug-in leaks open files" 10 2

# Sizes that do not divide: no time, a reason, and the others are measured.
tune --op allreduce --sizes 1K --dtype float32 --plugin "$PLUGINS/bad_multiple.so" \
    --strategies MPI,GOOD,FAULTY
[ "$status" = 0 ] || fail "multiple ended with $status: $(cat "$WORK/err")"
said out "no time: FAULTY: does not do a number of elements that is no multiple of its own"
