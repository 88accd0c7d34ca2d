# Computes metrics of GPU activity of real traces a second time, with Python's json and exact decimals, and
# compares: activity_oracle.py GENTABLES FOLDER. Shares no code and no list with the program. If it finds no
# value, the program must end with one line and exit code 2.
import csv
import gzip
import json
import math
import os
import subprocess
import sys
from decimal import Decimal

PROGRAM, FOLDER = sys.argv[1:3]
SIZES = {"Float": 4, "BFloat16": 2, "Half": 2, "Long": 8, "Int": 4, "Byte": 1, "Double": 8}
PEAK_TFLOPS = 989.5
failures, compared, refused = [], 0, 0


def ns(us):
    return int((Decimal(us) * 1000).to_integral_value())


class Trace:
    def __init__(self, name):
        self.path = os.path.join(FOLDER, name)
        with gzip.open(self.path) as source:
            events = json.loads(source.read(), parse_float=Decimal)["traceEvents"]
        complete = [e for e in events if e.get("ph") == "X"]
        self.kernels = [self.interval(e) for e in complete if e.get("cat") == "kernel"]
        self.copies = [self.interval(e) for e in complete if e.get("cat") == "gpu_memcpy"]
        self.sets = [self.interval(e) for e in complete if e.get("cat") == "gpu_memset"]
        self.steps = [ns(e["dur"]) for e in complete
                      if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")]
        self.ops = [e for e in complete if e.get("cat") == "cpu_op"]
        self.comms = [k for k in self.kernels if is_comms(k)]

    @staticmethod
    def interval(e):
        start = ns(e["ts"])
        return start, start + ns(e["dur"]), e["name"], e.get("args", {})


def is_comms(kernel):
    return any(part in kernel[2].lower() for part in ("nccl", "rccl", "cross_device_reduce", "multimem_", "::ep::internode::"))


def total(intervals):
    return sum(i[1] - i[0] for i in intervals)


# Sweeps over the ends of all intervals, counting what is open in each of the lists; sums the time for which
# `wanted(counts)` holds.
def swept(wanted, *lists):
    edges = sorted((at, change, which) for which, intervals in enumerate(lists)
                   for i in intervals for at, change in ((i[0], 1), (i[1], -1)))
    counts, before, time = [0] * len(lists), 0, 0
    for at, change, which in edges:
        if wanted(counts):
            time += at - before
        counts[which] += change
        before = at
    return time


def active(intervals):
    return swept(lambda open_: open_[0] > 0, intervals)


def span(trace):
    gpu = trace.kernels + trace.copies + trace.sets
    return max(i[1] for i in gpu) - min(i[0] for i in gpu)


def share(part, whole):
    return part / whole if part is not None and whole else None


def by_name(trace):
    sums = {}
    for start, stop, name, _ in trace.kernels:
        sums[name] = sums.get(name, 0) + stop - start
    return sums


def flops(trace):
    shaped = []
    for op in trace.ops:
        dims = op["args"].get("Input Dims")
        if dims and op["name"] in ("aten::mm", "aten::bmm"):
            shaped.append((dims[0], dims[1]))
        elif dims and op["name"] in ("aten::addmm", "aten::baddbmm"):
            shaped.append((dims[1], dims[2]))
    count = 0
    for a, b in shaped:
        product = 2 * b[-1]
        for size in a:
            product *= size
        count += product
    return count


def bandwidth(trace):
    told = [c for c in trace.copies if "bytes" in c[3]]
    return share(sum(c[3]["bytes"] for c in told), total(told))


NUMBERS = {
    "step_time": lambda t: sum(t.steps) / len(t.steps) / 1e6 if t.steps else None,
    "total_time": lambda t: span(t) / 1e6,
    "kernel_time": lambda t: total(t.kernels) / 1e6,
    "communication_time": lambda t: total(t.comms) / 1e6 if t.comms else None,
    "communication_fraction": lambda t: share(total(t.comms) or None, total(t.kernels)),
    "communication_overlap": lambda t: share(
        swept(lambda open_: open_[0] > 0 and open_[1] > 0, t.comms,
              [k for k in t.kernels if not is_comms(k)]), active(t.comms)),
    "gpu_utilisation": lambda t: share(active(t.kernels), span(t)),
    "dominant_kernel_share": lambda t: share(max(by_name(t).values()), total(t.kernels)),
    "moe_share": lambda t: share(sum(time for name, time in by_name(t).items()
                                     if "moe" in name.lower() or "expert" in name.lower()) or None,
                                 total(t.kernels)),
    "mfu": lambda t: share(flops(t) or None, span(t) * PEAK_TFLOPS * 1e3),
    "memory_bandwidth": bandwidth,
}


# The names of collectives in the metadata, or the names, of these traces' kernels.
def collective(kernel):
    told = kernel[3].get("Collective name")
    names = {"allreduce": "AllReduce", "broadcast": "Broadcast", "_allgather_base": "AllGather"}
    if told:
        return names[told]
    parts = {"SendRecv": "SendRecv", "multimem_all_reduce": "AllReduce", "::ep::internode::": "AllToAll"}
    return next((name for part, name in parts.items() if part in kernel[2]), "unknown")


def size(kernel):
    args = kernel[3]
    key = "Out msg nelems" if collective(kernel) == "AllGather" else "In msg nelems"
    return args[key] * SIZES[args["dtype"]] if key in args else None


def sized(trace, name):
    return [k for k in trace.comms if collective(k) == name and size(k) is not None]


def busbw(trace, name):
    factors = {"AllReduce": lambda n: 2 * (n - 1) / n, "AllGather": lambda n: (n - 1) / n}
    factor = factors.get(name, lambda n: 1)
    calls = sized(trace, name)
    if not calls:
        return None
    return sum(size(k) * factor(k[3]["Group size"]) for k in calls) / total(calls)


# The normal equations, in exact arithmetic.
def line(trace, name):
    points = [(Decimal(size(k)), Decimal(k[1] - k[0]) / 1000) for k in sized(trace, name)]
    if len({x for x, _ in points}) < 3:
        return None
    n, x, y = len(points), sum(p[0] for p in points), sum(p[1] for p in points)
    xx, xy = sum(p[0] * p[0] for p in points), sum(p[0] * p[1] for p in points)
    slope = (n * xy - x * y) / (n * xx - x * x)
    return float((y - slope * x) / n), float(slope)


TABLES = {
    "collective_calls": {"calls": lambda t, name: sum(collective(k) == name for k in t.comms),
                         "time_ms": lambda t, name: total(
                             [k for k in t.comms if collective(k) == name]) / 1e6},
    "collective_volume": {"bytes": lambda t, name: sum(size(k) for k in sized(t, name)) or None},
    "collective_bandwidth": {
        "algbw_gbps": lambda t, name: share(sum(size(k) for k in sized(t, name)), total(sized(t, name))),
        "busbw_gbps": busbw},
    "hockney": {"alpha_us": lambda t, name: line(t, name) and line(t, name)[0],
                "beta_us_per_byte": lambda t, name: line(t, name) and line(t, name)[1]},
}


def ask(metric, *traces):
    command = [PROGRAM, "metric", metric, "--json", "--peak-tflops", str(PEAK_TFLOPS)]
    for trace in traces:
        command += ["--trace", trace.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout:
        return None
    if done.returncode != 0:
        return {"value": "exit code %d: %s" % (done.returncode, done.stderr)}
    return json.loads(done.stdout)


def compare(what, found, expected, tolerance=1e-9):
    global compared, refused
    compared, refused = compared + (expected is not None), refused + (expected is None)
    if found is None or expected is None:
        same = found is expected
    else:
        same = isinstance(found, (int, float)) and abs(found - expected) <= tolerance * abs(expected)
    if not same:
        failures.append("%s: %r, not %r" % (what, found, expected))


def compare_tables(trace):
    for metric, columns in TABLES.items():
        found = ask(metric, trace)
        rows = {row["collective"]: row for row in (found or {}).get("collectives", [])}
        for name in sorted({collective(k) for k in trace.comms} | set(rows)):
            for key, compute in columns.items():
                compare("%s %s %s of %s" % (metric, name, key, trace.path), rows.get(name, {}).get(key),
                        compute(trace, name))


traces = {name: Trace(name) for name in sorted(os.listdir(FOLDER)) if name.endswith(".json.gz")}
for trace in traces.values():
    for metric, compute in NUMBERS.items():
        found = ask(metric, trace)
        compare("%s of %s" % (metric, trace.path), found and found["value"], compute(trace))
    compare_tables(trace)

# Against the reports of another analyser. Its times are of single precision, and only those of kernels that
# an operation launched: in one of the traces that is not all.
for name, trace in traces.items():
    reports = trace.path[:-len(".json.gz")] + "_csvs"
    if not os.path.isdir(reports):
        continue
    if all("External id" in kernel[3] for kernel in trace.kernels):
        with open(os.path.join(reports, "gpu_timeline.csv")) as source:
            timeline = {row["type"]: float(row["time ms"]) for row in csv.DictReader(source)}
        compare("total_time of " + name, ask("total_time", trace)["value"], timeline["total_time"], 1e-6)
        kernels = ask("kernel_time", trace)["ranks"][0]
        compare("busy_ms of " + name, kernels["busy_ms"], timeline["computation_time"], 1e-5)
    with open(os.path.join(reports, "GEMM.csv")) as source:
        gemms = [[float(row[key]) for key in ("param: M", "param: N", "param: K", "param: B", "name_count")]
                 for row in csv.DictReader(source)]
    modelled = ask("mfu", trace)["ranks"][0]
    compare("flops of " + name, modelled["flops"], sum(2 * math.prod(gemm) for gemm in gemms))

pair = [traces["sampled_rank-0.json.gz"], traces["sampled_rank-1.json.gz"]]
times = [active(t.kernels) for t in pair]
compare("load_imbalance", ask("load_imbalance", *pair)["value"], max(times) / min(times))
times = [total(t.comms) for t in pair]
compare("stragglers", ask("stragglers", *pair)["value"], (max(times) - min(times)) / max(times))
times = [total(t.kernels) for t in pair]
compare("kernel_time", ask("kernel_time", *pair)["value"], sum(times) / 2e6)

print("\n".join(failures))
print("%d traces: %d numbers compared, %d refused where there is none" % (len(traces), compared, refused))
sys.exit(1 if failures or not traces else 0)
