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

# fails PROGRAM REASON [NAME]: whether some of a few seeds fail, in cases whose names hold NAME, and print a
# line that REASON (a pattern) matches. What ends in another way than a failed test (1, or 66 of
# ThreadSanitizer), as by a signal, was not caught by a check: the whole test fails.
fails() {
    for seed in 1 2 3; do
        code=0
        "$1" "$seed" "${3- bfloat16}" >"$WORK/output" 2>&1 || code=$?
        case $code in
        0) ;;
        1 | 66) if grep -q "$2" "$WORK/output"; then return 0; fi ;;
        *)
            echo "FAILED: $1 ended with $code, seed $seed" && tail -n 20 "$WORK/output"
            exit 1
            ;;
        esac
    done
    return 1
}

cc -std=gnu17 -O1 -I "$SOURCE/bench" -I "$GENERATED" -c "$SOURCE/bench/element.c" -o "$WORK/element.o"
