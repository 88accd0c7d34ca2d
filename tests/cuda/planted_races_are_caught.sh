#!/bin/sh
# Where only the order of memory is at fault, ThreadSanitizer finds it: a flag that is relaxed; and it finds
# nothing where nothing is wrong. 77: there is no clang++ with it.
. "$(dirname "$0")/lib_planted.sh"
if ! printf 'int main() {}\n' | clang++ -fsanitize=thread -x c++ - -o "$WORK/probe" 2>/dev/null; then
    echo "skipped: no clang++ with ThreadSanitizer"
    exit 77
fi
for test in kernels exchange; do
    build "$WORK/$test.ordered" "$test" clang++ -DWITHOUT_GIVING_UP -fsanitize=thread
    if fails "$WORK/$test.ordered" ""; then
        echo "FAILED: a race in $test where nothing is wrong" && tail -n 20 "$WORK/output"
        exit 1
    fi
    build "$WORK/$test.RELAXED_FLAG" "$test" clang++ -DWITHOUT_GIVING_UP -DFAULT_RELAXED_FLAG \
        -fsanitize=thread
    if ! fails "$WORK/$test.RELAXED_FLAG" "WARNING: ThreadSanitizer: data race"; then
        echo "FAILED: RELAXED_FLAG was not caught by $test"
        exit 1
    fi
    echo "caught by $test: RELAXED_FLAG"
done
