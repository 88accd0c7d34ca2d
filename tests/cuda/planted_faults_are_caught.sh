#!/bin/sh
# Each fault that is planted in the kernels is caught by the engine or, where only the order of memory is at
# fault, by ThreadSanitizer; and without a fault nothing is caught. A grid over the resident limit is a case
# of kernels.cpp itself.
set -eu
rm -rf "$WORK"
mkdir -p "$WORK"

# build PROGRAM COMPILER FLAG...
build() {
    program=$1 compiler=$2
    shift 2
    for folder in "$SOURCE/tests/cuda" "$SOURCE/bench/cuda" "$SOURCE/bench" "$GENERATED"; do
        set -- "$@" -I "$folder"
    done
    "$compiler" -std=c++17 -O1 -DFEW_CASES "$@" "$SOURCE/tests/cuda/kernels.cpp" "$ENGINE" "$WORK/element.o" \
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
for fault in NO_BLOCK_BARRIER NO_RANKS_BARRIER NO_CLEAR SKIP_LAST_ACCESS NATIVE_ACCUMULATION POLL_ONE_WORD \
    KEEP_EMPTY NO_LATER_EPOCH; do
    build "$WORK/$fault" "$CXX" "-DFAULT_$fault"
    if ! fails "$WORK/$fault"; then
        echo "FAILED: $fault was not caught"
        exit 1
    fi
    echo "caught: $fault"
done

build "$WORK/right" "$CXX"
if fails "$WORK/right"; then
    echo "FAILED: something was caught where nothing is wrong" && cat "$WORK/output"
    exit 1
fi

if ! printf 'int main() {}\n' | clang++ -fsanitize=thread -x c++ - -o "$WORK/probe" 2>/dev/null; then
    echo "skipped: no clang++ with ThreadSanitizer, so a relaxed flag was not looked for"
    exit 0
fi
build "$WORK/ordered" clang++ -DWITHOUT_GIVING_UP -fsanitize=thread
if fails "$WORK/ordered"; then
    echo "FAILED: a race where nothing is wrong" && tail -n 20 "$WORK/output"
    exit 1
fi
build "$WORK/RELAXED_FLAG" clang++ -DWITHOUT_GIVING_UP -DFAULT_RELAXED_FLAG -fsanitize=thread
if ! fails "$WORK/RELAXED_FLAG" || ! grep -q "data race" "$WORK/output"; then
    echo "FAILED: RELAXED_FLAG was not caught"
    exit 1
fi
echo "caught: RELAXED_FLAG"
