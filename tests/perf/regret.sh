#!/bin/sh
# What the table of an adaptive sweep loses on a fresh sweep, off-grid shapes included, beside what the table
# of an exhaustive one loses (two sweeps of one machine: A/A), and how much less it measures. Live.
#
# usage: tests/perf/regret.sh BUILD [TP]
#   Three sweeps of five launches at one TP size (2): adaptive and exhaustive over the same grid, and a fresh
#   exhaustive one that also has hidden sizes of models between the grid's lines. Prints seconds and regrets;
#   nothing fails on a figure. Some ten minutes; the machine should have nothing else to do.
set -eu
build=${1:?usage: regret.sh BUILD [TP]}
ranks=${2:-2}
gentables=$(cd "$build" && pwd)/bin/gentables
work=$build/perf_regret
rm -rf "$work"
grid="1024, 2048, 4096, 8192"

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
    echo "$name: $(($(date +%s) - began)) s"
}

# regret NAME: of its table, on the fresh rows.
regret() {
    "$gentables" generate --data-dir "$work/$1" --arch host --out "$work/$1" --formats c,table \
        --against none >"$work/$1/log"
    echo "the table of the $1 sweep, on fresh rows:"
    "$gentables" regret --table "$work/$1/allreduce_table.h" --rows "$work/fresh/benchmark.tp$ranks.host.csv"
}

spec adaptive "$grid"
spec exhaustive "$grid"
spec fresh "1024, 2048, 2880, 3584, 4096, 5120, 6144, 7168, 8192"
sweep adaptive
sweep exhaustive --exhaustive
sweep fresh --exhaustive
regret adaptive
regret exhaustive
"$gentables" diff "$work/exhaustive" "$work/adaptive" --fail-on material ||
    echo "two sweeps of this machine differ materially, or so it seems"
