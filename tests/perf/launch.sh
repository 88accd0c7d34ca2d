#!/bin/sh
# The time of a launch of the bench, as ratios to an empty MPI program in the same run.
#
# usage: tests/perf/launch.sh BUILD [LAUNCHES]
#   The launches take turns, LAUNCHES of each (15), two ranks; needs mpicc. Prints the fastest and the middle
#   launch of each in seconds, with their ratios to the empty program with the same command line. The first
#   line is the empty program by Open MPI's defaults. No time makes it fail.
set -eu
build=${1:?usage: launch.sh BUILD [LAUNCHES]}
launches=${2:-15}
bench=$build/bin/gentables-bench
mpirun=$("$build/bin/gentables" lua "$(dirname -- "$0")/../mpirun.lua" 2 "$(nproc)")
root=""
[ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/empty.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    return MPI_Finalize();
}
END
mpicc -O2 "$work/empty.c" -o "$work/empty"
line="measure id=1 dtype=bfloat16 fusion=NONE num_tokens=1 hidden_size=1024 min_samples=5 max_samples=5"
echo "$line budget_us=1000 seed=1 op=allreduce mode=eager" >"$work/request"

# timed NAME COMMAND...: a line `NAME seconds`.
timed() {
    name=$1
    shift
    since=$(date +%s.%N)
    "$@" >"$work/out" 2>&1 </dev/stdin || { cat "$work/out" >&2; exit 1; }
    echo "$name $since $(date +%s.%N)" >>"$work/times"
}

# shellcheck disable=SC2086
turn() {
    timed defaults mpirun $root -n 2 "$work/empty" </dev/null
    timed empty $mpirun "$work/empty" </dev/null
    timed one $mpirun "$bench" -b 2K -e 2K --strategies MPI --samples 5 --budget 0.001 </dev/null
    timed all $mpirun "$bench" -b 2K -e 2K --samples 5 --budget 0.001 </dev/null
    timed serve $mpirun "$bench" --serve <"$work/request"
}

turn
: >"$work/times" # the first turn only fills the file cache
for _ in $(seq "$launches"); do turn; done
awk '
    { n[$1]++; times[$1, n[$1]] = $3 - $2 }
    function sort_times(name,    i, j, t) {
        for (i = 2; i <= n[name]; i++) {
            t = times[name, i]
            for (j = i - 1; j >= 1 && times[name, j] > t; j--) times[name, j + 1] = times[name, j]
            times[name, j + 1] = t
        }
    }
    function show(name, what) {
        printf "%-44s %8.3f %8.3f %8.2f %8.2f\n", what, times[name, 1], times[name, int((n[name] + 1) / 2)], \
            times[name, 1] / times["empty", 1], \
            times[name, int((n[name] + 1) / 2)] / times["empty", int((n["empty"] + 1) / 2)]
    }
    END {
        for (name in n) sort_times(name)
        printf "%-44s %8s %8s %8s %8s\n", "", "min (s)", "mid (s)", "min", "mid"
        show("defaults", "an empty program, by the defaults")
        show("empty", "an empty program")
        show("one", "the bench by hand, one cell of one strategy")
        show("all", "the bench by hand, one cell of all")
        show("serve", "the bench as a sweep starts it, one cell")
    }' "$work/times"
