#!/bin/sh
# Seconds from a fault to the line of the sweep that names the faulty rank: for each kind of fault, in each
# phase, of each rank. Prints times, judges none; tests/system/faults judges messages and leftovers.
#
#   sh tests/perf/faults.sh [BUILD]     default: build; needs Open MPI
#   GENTABLES_NIGHTLY=1 ctest -R faults_     more of the tests themselves
#
# A rank waits PATIENCE / 2 for another. At the end the sweep waits 3 s for the bench. mpirun detects a killed
# rank at once.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
build=$(cd "${1:-$here/../../build}" && pwd)
patience=${PATIENCE:-8}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/shm" "$work/tmp"
cat >"$work/spec.lua" <<'END'
return { arch = "host", tp = { 2 }, fusions = { "NONE" }, hidden_sizes = { 1024 }, num_tokens = { 1, 4 },
  strategies = { "MPI" }, limits = { cell_us = 20000, launches = 1 } }
END
launcher="$("$build/bin/gentables" lua "$here/../mpirun.lua") -n {ranks}"
launcher="$launcher --mca btl_vader_backing_directory $work/shm"
launcher="$launcher -x LD_PRELOAD=$build/tests/system/faults/libfault.so"

# named_after FAULT PHASE RANK: seconds from the fault to the first line that names the rank.
named_after() {
    rm -rf "$work/once" "$work"/benchmark.*
    TMPDIR=$work/tmp FAULT=$1 FAULT_AT=$2 FAULT_RANK=$3 FAULT_ONCE=$work/once \
        "$build/bin/gentables" sweep --out "$work" --bench "$build/bin/gentables-bench" --exhaustive \
        --patience "$patience" --launcher "$launcher" 2>&1 >/dev/null |
        while read -r line; do
            case $line in *"rank $3 "*) echo "$(date +%s.%N) $(stat -c %.9Y "$work/once")" ;; esac
        done | awk 'NR == 1 { printf "%.2f", $1 - $2 }'
}

# deadline FAULT PHASE
deadline() {
    case $1 in
    KILL) echo 0 ;;
    *)
        case $2 in
        teardown | finalize) echo 3 ;;
        *) awk -v all="$patience" 'BEGIN { print all / 2 }' ;;
        esac
        ;;
    esac
}

printf '%-6s %-10s %5s %13s %11s %7s\n' fault phase rank "deadline (s)" "named (s)" late
for fault in KILL STOP HANG; do
    for phase in start connected set-up warm-up timed teardown finalize; do
        for rank in 0 1; do
            allowed=$(deadline "$fault" "$phase")
            took=$(named_after "$fault" "$phase" "$rank")
            late=$(awk -v allowed="$allowed" -v took="${took:-inf}" 'BEGIN { printf "%.2f", took - allowed }')
            printf '%-6s %-10s %5d %13.1f %11s %7s\n' "$fault" "$phase" "$rank" "$allowed" "${took:-never}" \
                "$late"
        done
    done
done
left=$(find "$work/shm" "$work/tmp" -mindepth 1 | wc -l)
echo "left: $left files, $(pgrep -cf "$work/shm" || :) processes"
