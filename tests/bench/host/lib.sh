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

# printed FILE PATTERN: this file of $WORK has a line with this pattern.
printed() {
    grep -q -- "$2" "$WORK/$1" || fail "$1 lacks '$2': $(head -c 2000 "$WORK/$1")"
}
