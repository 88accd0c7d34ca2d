#!/bin/sh
# Each fault that is planted in the kernels is caught by the engine, and without a fault nothing is caught. A
# grid over the resident limit is a case of the tests themselves; where only the order of memory is at fault,
# see planted_races_are_caught.sh.
. "$(dirname "$0")/lib_planted.sh"

# catches TEST FAULT...
catches() {
    test=$1
    shift
    for fault in "$@"; do
        build "$WORK/$test.$fault" "$test" "$CXX" "-DFAULT_$fault"
        if ! fails "$WORK/$test.$fault"; then
            echo "FAILED: $fault was not caught by $test"
            exit 1
        fi
        echo "caught by $test: $fault"
    done
    build "$WORK/$test.right" "$test" "$CXX"
    if fails "$WORK/$test.right" ""; then
        echo "FAILED: $test caught something where nothing is wrong" && cat "$WORK/output"
        exit 1
    fi
}
catches kernels NO_BLOCK_BARRIER NO_RANKS_BARRIER NO_CLEAR SKIP_LAST_ACCESS NATIVE_ACCUMULATION \
    POLL_ONE_WORD KEEP_EMPTY NO_LATER_EPOCH HALF_OF_ALL_EPOCHS OWN_STATE_ALONE RANKS_DIFFER
# The other type that has 16 bits, whose 11 of them hold more.
for name in " float16 NONE" " float16 RESIDUAL_RMS_NORM"; do
    if ! fails "$WORK/kernels.NATIVE_ACCUMULATION" "$name" || ! grep -q "wrong elements" "$WORK/output"; then
        echo "FAILED: NATIVE_ACCUMULATION was not caught in$name"
        exit 1
    fi
done
catches exchange NO_BLOCK_BARRIER NO_RANKS_BARRIER NO_LAST_BARRIER SKIP_LAST_ACCESS WIDE_ACCESSES
