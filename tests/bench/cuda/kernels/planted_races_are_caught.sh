#!/bin/sh
# Where only the order of memory is at fault, ThreadSanitizer finds it: a flag that is relaxed; and it finds
# nothing where nothing is wrong. 77: there is no clang++ with it.
. "$(dirname "$0")/lib_planted.sh"
if ! printf 'int main() {}\n' | clang++ -fsanitize=thread -x c++ - -o "$WORK/probe" 2>/dev/null; then
    echo "skipped: no clang++ with ThreadSanitizer"
    exit 77
fi
planted_inputs clang++
cases="$cases -DONE_TYPE"
build_shared clang++ -DWITHOUT_GIVING_UP -fsanitize=thread

# is_caught TEST.FAULT; TEST.ordered: nothing is caught.
is_caught() {
    test=${1%.*} fault=${1#*.}
    if [ "$fault" = ordered ]; then
        build "$WORK/program" "$test" clang++ -DWITHOUT_GIVING_UP -fsanitize=thread
        if ! passes "$WORK/program"; then
            echo "FAILED: a race in $test where nothing is wrong" && tail -n 20 "$WORK/output"
            exit 1
        fi
        return
    fi
    build "$WORK/program" "$test" clang++ -DWITHOUT_GIVING_UP "-DFAULT_$fault" -fsanitize=thread
    export TSAN_OPTIONS=halt_on_error=1 # the first race is enough
    if ! fails "$WORK/program" "WARNING: ThreadSanitizer: data race"; then
        echo "FAILED: $fault was not caught by $test"
        exit 1
    fi
    echo "caught by $test: $fault"
}

two_at_a_time is_caught kernels.ordered exchange.ordered kernels.RELAXED_FLAG exchange.RELAXED_FLAG \
    kernels.ONE_TURN
proof_holds
