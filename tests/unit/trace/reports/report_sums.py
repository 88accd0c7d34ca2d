# Checks the sums of a report against the trace by other means: python3 report_sums.py TRACE REPORT_FOLDER.
#
# Has its own reader and its own computation of busy times: it counts the running events between any two ends,
# and does not merge.
import csv
import gzip
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

COMMUNICATION = re.compile("nccl|rccl|cross_device_reduce|multimem_|::ep::internode::", re.I)
COPY = re.compile("^(MEMORY_COPY_|__amd_rocclr_copyBuffer)")


def gpu_events(path):
    text = gzip.open(path).read().decode("utf-8", "replace")
    events = json.loads(text, strict=False)["traceEvents"]
    kinds = ("kernel", "gpu_memcpy", "gpu_memset")
    return [event for event in events if event.get("ph") == "X" and event.get("cat") in kinds]


def kind_of(event):
    if event["cat"] == "gpu_memcpy" or COPY.search(event["name"]):
        return "copy"
    return "communication" if COMMUNICATION.search(event["name"]) else "computation"


def times(events):
    """µs of each kind, exposed and in all, by a sweep over all starts and ends."""
    ends = []
    for event in events:
        start, stop = float(event["ts"]), float(event["ts"]) + float(event["dur"])
        ends += [(start, 1, kind_of(event)), (stop, -1, kind_of(event))]
    ends.sort(key=lambda end: end[0])
    running, total, last = Counter(), Counter(), ends[0][0]
    for at, step, kind in ends:
        length = at - last
        busy = [one for one in ("computation", "communication", "copy") if running[one] > 0]
        for one in busy:
            total[one] += length
        if busy:
            total["busy"] += length
            total["exposed " + busy[0]] += length
        running[kind] += step
        last = at
    total["total"] = max(end[0] for end in ends) - ends[0][0]
    return total


def rows(folder, sheet):
    path = Path(folder) / f"{sheet}.csv"
    return list(csv.DictReader(path.open(encoding="utf-8", newline=""))) if path.exists() else []


def check(what, got, want, tolerance=1e-9):
    if not math.isclose(got, want, rel_tol=tolerance, abs_tol=1e-6):
        raise SystemExit(f"{what} is {got}, not {want}")


def main(trace, folder):
    events = gpu_events(trace)
    kernels = [event for event in events if event["cat"] == "kernel"]
    summary = rows(folder, "kernel_summary")
    check("kernels", sum(int(row["Kernel duration (µs)_count"]) for row in summary), len(kernels), 0)
    check("kernel time", sum(float(row["Kernel duration (µs)_sum"]) for row in summary),
          math.fsum(float(event["dur"]) for event in kernels))
    short = sum(float(event["dur"]) < 10 for event in kernels)
    check("short kernels", sum(int(row["count"]) for row in rows(folder, "short_kernel_histogram")), short, 0)

    timeline = {row["type"]: float(row["time ms"]) * 1e3 for row in rows(folder, "gpu_timeline")}
    wanted = times(events)
    for name, mine in (("computation_time", "computation"), ("total_comm_time", "communication"),
                       ("total_memcpy_time", "copy"), ("busy_time", "busy"), ("total_time", "total"),
                       ("exposed_comm_time", "exposed communication"), ("exposed_memcpy_time", "exposed copy")):
        check(name, timeline[name], wanted[mine], 1e-7)
    check("idle_time", timeline["idle_time"], wanted["total"] - wanted["busy"], 1e-7)

    launched = sum(float(row["total_direct_kernel_time_ms"]) for row in rows(folder, "ops_summary"))
    check("ops by category", sum(float(row["total_direct_kernel_time_ms"])
                                 for row in rows(folder, "ops_summary_by_category")), launched)
    check("ops by arguments", sum(float(row["total_direct_kernel_time_sum"])
                                  for row in rows(folder, "ops_unique_args")) / 1e3, launched)
    print(f"{trace}: {len(events)} GPU events: the sums agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
