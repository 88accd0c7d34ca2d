#!/bin/sh
# gen_tables_needs_no_sqlite.sh STAND_IN: without SQLite, as on a fresh machine, gen-tables measures and
# renders, and keeps no history. 77 where the package has no bench.
. "$(dirname -- "$0")/../package/lib.sh"

begin without_sqlite
needs_bench
measured_by "$1"
rm -f "$prefix/lib/gentables/core/sqlite.so"
configure -G Ninja
passes target gen-tables
passes test -s "$project/tables/host/table.csv"
if [ -e "$build/history.db" ]; then die "there should be no history"; fi
