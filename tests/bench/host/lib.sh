#!/bin/sh
# Shared by the tests of the bench: how it is started, and how a test fails. Sourced.
set -eu
mkdir -p "$WORK"
. "$SOURCE/tests/mpirun.sh"

# run RANKS ARGUMENT...: the bench under mpirun.
run() {
    ranks=$1
    shift
    $mpirun -n "$ranks" "$BENCH" "$@"
}

fail() {
    echo "$*" >&2
    exit 1
}
