#!/bin/sh
# Shared by the tests of the bench: how it is started. Sourced.
. "$SOURCE/tests/lib.sh"
. "$SOURCE/tests/mpirun.sh"

# run RANKS ARGUMENT...: the bench under mpirun.
run() {
    ranks=$1
    shift
    $mpirun -n "$ranks" "$BENCH" "$@"
}
