#!/bin/sh
# How long the metrics take as whole processes: prints figures, judges none.
#
#   sh tests/perf/metric.sh [GENTABLES]     default: build/bin/gentables; needs python3
#
# token_to_expert_assignment reads 1,600 gate logs of 50 MB (make_gate_logs.py); cat reads the same files, for
# what the machine needs at least. Each figure is the least of 30 runs.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
gentables=${1:-$here/../../build/bin/gentables}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# say NAME COMMAND...: the least wall time, and the least processor time, of its runs
say() {
    python3 - "$@" <<'END_OF_PROGRAM'
import resource, subprocess, sys, time
wall = processor = 1e9
def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
for _ in range(30):
    begin, before = time.perf_counter(), used()
    subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, check=True)
    wall, processor = min(wall, time.perf_counter() - begin), min(processor, used() - before)
print(f"  {sys.argv[1]:44} {wall * 1e3:8.1f} ms, {processor * 1e3:8.1f} ms on all cores")
END_OF_PROGRAM
}

python3 "$here/make_gate_logs.py" "$work/run"
echo "gate logs: $(find "$work/run" -name '*.json' | wc -l) files, $(du -sb "$work/run" | cut -f1) bytes"
say "token_to_expert_assignment" "$gentables" metric token_to_expert_assignment --trace "$work/run"
say "cat, one core" find "$work/run/baseline_gates_logs" -name '*.json' -exec cat {} +
