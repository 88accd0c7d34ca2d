#!/bin/sh
# The same kernels as an SQLite export, as CSV of nsys stats in each unit, and as an export of the GUI give
# the same numbers, to the precision of the file; those of the SQLite export are python's.
. "$(dirname -- "$0")/lib.sh"

has_sqlite || skip "no SQLite"

cat >"$WORK/kernels.py" <<'END'
"""Makes kernels of a run: SQL for sqlite3, and from the same durations summaries by python's statistics."""
import json, random, statistics, sys

work, run = sys.argv[1], int(sys.argv[2])
random.seed(run)
names = ["fused_moe_kernel", 'void vllm::moe::topk<(int)4, "x">(float *, int)', "ncclKernel_AllToAll",
         "ncclDevKernel_AllReduce_Sum_f32", "ncclDevKernel_AllGather_RING_LL(args<(unsigned long)4096>)",
         "ampere_bf16_gemm", "ncclDevKernel_ReduceScatter_Sum", "void flash::fwd(int, int)",
         "ncclDevKernel_SendRecv", "reshape_and_cache_flash_kernel", "once"]
kernels = {}
with open(f"{work}/run{run}.sql", "w") as sql:
    sql.write("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);\n"
              "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT,\n"
              "  streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT);\n"
              "BEGIN;\n")
    at, rows = 10 ** 18, []
    for i, name in enumerate(names):
        sql.write("INSERT INTO StringIds VALUES (%d, '%s');\n" % (100 + i, name))
        calls = 1 if name == "once" else random.randint(2, 400)
        kernels[name] = [round(random.lognormvariate(9 + i % 5, 1.2)) + 1000 for _ in range(calls)]
        rows += [(duration, 100 + i) for duration in kernels[name]]
    random.shuffle(rows)
    for duration, name in rows:
        values = f"({at}, {at + duration}, 0, 7, 1, 1, {name}, 1)"
        sql.write(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES {values};\n")
        at += duration + 17
    sql.write("COMMIT;\n")

total = sum(map(sum, kernels.values()))
summary = []
for name, times in kernels.items():
    summary.append({"name": name, "total": sum(times), "calls": len(times), "avg": statistics.fmean(times),
                    "med": statistics.median(times), "min": min(times), "max": max(times),
                    "std": statistics.stdev(times) if len(times) > 1 else 0.0})
json.dump(summary, open(f"{work}/run{run}.json", "w"))

def quoted(name):
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name

columns = ["total", "avg", "med", "min", "max", "std"]
for unit, decimals in {"ns": 1, "us": 4, "ms": 7, "s": 10}.items():
    size = 10 ** (decimals - 1)
    with open(f"{work}/run{run}.{unit}.csv", "w", encoding="utf-8") as csv:
        csv.write("Processing [x.sqlite] with [reports/cuda_gpu_kern_sum.py]...\n\n"
                  f"Time (%),Total Time ({unit}),Instances,Avg ({unit}),Med ({unit}),"
                  f"Min ({unit}),Max ({unit}),StdDev ({unit}),Name\n")
        for k in sorted(summary, key=lambda k: -k["total"]):
            cells = {c: "%.*f" % (decimals, k[c] / size) for c in columns}
            csv.write("%.1f,%s,%d,%s,%s\n" % (k["total"] * 100 / total, cells["total"], k["calls"],
                      ",".join(cells[c] for c in columns[1:]), quoted(k["name"])))

def gui(ns, micro):
    for unit, size in (("s", 1e9), ("ms", 1e6), (micro + "s", 1e3)):
        if ns >= size:
            return "%.3f %s" % (ns / size, unit)
    return "%d ns" % round(ns)

for label, micro in (("greek", "\u03bc"), ("sign", "\u00b5")):
    with open(f"{work}/run{run}.{label}.csv", "w", encoding="utf-8", newline="") as csv:
        csv.write("Time,Total Time,Instances,Avg,Med,Min,Max,StdDev,Name\r\n")
        for k in sorted(summary, key=lambda k: k["name"]):
            times = ",".join(gui(k[c], micro) for c in columns[1:])
            csv.write("%.2f%%,%s,%d,%s,%s\r\n" % (k["total"] * 100 / total, gui(k["total"], micro),
                                                k["calls"], times, quoted(k["name"])))
END
for run in 1 2; do
    python3 "$WORK/kernels.py" "$WORK" "$run"
    sqlite3 "$WORK/run$run.sqlite" <"$WORK/run$run.sql"
done

compare() {
    succeeds metric communicationOverhead --csv1 "$WORK/run1.$1" --csv2 "$WORK/run2.$1" --out "$WORK/out.$1"
}
for source in sqlite ns.csv us.csv ms.csv s.csv greek.csv sign.csv; do compare "$source"; done

python3 - "$WORK" <<'END' || die "the sources do not agree"
import json, math, sys

work = sys.argv[1]
def results(source):
    return json.load(open(f"{work}/out.{source}/kernel_comparison_results.json"))

# The SQLite export against python's statistics.
exact = results("sqlite")
for run, side in ((1, "baseline"), (2, "eplb")):
    kernels = {k["name"]: k for k in json.load(open(f"{work}/run{run}.json"))}
    found, fused = exact[side], kernels["fused_moe_kernel"]
    def total(*words, but="nothing"):
        return sum(k["total"] for name, k in kernels.items()
                   if any(word in name.lower() for word in words) and but not in name)
    wanted = {
        "fused_moe_total_ms": fused["total"] / 1e6, "fused_moe_avg_us": fused["avg"] / 1e3,
        "fused_moe_med_us": fused["med"] / 1e3, "fused_moe_min_us": fused["min"] / 1e3,
        "fused_moe_max_us": fused["max"] / 1e3, "fused_moe_std_us": fused["std"] / 1e3,
        "fused_moe_instances": fused["calls"], "fused_moe_cv": fused["std"] / fused["avg"],
        "fused_moe_med_mean_ratio": fused["med"] / fused["avg"],
        "moe_total_time_ms": total("moe") / 1e6, "nccl_total_time_ms": total("nccl") / 1e6,
        "nccl_kernels": 5, "moe_kernels": 2,
        "alltoall_total_ms": total("alltoall") / 1e6, "allreduce_total_ms": total("allreduce") / 1e6,
        "attention_total_ms": total("flash", but="reshape_and_cache") / 1e6,
        "total_kernel_time_ms": total("") / 1e6, "nccl_time_pct": total("nccl") / total("") * 100,
        "communication_compute_ratio": total("nccl") / fused["total"],
        "total_kernel_instances": sum(k["calls"] for k in kernels.values()),
    }
    for key, value in wanted.items():
        assert math.isclose(found[key], value, rel_tol=1e-13), (side, key, found[key], value)
    top = sorted(kernels.values(), key=lambda k: -k["total"])[:5]
    assert [k["name"] for k in found["top5_kernels"]] == [k["name"] for k in top]

# All others against the SQLite export. A cell is off by half its last digit: in a CSV of nsys stats by
# 0.05 ns of the 1000 that a kernel takes at least, in one of the GUI by 0.0005 of its unit; a ratio by twice.
def leaves(value, path=()):
    if isinstance(value, (dict, list)):
        for key, inner in (value.items() if isinstance(value, dict) else enumerate(value)):
            yield from leaves(inner, path + (key,))
    else:
        yield path, value

reference = dict(leaves(exact))
for source in ("ns", "us", "ms", "s", "greek", "sign"):
    found = dict(leaves(results(source + ".csv")))
    assert found.keys() == reference.keys(), source
    for path, value in found.items():
        wanted = reference[path]
        if isinstance(wanted, float):
            tolerance = 1e-3 if source in ("greek", "sign") else 1e-4
            assert math.isclose(value, wanted, rel_tol=tolerance), (source, path, value, wanted)
        else:
            assert value == wanted, (source, path, value, wanted)
END
