#!/bin/sh
# a_failing_cell_holds_up_no_table.sh STAND_IN GENERATOR: if one cell can never be measured, gen-tables
# renders the others and fails; once it can, gen-tables passes. 77 if the package has no bench.
. "$(dirname -- "$0")/lib.sh"

begin "failing_cell_$2"
needs_bench
measured_by "$1"
table=$project/tables/host/table.csv
configure -G "$2"

# Without any cell nothing is rendered, and the last message is the sweep's.
fails env STAND_IN_FAULT=die cmake --build "$build" --target allreduce-host-gen
printed '2 cells could not be measured'
if [ -e "$table" ]; then die "nothing was measured, so there should be no table"; fi

fails env STAND_IN_FAULT=die STAND_IN_AT=num_tokens=16 cmake --build "$build" --target allreduce-host-gen
printed '1 cell could not be measured'
passes grep -q ',1024,1,MPI,' "$table"
if grep -q ',1024,16,MPI,' "$table"; then die "a cell without a time has one in the table"; fi

passes target allreduce-host-gen
passes grep -q ',1024,16,MPI,' "$table"
