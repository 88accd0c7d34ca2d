#!/bin/sh
# The model of flags.pml, for 2 to 4 ranks: in all orders of accesses buffers, epochs and sizes are right,
# over so many launches that buffers and epochs begin again; and each planted fault is found, by the expected
# assertion. Every search is exhaustive within the limits in its name: all sizes up to SIZES, and all grids up
# to BLOCKS for 2 ranks, two grids in turn for 3, one block for 4. The three longest searches, of 5 to 8
# million states each, run with GENTABLES_NIGHTLY=1. 77: there is no spin.
set -eu
if ! command -v spin >/dev/null; then
    echo "skipped: there is no spin here"
    exit 77
fi

# check LEVEL FLAG...: prints what the model checker found, built at -O LEVEL; 0: nothing wrong in all orders.
check() {
    level=$1
    shift
    spin -a "$@" "$SOURCE/tests/bench/cuda/kernels/flags.pml" >spin.log 2>&1 || { cat spin.log && exit 255; }
    "$CC" -w -O"$level" -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -o pan pan.c || exit 255
    ./pan -m200000 -w23 >pan.log
    if ! grep -q "^State-vector" pan.log || grep -q "max search depth too small\|out of memory" pan.log; then
        cat pan.log
        exit 255
    fi
    grep -q "errors: 0$" pan.log
}

# run_one WHY FLAG...: one search, in the current folder. WHY: a part of the assertion that must find the
# fault; "": none may fail. Faults are found early, so the checker is not optimised for them.
run_one() {
    why=$1
    shift
    what="$*"
    # shellcheck disable=SC2046
    set -- $(printf -- '-D%s ' "$@")
    if [ -z "$why" ]; then
        if ! check 2 "$@"; then
            echo "FAILED: $what: an order of accesses breaks it" && cat pan.log
            exit 255
        fi
        echo "$what: $(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1 states/p' pan.log), all right"
    elif check 0 "$@"; then
        echo "FAILED: $what: nothing was found"
        exit 255
    elif ! grep "^pan:1: " pan.log | grep -qF "$why"; then
        echo "FAILED: $what: found, but not for its reason, $why" && cat pan.log
        exit 255
    else
        echo "$what: found"
    fi
}

# This script calls itself for each line of the list of searches: a folder, WHY, and flags.
if [ "${1-}" = search ]; then
    IFS='|' read -r number why flags <<END
$2
END
    mkdir "$WORK/$number"
    cd "$WORK/$number"
    # shellcheck disable=SC2086
    run_one "$why" $flags
    exit
fi

rm -rf "$WORK"
mkdir -p "$WORK"
# shellcheck source=tests/proof.sh
. "$SOURCE/tests/proof.sh"
proof_inputs "$SOURCE/tests/bench/cuda/kernels/flags.pml" -- "$(spin -V)" "$("$CC" --version | head -n 1)"

# holds STRATEGY NAME=VALUE...: adds a search that must find nothing. breaks WHY FAULT STRATEGY NAME=VALUE...:
# adds one that must find the fault, with WHY in the checker's output.
number=0
holds() { breaks "" "$@"; }
breaks() {
    number=$((number + 1)) why=$1
    shift
    echo "$number|$why|$*" >>"$WORK/searches"
}

holds ONESHOT RANKS=2 LAUNCHES=7 SIZES=2
holds ONESHOT RANKS=3 LAUNCHES=5 SIZES=2
holds ONESHOT RANKS=4 LAUNCHES=7
holds ONESHOT RANKS=2 LAUNCHES=4 SIZES=2 BLOCKS=2
for rounds in "RANKS=2 LAUNCHES=7 EPOCHS=4" "RANKS=3 LAUNCHES=7 EPOCHS=4" "RANKS=4 LAUNCHES=7 EPOCHS=4" \
    "RANKS=2 LAUNCHES=5 EPOCHS=4 BLOCKS=2" "RANKS=2 LAUNCHES=4 EPOCHS=6 FIRST=3 BLOCKS=2"; do
    for strategy in TWOSHOT NVLS_ONESHOT; do
        # shellcheck disable=SC2086
        holds $strategy $rounds
    done
done
holds NVLS_ONESHOT RANKS=3 LAUNCHES=5 EPOCHS=4 BLOCKS=2 ALTERNATING
if [ "${GENTABLES_NIGHTLY:-}" = 1 ]; then
    holds ONESHOT RANKS=4 LAUNCHES=4 SIZES=2
    holds ONESHOT RANKS=3 LAUNCHES=4 SIZES=2 BLOCKS=2 ALTERNATING
    holds TWOSHOT RANKS=3 LAUNCHES=3 EPOCHS=4 FIRST=2 BLOCKS=2 ALTERNATING
fi

# Parts of the assertions, as the checker prints them.
empty=")]==0)" received="+at)]==launch)" read="==(launch-1))" said=">=launch)" input="(input["
four="RANKS=4 LAUNCHES=5 EPOCHS=4" grids="RANKS=2 LAUNCHES=6 EPOCHS=6 BLOCKS=2"
# shellcheck disable=SC2086
{
    for ranks in 2 4; do
        breaks "$empty" ONESHOT RANKS=$ranks LAUNCHES=4 ROTATION=2
        breaks "$empty" FAULT_NO_CLEAR ONESHOT RANKS=$ranks LAUNCHES=4
        breaks "$received" FAULT_NO_WAIT ONESHOT RANKS=$ranks LAUNCHES=4
    done
    for shape in "RANKS=3 SIZES=2" "RANKS=4 SIZES=2" "RANKS=2 SIZES=2 BLOCKS=2"; do
        breaks "$read" FAULT_SIZE_OF_NOW ONESHOT LAUNCHES=4 $shape
    done
    for strategy in TWOSHOT NVLS_ONESHOT; do
        breaks "$input" FAULT_LATE_INPUT $strategy $four
        breaks "$said" FAULT_HALF_OF_ALL_EPOCHS $strategy $grids
    done
    breaks "$said" FAULT_NO_RANKS_BARRIER TWOSHOT $four
    breaks "$said" FAULT_NO_LAST_BARRIER TWOSHOT $four
    breaks "$said" FAULT_ONE_PHASE TWOSHOT $four
    breaks "(sum==launch)" FAULT_LATE_SUM TWOSHOT $four
    breaks "$input" FAULT_NO_RANKS_BARRIER NVLS_ONESHOT $four
    breaks "$input" NVLS_ONESHOT BUFFERS=1 $four
    breaks "$input" FAULT_OWN_STATE_ALONE NVLS_ONESHOT $grids
    breaks "invalid end state" FAULT_NO_LATER_EPOCH NVLS_ONESHOT $four
}

# Two at a time, because each may need 4 GiB.
xargs -d '\n' -n 1 -P 2 sh "$0" search <"$WORK/searches"
proof_holds
