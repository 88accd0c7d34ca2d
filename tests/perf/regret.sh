#!/bin/sh
# The loss of the table of an adaptive sweep on a fresh sweep, off-grid shapes included, beside the loss of
# the table of an exhaustive one (two sweeps of one machine: A/A), and how much less it measures; how often
# two sweeps of one machine seem to differ, and whether a strategy that became 10 % slower is found. Live.
#
# usage: tests/perf/regret.sh BUILD [TP [SWEEPS]]
#   At one TP size (2): SWEEPS (5) adaptive sweeps and two exhaustive ones over the same grid, of five
#   launches each, and a fresh exhaustive one that also has hidden sizes between the grid's lines. No figure
#   makes it fail. Takes about five minutes, on an otherwise idle machine.
set -eu
build=${1:?usage: regret.sh BUILD [TP [SWEEPS]]}
ranks=${2:-2}
sweeps=${3:-5}
here=$(cd "$(dirname -- "$0")" && pwd)
gentables=$(cd "$build" && pwd)/bin/gentables
work=$build/perf_regret
rm -rf "$work"
grid="1024, 2048, 2880, 4096, 5120, 7168, 8192"

# spec NAME HIDDEN_SIZES: a folder with a spec.
spec() {
    mkdir -p "$work/$1"
    cat >"$work/$1/spec.lua" <<END
return {
  arch = "host", tp = { $ranks }, dtypes = { "bfloat16" }, fusions = { "NONE", "RESIDUAL_RMS_NORM" },
  hidden_sizes = { $2 }, num_tokens = { 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256 },
  strategies = { "MPI", "ONESHOT", "TWOSHOT", "MPI_RING", "MPI_RABENSEIFNER" },
  limits = { message_bytes = 4194304, cell_us = ${CELL_US:-40000}, min_samples = 7, max_samples = 400 },
  table = { dtype = "bfloat16", op = "allreduce", mode = "eager" },
}
END
}

# sweep NAME OPTION...: measures; prints the seconds it took.
sweep() {
    name=$1
    shift
    began=$(date +%s)
    "$gentables" sweep "$work/$name/spec.lua" --out "$work/$name" "$@" >"$work/$name/log" 2>&1 || {
        cat "$work/$name/log" >&2
        exit 1
    }
    measured=$(sed -n 's/.*measured for \([0-9.]*\) s.*/\1/p' "$work/$name/log")
    echo "$name: measured for $measured s, took $(($(date +%s) - began)) s"
}

# regret NAME: prints the regret of its table on the fresh rows.
regret() {
    "$gentables" generate --data-dir "$work/$1" --arch host --out "$work/$1" --formats c,table \
        --against none >"$work/$1/log"
    echo "the table of the $1 sweep, on fresh rows:"
    "$gentables" regret --table "$work/$1/allreduce_table.h" --rows "$work/fresh/$rows"
}

# differs NAME: whether its rows seem to be of another machine than those of the first exhaustive sweep. The
# table of that sweep stays if no difference is found.
differs() {
    "$gentables" generate --data-dir "$work/$1" --arch host --out "$work/$1" --formats table \
        --against "$work/exhaustive1/table.csv" >"$work/$1/log"
    ! "$gentables" diff "$work/exhaustive1" "$work/$1" --fail-on material >"$work/$1/diff"
}

# count NAME...: how many of these sweeps differ.
count() {
    total=0
    for name in "$@"; do
        if differs "$name"; then total=$((total + 1)); fi
    done
    echo "$total of $#"
}

adaptive=$(seq -f 'adaptive%g' "$sweeps")
exhaustive="exhaustive1 exhaustive2"
for name in $adaptive $exhaustive; do spec "$name" "$grid"; done
spec fresh "1024, 1472, 2048, 2880, 3584, 4096, 5120, 5824, 7168, 8192"
rows=benchmark.tp$ranks.host.csv

total=0
for name in $adaptive; do
    sweep "$name"
    total=$(echo "$total $measured" | awk '{ print $1 + $2 }')
done
for name in $exhaustive; do sweep "$name" --exhaustive; done
echo "$total $sweeps $measured" |
    awk '{ printf "adaptive: 1/%.1f of the time that the exhaustive sweep measured for\n", $3 * $2 / $1 }'
sweep fresh --exhaustive
for name in $exhaustive $adaptive; do regret "$name"; done

slower=
for strategy in ONESHOT TWOSHOT; do
    for name in exhaustive2 $adaptive; do
        "$gentables" lua "$here/slower.lua" "$work/$name/$rows" "$strategy" 1.1 "$work/$name.$strategy"
        cp "$work/$name/spec.lua" "$work/$name.$strategy"
        slower="$slower $name.$strategy"
    done
done
# shellcheck disable=SC2086 # names without spaces
echo "$(count exhaustive2 $adaptive) sweeps of this machine differ materially from the first exhaustive one"
# shellcheck disable=SC2086
echo "$(count $slower) do with one strategy 10 % slower"
