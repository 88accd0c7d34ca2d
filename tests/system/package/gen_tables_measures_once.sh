#!/bin/sh
# gen-tables in a project that found the installed package: it measures the missing cells, renders, and the
# next time changes no file, but mends a table that was edited. 77 if the package has no bench.
. "$(dirname -- "$0")/lib.sh"

begin gen_tables
needs_bench
configure -G Ninja
passes target gen-tables
for file in benchmark.tp2.host.csv benchmark.tp2.host.json table.csv allreduce_table.h; do
    if [ ! -s "$project/tables/host/$file" ]; then die "gen-tables should have written tables/host/$file"; fi
done
# The history of the rows is in the build tree.
runs() { "$GENTABLES_PREFIX/bin/gentables" history report --database "$build/history.db"; }
if [ -e "$GENTABLES_PREFIX/lib/gentables/core/sqlite.so" ]; then
    runs >"$output" || die "gen-tables made no history"
    grep -q "^host, TP 2: 1 run, " "$output" || die "the history lacks the sweep"
fi
touch "$work/before"
passes target gen-tables
find "$project/tables" -type f -newer "$work/before" >"$output"
if [ -s "$output" ]; then die "with nothing missing, nothing should be written"; fi
passes target check-tables
# A table is mended although no row is missing.
echo edited >>"$project/tables/host/table.csv"
passes target gen-tables
passes target check-tables
