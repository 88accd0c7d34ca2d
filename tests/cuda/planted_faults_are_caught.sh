#!/bin/sh
# Each fault that is planted in the kernels is caught by the engine, and without a fault nothing is caught. A
# grid over the resident limit is a case of the tests themselves; where only the order of memory is at fault,
# see planted_races_are_caught.sh.
. "$(dirname "$0")/lib_planted.sh"

# catches TEST REASON FAULT...: each fault makes the test fail, and print this reason.
catches() {
    test=$1 reason=$2
    shift 2
    for fault in "$@"; do
        build "$WORK/$test.$fault" "$test" "$CXX" "-DFAULT_$fault"
        if ! fails "$WORK/$test.$fault" "$reason"; then
            echo "FAILED: $fault was not caught by $test: $reason" && tail -n 20 "$WORK/output"
            exit 1
        fi
        echo "caught by $test: $fault"
    done
}

# catches_nothing TEST: where nothing is wrong.
catches_nothing() {
    build "$WORK/$1.right" "$1" "$CXX"
    if fails "$WORK/$1.right" "" ""; then
        echo "FAILED: $1 caught something where nothing is wrong" && cat "$WORK/output"
        exit 1
    fi
}
wrong="^FAILED: .*: [1-9][0-9]* wrong" deadlock="^FAILED: .*: deadlock\$"
catches kernels "$wrong elements\$" NO_BLOCK_BARRIER NO_RANKS_BARRIER NO_CLEAR SKIP_LAST_ACCESS \
    NATIVE_ACCUMULATION POLL_ONE_WORD HALF_OF_ALL_EPOCHS OWN_STATE_ALONE RANKS_DIFFER
catches kernels "$deadlock" KEEP_EMPTY NO_LATER_EPOCH
catches_nothing kernels
# The other type that has 16 bits, whose 11 of them hold more.
for name in " float16 NONE" " float16 RESIDUAL_RMS_NORM"; do
    if ! fails "$WORK/kernels.NATIVE_ACCUMULATION" "$wrong elements\$" "$name"; then
        echo "FAILED: NATIVE_ACCUMULATION was not caught in$name"
        exit 1
    fi
done
catches exchange "$wrong\$" NO_BLOCK_BARRIER NO_RANKS_BARRIER NO_LAST_BARRIER SKIP_LAST_ACCESS
catches exchange "^FAILED: misaligned access of 16 bytes\$" WIDE_ACCESSES
catches_nothing exchange
