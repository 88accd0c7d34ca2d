#!/bin/sh
# The model of flags.pml, for 2 to 4 ranks: all orders of accesses, and of sizes, keep rotation and epochs;
# and with two buffers in place of three, without the clearing, with as much cleared as this launch fills, or
# without the first barrier, or where a rank waits for one epoch alone, they do not. 77: there is no spin.
set -eu
if ! command -v spin >/dev/null; then
    echo "skipped: there is no spin here"
    exit 77
fi
rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK"

# check FLAG...: prints what the model checker found; 0: nothing wrong in all orders.
check() {
    spin -a "$@" "$SOURCE/tests/cuda/flags.pml" >spin.log 2>&1 || { cat spin.log && exit 2; }
    cc -w -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -o pan pan.c
    ./pan -m200000 >pan.log
    if ! grep -q "^State-vector" pan.log || grep -q "max search depth too small\|out of memory" pan.log; then
        cat pan.log
        exit 2
    fi
    grep -q "errors: 0$" pan.log
}

# holds WHAT FLAG...
holds() {
    what=$1
    shift
    if ! check "$@"; then
        echo "FAILED: $what: an order of accesses breaks it" && cat pan.log
        exit 1
    fi
    echo "$what: $(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1 states/p' pan.log), all right"
}

# breaks WHAT FLAG...
breaks() {
    what=$1
    shift
    if check "$@"; then
        echo "FAILED: $what: nothing was found"
        exit 1
    fi
    echo "$what: found"
}

for strategy in ONESHOT TWOSHOT; do
    holds "$strategy, 2 ranks, 7 launches" "-D$strategy" -DRANKS=2 -DLAUNCHES=7 -DSIZES=2
    holds "$strategy, 3 ranks, 4 launches" "-D$strategy" -DRANKS=3 -DLAUNCHES=4
    holds "$strategy, 4 ranks, 2 launches" "-D$strategy" -DRANKS=4 -DLAUNCHES=2
done
holds "NVLS_ONESHOT, 2 ranks, 2 blocks, 4 launches, 6 epochs" -DNVLS_ONESHOT -DRANKS=2 -DBLOCKS=2 \
    -DLAUNCHES=4 -DEPOCHS=6
holds "NVLS_ONESHOT, 2 ranks, 7 launches, 4 epochs" -DNVLS_ONESHOT -DRANKS=2 -DLAUNCHES=7 -DEPOCHS=4
holds "NVLS_ONESHOT, 3 ranks, 5 launches, 4 epochs" -DNVLS_ONESHOT -DRANKS=3 -DLAUNCHES=5 -DEPOCHS=4
holds "NVLS_ONESHOT, 4 ranks, 3 launches, 4 epochs" -DNVLS_ONESHOT -DRANKS=4 -DLAUNCHES=3 -DEPOCHS=4
breaks "NVLS_ONESHOT that takes half of all epochs for later ones" -DNVLS_ONESHOT -DRANKS=2 -DBLOCKS=2 \
    -DLAUNCHES=4 -DEPOCHS=6 -DFAULT_HALF_OF_ALL_EPOCHS
breaks "NVLS_ONESHOT that waits for this epoch alone" -DNVLS_ONESHOT -DRANKS=2 -DFAULT_NO_LATER_EPOCH
breaks "NVLS_ONESHOT with one buffer" -DNVLS_ONESHOT -DRANKS=2 -DBUFFERS=1
breaks "ONESHOT that clears what it fills now" -DONESHOT -DRANKS=2 -DSIZES=2 -DFAULT_SIZE_OF_NOW
breaks "ONESHOT with two buffers" -DONESHOT -DRANKS=2 -DROTATION=2
breaks "ONESHOT without clearing" -DONESHOT -DRANKS=2 -DFAULT_NO_CLEAR
breaks "TWOSHOT without its first barrier" -DTWOSHOT -DRANKS=2 -DFAULT_NO_BARRIER
