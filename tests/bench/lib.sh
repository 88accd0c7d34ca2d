#!/bin/sh
# What the tests of the bench share: mpirun's flags, and how a test fails. Sourced.
set -eu
mkdir -p "$WORK"

# run RANKS ARGUMENT...: the bench under mpirun.
run() {
    ranks=$1
    shift
    root=""
    [ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
    # shellcheck disable=SC2086
    mpirun $root --oversubscribe --bind-to none --mca btl self,vader --mca coll_sm_priority 1 \
        --mca coll_tuned_use_dynamic_rules 1 -n "$ranks" "$BENCH" "$@"
}

fail() {
    echo "$*" >&2
    exit 1
}
