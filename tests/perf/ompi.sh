#!/bin/sh
# How much faster Open MPI is with the files from gentables than with its defaults, as ratios of one run.
#
# usage: tests/perf/ompi.sh BUILD [RANKS] [TABLES]
#   TABLES: the folder of ompi_tp{RANKS}.conf and its rules (default: tables/host); if it has none, they are
#   searched for first, into BUILD/perf_ompi.
#   Calls in a row, 256 B to 4 MiB, of float32 (DTYPE), after WARM_UP others (200); the files and the defaults
#   take turns for LAUNCHES launches each (5), and so do the defaults against themselves, as a measure of the
#   difference between launches. Per size the median over the launches counts. No time makes it fail.
#   Each launch also times TWOSHOT, which does not use Open MPI: if that takes half as long again as in the
#   fastest launch, the machine was in another state, and a further launch replaces this one.
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

times=$(mktemp)
trap 'rm -f "$times"' EXIT

# launch NAME TURN OPTION...: one launch; lines `NAME TURN STRATEGY size time`.
launch() {
    name=$1
    turn=$2
    shift 2
    # shellcheck disable=SC2086
    mpirun $root $binding -n "$ranks" "$@" "$build/bin/gentables-bench" --strategies MPI,TWOSHOT \
        -b 256 -e 4M -f 2 -d "${DTYPE:-float32}" \
        -n "${CALLS:-1000}" -w "${WARM_UP:-200}" --budget "${BUDGET:-0.05}" |
        awk -v name="$name" -v turn="$turn" '!/^#/ { print name, turn, $5, $1, $6 }' >>"$times"
}

# The beginning of an awk program that reads the lines twice, first to select launches: is_counted[name,
# turn], the counted launches of each name, and the number of others.
counting='
    NR == FNR { if ($3 == "TWOSHOT") { control[$1, $2] += log($5); sizes[$1, $2]++ }; next }
    FNR == 1 {
        for (of in control) {
            control[of] /= sizes[of]
            if (least == "" || control[of] < least) least = control[of]
        }
        for (of in control) {
            split(of, part, SUBSEP)
            is_counted[of] = control[of] < least + log(1.5)
            if (is_counted[of]) counted[part[1]]++
            else others++
        }
    }'

cd "$tables"
launches=${LAUNCHES:-5} turn=0 least=0
while [ "$least" -lt "$launches" ] && [ "$turn" -lt $((4 * launches)) ]; do
    turn=$((turn + 1))
    printf '\rturn %s' "$turn" >&2
    launch default "$turn"
    launch files "$turn" --tune "ompi_tp$ranks.conf"
    launch again "$turn"
    least=$(awk "$counting"'
        END {
            least = counted["default"] + 0
            for (name in counted) if (counted[name] < least) least = counted[name]
            print "files" in counted && "again" in counted ? least : 0
        }' "$times" "$times")
done
awk "$counting"'
    function median(name, size,    list, n, i, j, t) {
        n = split(times[name, size], list, " ")
        for (i = 2; i <= n; i++) {
            t = list[i] + 0
            for (j = i - 1; j >= 1 && list[j] + 0 > t; j--) list[j + 1] = list[j]
            list[j + 1] = t
        }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    $3 == "MPI" && is_counted[$1, $2] {
        times[$1, $4] = times[$1, $4] " " $5
        if (!($4 in seen)) { seen[$4] = 1; order[++count] = $4 }
    }
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
        printf "launches that count: default %d, files %d, default again %d; in another state: %d\n", \
            counted["default"], counted["files"], counted["again"], others
    }' "$times" "$times"
