#!/bin/sh
# refine_tables_continues.sh STAND_IN: after a sweep that its budget ended gen-tables measures nothing, and
# refine-tables continues on its rows. 77 where the package has no bench.
. "$(dirname -- "$0")/lib.sh"

begin refine_tables
needs_bench
measured_by "$1"
rows=$project/tables/host/benchmark.tp2.host.csv
export STAND_IN_LOG="$work/requests"
configure -G Ninja

passes env STAND_IN_FAULT=spent STAND_IN_AT="id=2 " cmake --build "$build" --target gen-tables
printed 'The budget of 60 s ended the sweep at TP 2.'
passes grep -q '"complete": *false' "${rows%.csv}.json"

rm "$STAND_IN_LOG"
passes target gen-tables
printed 'The budget of 60 s ended the sweep at TP 2.'
if [ -e "$STAND_IN_LOG" ]; then die "after a sweep that its budget ended, nothing should be measured"; fi

before=$(wc -l <"$rows")
passes target refine-tables
if [ "$(wc -l <"$rows")" -le "$before" ]; then die "refine-tables should have added rows"; fi
fails grep -q '"complete": *false' "${rows%.csv}.json"
passes target check-tables
