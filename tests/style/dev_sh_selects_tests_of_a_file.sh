#!/bin/sh
# cmake/dev.sh check: which tests concern one file of each kind, the closest first; and its message for a
# missing file.
#
#   sh dev_sh_selects_tests_of_a_file.sh GENTABLES BUILD_TREE
gentables=$1 tree=$2
. "$(dirname "$0")/../system/package/lib.sh"
begin dev_sh_check
cd "$GENTABLES_SOURCE"
passes ctest --test-dir "$tree" --show-only=json-v1
mv "$output" "$work/tests.json"

# concerns FILE TEST...: expects these among the tests that concern the file.
concerns() {
    file=$1
    shift
    "$gentables" lua cmake/check.lua "$work/tests.json" "$work/costs" "$file" >"$output" 2>"$work/left" ||
        die "no tests for $file: $(cat "$work/left")"
    for test in "$@"; do
        grep -qx -- "$test" "$output" || die "$file: $test should run"
    done
}

# closest FILE TEST...: expects that the first of them is the closest one.
closest() {
    concerns "$@"
    [ "$(head -n 1 "$output")" = "$2" ] || die "$1: $2 should be the closest test"
}

# leaves FILE TEST: expects that the test does not concern the file.
leaves() {
    if cat "$output" "$work/left" | grep -qw -- "$2"; then die "$2 does not concern $1"; fi
}

closest generator/sweep/journal.lua sweep.journal sweep.sweep sweep.failures
leaves generator/sweep/journal.lua workload_pages
concerns generator/rows/rows_line.c table sizes
leaves generator/rows/rows_line.c trace_merge
concerns generator/trace/reader/splitter.cpp trace_merge trace_reader
concerns bench/host/strategies/twoshot.c by_hand_prints_a_table every_strategy_is_right
leaves bench/host/strategies/twoshot.c trace_reader
closest bench/elements/statistics.c bench_statistics
closest docs/tables.md pages_mention_existing_files
leaves docs/tables.md a_project_builds
concerns tests/stand_ins/bench.c sweep.sweep
closest tests/unit/trace/reader/reader.lua trace_reader

# The time of the chosen tests has a limit; the other tests are listed.
sed -n 's/.*"name" : "\([a-z_.]*\)".*/\1 1 39/p' "$work/tests.json" >"$work/costs"
concerns generator/sweep/journal.lua sweep.journal
[ "$(wc -l <"$output")" -le 2 ] || die "tests of 39 s each: $(wc -l <"$output") run in a budget of 40 s"
grep -q "^left to CI, .* sweep.sweep" "$work/left" || die "the tests that are left to CI are not named"

fails sh cmake/dev.sh check no_such_file.lua
printed "gentables: no_such_file.lua: no such file"
