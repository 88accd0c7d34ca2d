#!/bin/sh
# Digests of many traces (trace digest), and results over ranks from them: prints figures, judges none.
#
#   sh tests/perf/digests.sh [GENTABLES [RANKS [COLLECTIVES]]]
#
# GENTABLES: default build/bin/gentables; RANKS: default 1000; COLLECTIVES of each trace: default 128. Needs
# python3 and, below /tmp or $TMPDIR, 2 GB. The traces are generated: 16 of 61 MB, the others of 0.2 MB. Each
# figure is one run; memory is that of the largest process. `reports` is the work of the digests by another
# command: the report of each trace, as CSV.
. "$(dirname -- "$0")/lib.sh"
ranks=${2:-1000} collectives=${3:-128}

# measure NAME COMMAND...: prints wall and processor time, and the peak memory of a process.
measure() {
    name=$1
    shift
    python3 - "$name" "$@" <<'END_OF_PROGRAM'
import resource, subprocess, sys, time
name, *command = sys.argv[1:]
begin = time.perf_counter()
subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
wall, processor = time.perf_counter() - begin, usage.ru_utime + usage.ru_stime
print(f"  {name:32} {wall:8.2f} s, {processor:8.2f} s on all cores, {usage.ru_maxrss / 1024:5.0f} MB")
END_OF_PROGRAM
}

traces=$work/traces digests=$work/digests
mkdir "$traces"
"$gentables" lua "$here/make_ranks.lua" "$traces" "$ranks" "$collectives" 16 61000000
echo "$ranks traces of $(du -sm "$traces" | cut -f1) MB, $collectives collectives each"
measure "reports" "$gentables" trace report "$traces" --out "$out" --csv
measure "digests" "$gentables" trace digest "$traces" --out "$digests"
echo "  digests: $(du -sm "$digests" | cut -f1) MB"
measure "digests again" "$gentables" trace digest "$traces" --out "$digests"
measure "the same, --verify" "$gentables" trace digest "$traces" --out "$digests" --verify
for round in 1 2; do
    rm -rf "$work/kept"
    measure "collectives of traces, $round" "$gentables" trace collectives "$traces" --out "$out" --csv
    set -- "$gentables" trace collectives "$traces" --out "$out" --csv --digests "$work/kept"
    measure "the same, --digests, $round" "$@"
    measure "again, $round" "$@"
    measure "again, --verify, $round" "$@" --verify
done
rm -rf "$traces"
measure "collectives, CSV" "$gentables" trace collectives "$digests" --out "$out" --csv
measure "collectives, CSV and xlsx" "$gentables" trace collectives "$digests" --out "$out"
measure "variance" "$gentables" trace variance "$digests" --out "$out"
measure "gemm, CSV" "$gentables" trace gemm "$digests" --out "$out" --csv
measure "report over ranks, CSV" "$gentables" trace report -b "$digests" -e digest -f rank_ --csv
measure "pipeline, CSV" "$gentables" trace pipeline "$digests" --out "$out" --csv --without reports,merge
