#!/bin/sh
# How much faster Open MPI is with the files that gentables made than with its defaults, as ratios of one run.
#
# usage: tests/perf/ompi.sh BUILD [RANKS] [TABLES]
#   TABLES: the folder of ompi_tp{RANKS}.conf and its rules (default: tables/host); where it has none,
#   they are searched for first, into BUILD/perf_ompi.
#   Calls in a row, 256 B to 4 MiB, of float32 (DTYPE), after WARM_UP others (200); the files and the defaults
#   take turns for LAUNCHES launches each (5), and so do the defaults against themselves, which says what a
#   launch differs from the next. Per size the median over the launches counts. Nothing fails on a time.
set -eu
build=${1:?usage: ompi.sh BUILD [RANKS] [TABLES]}
ranks=${2:-2}
here=$(cd "$(dirname -- "$0")/../.." && pwd)
tables=${3:-$here/tables/host}
build=$(cd "$build" && pwd)
if [ ! -e "$tables/ompi_tp$ranks.conf" ]; then
    work=$build/perf_ompi
    mkdir -p "$work"
    cp "$here"/tables/host/benchmark.* "$here/tables/host/spec.lua" "$work"
    "$build/bin/gentables" sweep "$work/spec.lua" --out "$work" --transport --tp "$ranks"
    "$build/bin/gentables" generate --data-dir "$work" --arch host --out "$work" \
        --formats ompi-parameters
    tables=$work
fi
root=""
[ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
binding="--bind-to core"
[ "$ranks" -le "$(nproc)" ] || binding="--oversubscribe --bind-to none"

# launch NAME OPTION...: one launch; lines `NAME size time`.
launch() {
    name=$1
    shift
    # shellcheck disable=SC2086
    mpirun $root $binding -n "$ranks" "$@" "$build/bin/gentables-bench" --strategies MPI \
        -b 256 -e 4M -f 2 -d "${DTYPE:-float32}" \
        -n "${CALLS:-1000}" -w "${WARM_UP:-200}" --budget "${BUDGET:-0.05}" |
        awk -v name="$name" '!/^#/ { print name, $1, $6 }'
}

cd "$tables"
for turn in $(seq "${LAUNCHES:-5}"); do
    printf '\rlaunch %s' "$turn" >&2
    launch default
    launch files --tune "ompi_tp$ranks.conf"
    launch again
done | awk '
    function median(name, size,    list, n, i, j, t) {
        n = split(times[name, size], list, " ")
        for (i = 2; i <= n; i++) {
            t = list[i] + 0
            for (j = i - 1; j >= 1 && list[j] + 0 > t; j--) list[j + 1] = list[j]
            list[j + 1] = t
        }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    { times[$1, $2] = times[$1, $2] " " $3; if (!($2 in seen)) { seen[$2] = 1; order[++count] = $2 } }
    END {
        printf "\n%10s %12s %12s %8s %18s\n", "size (B)", "default (us)", "files (us)", "ratio", \
            "default/default"
        worst = worst_same = 1e9
        for (i = 1; i <= count; i++) {
            s = order[i]
            before = median("default", s); with = median("files", s); again = median("again", s)
            ratio = before / with; same = before / again; if (same > 1) same = 1 / same
            sum += log(ratio)
            if (ratio < worst) worst = ratio
            if (same < worst_same) worst_same = same
            printf "%10d %12.2f %12.2f %8.2f %18.3f\n", s, before, with, ratio, same
        }
        printf "geometric mean %.2f, worst %.2f; default against default at worst %.3f\n", exp(sum / count), \
            worst, worst_same
    }'
