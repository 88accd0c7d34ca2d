#!/bin/sh
# Builds test programs of kernels on the engine, also with a fault planted in them, and runs them on a few
# seeds. SOURCE: the tree; GENERATED: the generated sources of the build; ENGINE: the engine's object file;
# WORK: a folder of this test's own; FLAGS: of the compiler, for all programs.
set -eu
rm -rf "$WORK"
mkdir -p "$WORK"
shared=$WORK
tests=$SOURCE/tests/bench/cuda/kernels
cases="-DFEW_CASES -DCASES_TP=3"
seeds="1 2 3"

# compile OBJECT UNIT COMPILER FLAG...: for most programs, compiling takes longer than running.
compile() {
    object=$1 unit=$2 compiler=$3
    shift 3
    for folder in "$tests" "$SOURCE/tests/stand_ins/engine" "$SOURCE/bench/cuda/kernels" "$SOURCE/bench" \
        "$GENERATED"; do
        set -- "$@" -I "$folder"
    done
    # shellcheck disable=SC2086
    "$compiler" ${FLAGS:-} -std=c++17 -Og $cases "$@" -c "$tests/$unit.cpp" -o "$object"
}

# build PROGRAM TEST COMPILER FLAG...: builds TEST.cpp. Flags with faults concern kernels, which kernels.cpp
# does not contain; build_shared compiles it once.
build() {
    program=$1 test=$2 compiler=$3
    shift 3
    if [ "$test" = kernels ]; then
        compile "$program.o" kernel_cases "$compiler" "$@"
        set -- "$@" "$shared/kernels.o"
    else
        compile "$program.o" "$test" "$compiler" "$@"
    fi
    # shellcheck disable=SC2086
    "$compiler" ${FLAGS:-} "$@" "$program.o" "$ENGINE" "$shared/element.o" -lm -o "$program"
}

# build_shared COMPILER FLAG...: compiles kernels.cpp with the flags of all programs.
build_shared() { compile "$shared/kernels.o" kernels "$@"; }

# two_at_a_time COMMAND NAME...: runs COMMAND NAME for each, two at a time, each in a folder of its own in
# WORK.
two_at_a_time() {
    command=$1 first="" second=""
    shift
    for name in "$@"; do
        mkdir "$WORK/$name"
        # shellcheck disable=SC2086
        set -- $second "$name"
        second=$first first=$*
    done
    in_line "$command" "$first" &
    first=$!
    in_line "$command" "$second" &
    second=$!
    failed=0
    wait "$first" || failed=1
    wait "$second" || failed=1
    [ "$failed" = 0 ] || exit 1
}
in_line() {
    for name in $2; do (in_folder "$1" "$name"); done
}
in_folder() {
    WORK=$WORK/$2
    "$1" "$2"
}

# planted_inputs COMPILER [CASE [FILE...]]: the inputs of the proof; CASE if a script has several proofs, FILE
# if it has more inputs.
planted_inputs() {
    compiler=$1
    # shellcheck source=tests/proof.sh
    . "$SOURCE/tests/proof.sh"
    if [ -n "${2:-}" ]; then proof_name=${proof_name}_tp$2; fi
    shift $(($# < 2 ? $# : 2))
    proof_inputs "$@" "$tests/lib_planted.sh" "$tests/kernels.cpp" "$tests/kernel_cases.cpp" \
        "$tests/exchange.cpp" "$tests"/*.h "$SOURCE"/tests/stand_ins/engine/*.[ch]* \
        "$SOURCE"/bench/cuda/kernels/*.h \
        "$SOURCE"/bench/elements/element.[ch] "$SOURCE/bench/elements/conversions.h" \
        "$SOURCE"/bench/fusions/*.h "$GENERATED/lists.h" -- "$("$compiler" --version | head -n 1)" \
        "$(uname -m)"
}

# fails PROGRAM REASON [NAME]: whether one of the seeds fails in cases with NAME in their names, with exit
# code 1 (or 66 of ThreadSanitizer) and a line that REASON (a pattern) matches. Any other end, such as by a
# signal, fails the whole test: no check has caught the fault.
fails() {
    for seed in $seeds; do
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

# passes PROGRAM [NAME]: whether no check finds anything, on one seed; with GENTABLES_NIGHTLY=1 on all.
passes() {
    if [ "${GENTABLES_NIGHTLY:-}" != 1 ]; then seeds=1; fi
    ! fails "$1" "" "${2- bfloat16}"
}

cc -std=gnu17 -O1 -I "$SOURCE/bench" -I "$GENERATED" -c "$SOURCE/bench/elements/element.c" \
    -o "$WORK/element.o"
