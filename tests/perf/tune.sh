#!/bin/sh
# The time of a pass over many ops beyond the calls themselves, with data that are filled and checked: three
# candidates, 5 warm-ups and 20 samples each, ranks already started. Prints both kinds of synchronisation, and
# fails if 100 ops take more than 0.1 s up to 64 KiB, or 0.5 s at 1 MiB.
#   sh tests/perf/tune.sh BUILD
set -eu
bench=${1:-build}/bin/gentables-bench
mpirun=$("${1:-build}/bin/gentables" lua "$(dirname -- "$0")/../mpirun.lua" 2 2)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pass_input BYTES...: 100 ops over these sizes.
pass_input() {
    echo "pass samples=20 warm_up=5 seed=1 sync=both"
    i=0
    while [ $i -lt 100 ]; do
        for bytes in "$@"; do
            [ $i -lt 100 ] || break
            case $((i % 4)) in
            0) op=allreduce three=MPI,ONESHOT,TWOSHOT ;;
            1) op=allgather three=MPI,DIRECT,MPI_BRUCK ;;
            2) op=reducescatter three=MPI,DIRECT,MPI_BASIC_LINEAR ;;
            3) op=alltoall three=MPI,DIRECT,MPI_PAIRWISE ;;
            esac
            echo "measure op=$op dtype=bfloat16 count=$((bytes / 2)) strategies=$three"
            i=$((i + 1))
        done
    done
}

# passes NAME MOST_MS BYTES...
passes() {
    name=$1
    most=$2
    shift 2
    pass_input "$@" >"$work/input"
    $mpirun "$bench" --pass "$work/input" | sed -n 's/^pass //p' | tr ' ' '\n' >"$work/cost"
    of() { sed -n "s/^$1=//p" "$work/cost"; }
    awk -v name="$name" -v most="$most" -v total="$(of total_us)" -v calls="$(of calls_us)" \
        -v op_total="$(of op_total_us)" -v op_calls="$(of op_calls_us)" 'BEGIN {
        once = (total - calls) / 1000; by_op = (op_total - op_calls) / 1000
        printf "%s: 100 ops in one pass %.1f ms beyond the calls (%.1f ms), ", name, once, calls / 1000
        printf "op by op %.1f ms; at most %d ms\n", by_op, most
        exit once > most }'
}

status=0
passes "1 KiB to 64 KiB" 100 1024 4096 16384 65536 || status=1
passes "1 MiB" 500 1048576 || status=1
exit $status
