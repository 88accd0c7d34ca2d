#!/bin/sh
# What epilogues cost on this machine: times with each fusion as multiples of ONESHOT's without one, at the
# same shape, and what TWOSHOT_DIVIDED saves of TWOSHOT's epilogue. With a second build, by turns with it.
#
# usage: tests/perf/epilogues.sh BUILD [BEFORE]
#   BEFORE: a build of an earlier commit; all times are then divided by its ONESHOT without a fusion.
#   RANKS (2), FROM (64K), TO (4M), HIDDEN (8192), TURNS (5), BUDGET (0.1 s a time). Medians of the turns;
#   each call is verified, and no time makes it fail.
set -eu
build=${1:?usage: epilogues.sh BUILD [BEFORE]}
before=${2:-$build}
ranks=${RANKS:-2}
mpirun=$("$build/bin/gentables" lua "$(dirname -- "$0")/../mpirun.lua" "$ranks" "$(nproc)")
fusions=$("$build/bin/gentables-bench" --candidates | sed -n 's/^fusion name=//p')

# measure LABEL BUILD: lines LABEL FUSION BYTES STRATEGY MICROSECONDS.
measure() {
    strategies=ONESHOT,TWOSHOT
    if "$2/bin/gentables-bench" --candidates | grep -q "name=TWOSHOT_DIVIDED "; then
        strategies=$strategies,TWOSHOT_DIVIDED
    fi
    for fusion in $fusions; do
        $mpirun "$2/bin/gentables-bench" -b "${FROM:-64K}" -e "${TO:-4M}" -f 4 \
            --hidden-size "${HIDDEN:-8192}" --fusion "$fusion" --strategies $strategies \
            --budget "${BUDGET:-0.1}" |
            awk -v label="$1" -v fusion="$fusion" '
                /^#/ || $7 ~ /^#$/ || $6 == "#" { next } # no time, with its reason
                { print label, fusion, $1, $5, $6 }'
    done
}

turn=0
while [ "$turn" -lt "${TURNS:-5}" ]; do
    turn=$((turn + 1))
    [ "$before" = "$build" ] || [ $((turn % 2)) = 0 ] || measure before "$before"
    measure now "$build"
    [ "$before" = "$build" ] || [ $((turn % 2)) = 1 ] || measure before "$before"
done | sort -k1,4 -k5,5n | awk -v before="$before" -v build="$build" '
    { key = $1 " " $2 " " $3 " " $4; times[key, ++n[key]] = $5 }
    !($3 in seen) { seen[$3] = 1; sizes[++count] = $3 }
    !($2 in known) { known[$2] = 1; fusions[++kinds] = $2 }
    function median(key) {
        return n[key] == 0 ? 0 : (times[key, int((n[key] + 1) / 2)] + times[key, int(n[key] / 2) + 1]) / 2
    }
    function at(label, fusion, size, strategy) { return median(label " " fusion " " size " " strategy) }
    function ratio(time, unit) { return time > 0 && unit > 0 ? sprintf("%.2f", time / unit) : "" }
    END {
        first = before == build ? "now" : "before"
        printf "%10s %-32s %9s %9s %9s %9s %9s %8s\n", "size (B)", "fusion", "unit (us)", "ONESHOT", \
            "before", "TWOSHOT", "divided", "saved"
        for (i = 1; i <= count; i++) {
            for (j = i + 1; j <= count; j++) {
                if (sizes[j] + 0 < sizes[i] + 0) { swap = sizes[i]; sizes[i] = sizes[j]; sizes[j] = swap }
            }
            for (k = 1; k <= kinds; k++) {
                size = sizes[i]; fusion = fusions[k]
                unit = at(first, "NONE", size, "ONESHOT")
                two = at("now", fusion, size, "TWOSHOT")
                divided = at("now", fusion, size, "TWOSHOT_DIVIDED")
                epilogue = two - at("now", "NONE", size, "TWOSHOT")
                printf "%10d %-32s %9.1f %9s %9s %9s %9s %8s\n", size, fusion, unit, \
                    ratio(at("now", fusion, size, "ONESHOT"), unit), \
                    (first == "now" ? "" : ratio(at("before", fusion, size, "ONESHOT"), unit)), \
                    ratio(two, unit), ratio(divided, unit), \
                    (divided > 0 ? sprintf("%.0f %%", 100 * (two - divided) / epilogue) : "")
            }
        }
    }'
