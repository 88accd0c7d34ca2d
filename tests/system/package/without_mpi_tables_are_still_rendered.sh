#!/bin/sh
# Without MPI nothing is measured, and a message reports that; tables are still rendered and checked.
. "$(dirname -- "$0")/lib.sh"

begin without_mpi
configure -G Ninja -DGENTABLES_SOURCE="$GENTABLES_SOURCE" -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
printed "gentables: no MPI"
passes cmake --build "$build"
passes "$build/server"
passes target allreduce-check
fails target sweep-tables
