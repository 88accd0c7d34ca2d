#!/bin/sh
# Each fault that is planted in the kernels is caught by the engine or, where only the order of memory is at
# fault, by ThreadSanitizer; and without a fault nothing is caught. A grid over the resident limit is a case
# of the tests themselves.
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

# fails PROGRAM: whether some of a few seeds fail.
fails() {
    for seed in 1 2 3; do
        if ! "$1" "$seed" >"$WORK/output" 2>&1; then return 0; fi
    done
    return 1
}

cc -std=gnu17 -O1 -I "$SOURCE/bench" -I "$GENERATED" -c "$SOURCE/bench/element.c" -o "$WORK/element.o"
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
    if fails "$WORK/$test.right"; then
        echo "FAILED: $test caught something where nothing is wrong" && cat "$WORK/output"
        exit 1
    fi
}
catches kernels NO_BLOCK_BARRIER NO_RANKS_BARRIER NO_CLEAR SKIP_LAST_ACCESS NATIVE_ACCUMULATION \
    POLL_ONE_WORD KEEP_EMPTY NO_LATER_EPOCH HALF_OF_ALL_EPOCHS OWN_STATE_ALONE
catches exchange NO_BLOCK_BARRIER NO_RANKS_BARRIER NO_LAST_BARRIER SKIP_LAST_ACCESS WIDE_ACCESSES

if ! printf 'int main() {}\n' | clang++ -fsanitize=thread -x c++ - -o "$WORK/probe" 2>/dev/null; then
    echo "skipped: no clang++ with ThreadSanitizer, so a relaxed flag was not looked for"
    exit 0
fi
for test in kernels exchange; do
    build "$WORK/$test.ordered" "$test" clang++ -DWITHOUT_GIVING_UP -fsanitize=thread
    if fails "$WORK/$test.ordered"; then
        echo "FAILED: a race in $test where nothing is wrong" && tail -n 20 "$WORK/output"
        exit 1
    fi
    build "$WORK/$test.RELAXED_FLAG" "$test" clang++ -DWITHOUT_GIVING_UP -DFAULT_RELAXED_FLAG \
        -fsanitize=thread
    if ! fails "$WORK/$test.RELAXED_FLAG" || ! grep -q "data race" "$WORK/output"; then
        echo "FAILED: RELAXED_FLAG was not caught by $test"
        exit 1
    fi
    echo "caught by $test: RELAXED_FLAG"
done
