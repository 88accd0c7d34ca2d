#!/bin/sh
# Builds test programs of kernels on the engine with a fault planted in them, and runs them on a few seeds.
# SOURCE: the tree; GENERATED: what the build made; ENGINE: its object; WORK: a folder of this test's own.
set -eu
rm -rf "$WORK"
mkdir -p "$WORK"

# build PROGRAM TEST COMPILER FLAG...: TEST.cpp with what it needs.
build() {
    program=$1 test=$2 compiler=$3
    shift 3
    for folder in "$SOURCE/tests/cuda" "$SOURCE/bench/cuda" "$SOURCE/bench" "$GENERATED"; do
        set -- "$@" -I "$folder"
    done
    "$compiler" -std=c++17 -O1 -DFEW_CASES "$@" "$SOURCE/tests/cuda/$test.cpp" "$ENGINE" "$WORK/element.o" \
        -lm -o "$program"
}

# fails PROGRAM [NAME]: whether some of a few seeds fail, in cases whose names hold this.
fails() {
    for seed in 1 2 3; do
        if ! "$1" "$seed" "${2- bfloat16}" >"$WORK/output" 2>&1; then return 0; fi
    done
    return 1
}

cc -std=gnu17 -O1 -I "$SOURCE/bench" -I "$GENERATED" -c "$SOURCE/bench/element.c" -o "$WORK/element.o"
