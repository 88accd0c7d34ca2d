#!/bin/sh
# The report of a trace of 61 MB as a multiple of what simdjson's on-demand reader needs to walk the same
# file (walk.cpp), in processor time: prints figures, judges none.
#
#   GENTABLES_DATA=DIR sh tests/perf/walk.sh [GENTABLES [TURNS]]
#
# GENTABLES: default build/bin/gentables; needs python3, c++ and simdjson. The trace is derived from a real
# one by the scripts of DIR/tools. The walk, the report, and that of the program in the variable BEFORE, if it
# is set, run by turns, 15 unless TURNS has another number. The figures are medians: of the processor time of
# all threads (user and system), of that in user mode alone, and of the peak memory.
. "$(dirname -- "$0")/lib.sh"
data=${GENTABLES_DATA:?is the folder of the real inputs}

python3 "$data/tools/make_big.py" "$data/traces/mi300_resnet_rank0of8.json.gz" "$work/one.json" 4
c++ -O3 -std=c++17 "$here/walk.cpp" -o "$work/walk" -lsimdjson
"$work/walk" "$work/one.json"
python3 - "$work" "${2:-15}" "$gentables" ${BEFORE:+"$BEFORE"} <<'END_OF_PROGRAM'
import os, shutil, statistics, subprocess, sys
work, turns, *programs = sys.argv[1:]
trace, out = f"{work}/one.json", f"{work}/out"
commands = [[f"{work}/walk", trace]]
commands += [[program, "trace", "report", trace, "--csv", "--out", out] for program in programs]
def run(command):
    shutil.rmtree(out, ignore_errors=True)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, command
    return usage.ru_utime + usage.ru_stime, usage.ru_utime, usage.ru_maxrss / 1024
results = [[] for _ in commands]
for turn in range(int(turns)):
    order = list(zip(commands, results))
    for command, result in order if turn % 2 == 0 else reversed(order):
        result.append(run(command))
floor = None
for name, result in zip(["walk", "report", "report, before"], results):
    total, user, memory = [statistics.median(values) for values in zip(*result)]
    floor = floor or (total, user)
    print(f"  {name:15} {total:.3f} s: {total / floor[0]:.2f} x; in user mode {user:.3f} s: "
          f"{user / floor[1]:.2f} x; {memory:.0f} MB")
END_OF_PROGRAM
