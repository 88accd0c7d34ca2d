#!/bin/sh
# Each fault that is planted in the kernels is caught by the engine, and without a fault nothing is caught. A
# grid over the resident limit is a case of the tests themselves; where only the order of memory is at fault,
# see planted_races_are_caught.sh.
. "$(dirname "$0")/lib_planted.sh"
planted_inputs "$CXX"
build_shared "$CXX"

wrong="^FAILED: .*: [1-9][0-9]* wrong" deadlock="^FAILED: .*: deadlock\$"

# reason_of TEST.FAULT: the line that the test prints for that fault, as a pattern.
reason_of() {
    case $1 in
    kernels.NO_CLUSTER_START) echo "^FAILED: an access to shared memory of a block that does not run\$" ;;
    kernels.KEEP_EMPTY | kernels.NO_LATER_EPOCH) echo "$deadlock" ;;
    kernels.*) echo "$wrong elements\$" ;;
    exchange.WIDE_ACCESSES) echo "^FAILED: misaligned access of 16 bytes\$" ;;
    exchange.*) echo "$wrong\$" ;;
    esac
}

# is_caught TEST.FAULT; TEST.right: nothing is caught.
is_caught() {
    test=${1%.*} fault=${1#*.}
    if [ "$fault" = right ]; then
        build "$WORK/program" "$test" "$CXX"
        if ! passes "$WORK/program" ""; then
            echo "FAILED: $test caught something where nothing is wrong" && cat "$WORK/output"
            exit 1
        fi
        return
    fi
    if [ "$fault" != NATIVE_ACCUMULATION ]; then cases="$cases -DONE_TYPE"; fi # its float16 is tested below
    build "$WORK/program" "$test" "$CXX" "-DFAULT_$fault"
    if ! fails "$WORK/program" "$(reason_of "$1")"; then
        echo "FAILED: $fault was not caught by $test: $(reason_of "$1")" && tail -n 20 "$WORK/output"
        exit 1
    fi
    echo "caught by $test: $fault"
}

# shellcheck disable=SC2046
two_at_a_time is_caught $(
    printf 'kernels.%s ' right NO_BLOCK_BARRIER NO_RANKS_BARRIER NO_CLEAR SKIP_LAST_ACCESS \
        NATIVE_ACCUMULATION POLL_ONE_WORD KEEP_EMPTY NO_LATER_EPOCH HALF_OF_ALL_EPOCHS OWN_STATE_ALONE \
        RANKS_DIFFER NO_CLUSTER_START
    printf 'exchange.%s ' right NO_BLOCK_BARRIER NO_RANKS_BARRIER NO_LAST_BARRIER SKIP_LAST_ACCESS \
        WIDE_ACCESSES
)
# float16 needs larger numbers, because it has 11 significant bits.
for name in " float16 NONE" " float16 RESIDUAL_RMS_NORM fp32"; do
    if ! fails "$WORK/kernels.NATIVE_ACCUMULATION/program" "$wrong elements\$" "$name"; then
        echo "FAILED: NATIVE_ACCUMULATION was not caught in$name"
        exit 1
    fi
done
proof_holds
