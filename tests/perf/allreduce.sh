#!/bin/sh
# How much faster ONESHOT and TWOSHOT are than MPI on this machine, as ratios of times of one run.
#
# usage: tests/perf/allreduce.sh BUILD [RANKS] [FUSION] [LAUNCH]
#   the default MPI_Allreduce, and the fastest MPI configuration, over the better of ONESHOT and TWOSHOT,
#   per size.
#   Each call is timed by itself, verified, and started together (bench/measure/harness.c). No time makes it
#   fail.
set -eu
build=${1:?usage: allreduce.sh BUILD [RANKS] [FUSION]}
ranks=${2:-2}
fusion=${3:-NONE}
hidden=""
[ "$fusion" = NONE ] || hidden="--hidden-size 4096"
mpirun=$("$build/bin/gentables" lua "$(dirname -- "$0")/../mpirun.lua" "$ranks" "$(nproc)")

# shellcheck disable=SC2086
$mpirun "$build/bin/gentables-bench" -b "${FROM:-256}" -e "${TO:-16M}" -f "${FACTOR:-2}" \
    --fusion "$fusion" \
    $hidden --budget "${BUDGET:-1}" |
    awk -v ranks="$ranks" -v fusion="$fusion" '
    /^#/ { if (NR == 1) print; next }
    $7 ~ /^#$/ || $6 == "#" { next }  # no time, with its reason
    {
        size = $1; name = $5; time = $6
        if (!(size in seen)) { seen[size] = 1; order[++count] = size }
        if (name == "MPI") mpi[size] = time
        if (name == "MPI_SM") sm[size] = time
        if (name ~ /^MPI/ && (!(size in best) || time < best[size])) { best[size] = time; who[size] = name }
        if (name !~ /^MPI/ && (!(size in ours) || time < ours[size])) {
            ours[size] = time; which[size] = name
        }
    }
    END {
        printf "%10s %10s %-8s %10s %10s %10s %-22s %8s %8s %8s\n", "size (B)", "ours (us)", "", "MPI (us)", \
            "MPI_SM", "best MPI", "", "MPI", "MPI_SM", "best"
        for (i = 1; i <= count; i++) {
            s = order[i]
            a = mpi[s] / ours[s]; b = sm[s] / ours[s]; c = best[s] / ours[s]
            la += log(a); lb += (b > 0 ? log(b) : 0); lc += log(c)
            if (i == 1 || a < worst_a) worst_a = a
            if (i == 1 || b < worst_b) worst_b = b
            if (i == 1 || c < worst_c) worst_c = c
            printf "%10d %10.2f %-8s %10.2f %10.2f %10.2f %-22s %8.2f %8.2f %8.2f\n", s, \
                ours[s], which[s], mpi[s], sm[s], best[s], who[s], a, b, c
        }
        printf "geometric mean: MPI %.2f, MPI_SM %.2f, best MPI %.2f; worst: %.2f, %.2f, %.2f\n", \
            exp(la / count), exp(lb / count), exp(lc / count), worst_a, worst_b, worst_c
    }'
