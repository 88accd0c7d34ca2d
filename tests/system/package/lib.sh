# Shared by the tests of the package: a copy of tests/system/consumer to work on, and calls of CMake on it.
# Sourced.
# GENTABLES_SOURCE, GENTABLES_PREFIX (the installed package) and GENTABLES_WORK come from CMakeLists.txt.
# shellcheck shell=sh
set -eu

# What the consumer has committed of its GPUs: rows, and their header and table.
golden=$GENTABLES_SOURCE/tests/golden/sm90
committed="benchmark.tp2.sm90.csv benchmark.tp4.sm90.csv allreduce_table.h table.csv"

# begin NAME: a fresh copy of the consumer in $project, to be built in $build; $output gets the output of
# commands.
begin() {
    work=$GENTABLES_WORK/$1
    project=$work/project
    build=$work/build
    output=$work/output
    rm -rf "$work"
    mkdir -p "$work"
    cp -R "$GENTABLES_SOURCE/tests/system/consumer" "$project"
    mkdir "$project/tables/sm90"
    for file in $committed; do cp "$golden/$file" "$project/tables/sm90"; done
    case $1 in *"Unix Makefiles"*) prove_with_make "$1" ;; esac
}

# prove_with_make NAME: with Make a test is a slow proof. The work of CMake there depends on our CMake files;
# every run tests the program with Ninja.
prove_with_make() {
    SOURCE=$GENTABLES_SOURCE WORK=$work
    . "$SOURCE/tests/proof.sh"
    proof_name=$(echo "$1" | tr ' ' _)
    inputs=$(cd "$SOURCE" && find CMakeLists.txt generator bench cmake tests/system/package/lib.sh \
        tests/system/consumer tests/golden/sm90 tests/system/consumer_trtllm -type f \
        \( -name CMakeLists.txt -o -path 'cmake/*' ! -name dev.sh ! -name check.lua -o -path 'tests/*' \))
    cd "$SOURCE"
    # shellcheck disable=SC2086 # a list
    proof_inputs $inputs -- "$(cmake --version | head -n 1)" "$(make --version | head -n 1)"
    cd "$work"
    trap 'if [ $? = 0 ]; then proof_holds; fi' EXIT
}

skip() {
    echo "skipped: $1"
    exit 77
}

die() {
    if [ -s "$output" ]; then cat "$output"; fi
    echo "FAILED: $1"
    exit 1
}

# passes COMMAND..., fails COMMAND...: runs it and expects success, or failure.
passes() {
    "$@" >"$output" 2>&1 || die "should pass: $*"
}

fails() {
    if "$@" >"$output" 2>&1; then die "should fail: $*"; fi
}

# printed TEXT: expects TEXT in the output of the last command.
printed() {
    grep -qF -- "$1" "$output" || die "should have been printed: $1"
}

# configure [OPTION...]: against the installed package, unless an option has another source.
configure() {
    passes cmake -S "$project" -B "$build" -DCMAKE_PREFIX_PATH="${prefix:-$GENTABLES_PREFIX}" \
        -DCMAKE_C_FLAGS="-Wall -Wextra -Wconversion -Werror" \
        -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wconversion -Werror" "$@"
}

# target NAME: the command line that builds it, for passes and fails.
target() {
    cmake --build "$build" --target "$1"
}

# same_tables: expects that the project's tables are unchanged, file for file.
same_tables() {
    for file in $committed; do passes cmp "$golden/$file" "$project/tables/sm90/$file"; done
    [ "$(find "$project/tables" -type f | wc -l)" = 5 ] || die "there are other files"
}

# needs_bench: ends the test if the package has no bench.
needs_bench() {
    [ -x "$GENTABLES_PREFIX/bin/gentables-bench" ] || skip "the package has no bench (no MPI)"
}

# own_prefix: uses a copy of the installed package, which a test may change.
own_prefix() {
    prefix=$work/prefix
    cp -R "$GENTABLES_PREFIX" "$prefix"
}

# measured_by STAND_IN: uses this program as the bench.
measured_by() {
    own_prefix
    cp "$1" "$prefix/bin/gentables-bench"
    GENTABLES_LAUNCHER='env RANKS={ranks}'
    export GENTABLES_LAUNCHER
}
