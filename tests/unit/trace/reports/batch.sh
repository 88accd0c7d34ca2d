#!/bin/sh
# trace report -b: a report over ranks for each folder of traces, as documented: names, defaults, filters, a
# configuration that fails; and the sheets of traces made here, with sums computed by hand.
# Needs: zlib xlsx
. "$SOURCE/tests/lib.sh"

needs python3

# Rank R of a configuration: GEMMs with kernels of 20+R and 30+R µs, the second with a copy of 4 µs first; a
# convolution; a kernel without External id; a collective; a memcpy.
python3 - "$WORK" <<'PYTHON'
import json
import os
import sys

events = []


def op(name, start, kernels, dims, **more):
    number = len(events) + 1
    events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": 50,
                   "args": {"External id": number, "Input Dims": dims, "Input type": ["float"] * len(dims),
                            "Input Strides": [[1] * len(dim) for dim in dims],
                            "Concrete Inputs": [""] * len(dims)}})
    for i, (kernel, duration) in enumerate(kernels):
        link, at = number * 10 + i, start + 10 * i
        args = {"correlation": link, "External id": number, "stream": 7}
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                       "ts": at + 1, "dur": 2, "args": {"correlation": link, "External id": number}})
        events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7,
                       "ts": start + 100 + 50 * i, "dur": duration, "args": dict(args, **more)})


def trace(rank):
    events.clear()
    mm = [[4, 8], [8, 2]]
    op("aten::mm", 1000, [("gemm_a", 20 + rank)], mm)
    op("aten::mm", 2000, [("void at::native::direct_copy_kernel_cuda(int)", 4), ("gemm_b", 30 + rank)], mm)
    op("aten::add", 3000, [("void at::native::vectorized_elementwise_kernel<1>", 5)], [[4, 8], [4, 8], []])
    op("record_param_comms", 4000, [("ncclDevKernel_AllReduce", 40)], [], **{"Collective name": "allreduce",
       "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float",
       "Process Group Name": "0", "Process Group Ranks": "[0, 1]"})
    events.append({"ph": "X", "cat": "kernel", "name": "lone", "pid": 0, "tid": 7, "ts": 5000, "dur": 3,
                   "args": {"stream": 7}})
    events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 5010,
                   "dur": 8, "args": {"stream": 7}})
    return json.dumps({"distributedInfo": {"rank": rank, "world_size": 2},
                       "deviceProperties": [{"name": "a GPU", "numSms": 132}], "traceEvents": events})


for configuration in "a", "b", "sub/c":
    folder = "%s/profiles/%s" % (sys.argv[1], configuration)
    os.makedirs(folder)
    for rank in 0, 1:
        with open("%s/traces_rank_%d_step_8.json" % (folder, rank), "w") as file:
            file.write(trace(rank))
PYTHON
base=$WORK/profiles
echo "not a rank" >"$base/a/notes_step_8.json"

# The defaults: one rank. A dry run writes nothing.
succeeds trace report -b "$base" -d
[ "$(grep -c ' -> ' "$stdout")" = 3 ] || die "not these configurations"
[ "$(grep -c '  rank 0 ' "$stdout")" = 3 ] || die "not these traces"
[ ! -e "$base/a/a_rank_0_performance_report.xlsx" ] || die "a dry run writes"
one_line 'without -f only rank 0 is reported; -f rank also reports 3 traces of other ranks'
succeeds trace report -b "$base" --csv
grep -q "written   $base/sub/c/c_rank_0_performance_report_csvs: 1 rank$" "$stdout" || die "c is not written"
[ ! -e "$base/a/a_rank_0_performance_report_csvs/nccl_long.csv" ] || die "a sheet of collectives for one rank"

# All ranks; b cannot be read, and its earlier reports stay.
for rank in 0 1; do echo '{"traceEvents": [{]}' >"$base/b/traces_rank_${rank}_step_8.json"; done
mkdir "$base/b/b_step_8_performance_report_csvs"
echo before >"$base/b/b_step_8_performance_report_csvs/gemm.csv"
ends_with 1 "$GENTABLES" trace report -b "$base" -f step_8 -a --csv
has "^gentables: $base/b: no report: .*traces_rank_0_step_8.json: byte" "$stderr"
gpu='^gentables: note: the traces do not name their GPU ("a GPU"), so .*; --gpu NAME gives'
[ "$(grep -c "$gpu" "$stderr")" = 1 ] || die "not one line on the GPU of two reports"
[ "$(cat "$base/b/b_step_8_performance_report_csvs/gemm.csv")" = before ] || die "what was there is gone"
[ -e "$base/sub/c/c_step_8_performance_report_csvs/gemm.csv" ] || die "b ended the batch"
csvs=$base/a/a_step_8_performance_report_csvs
python3 - "$csvs" <<'PYTHON' || die "the sheets differ"
import csv
import math
import os
import statistics
import sys


def read(name):
    with open("%s/%s.csv" % (sys.argv[1], name), newline="") as file:
        return list(csv.DictReader(file))


def near(text, number):
    assert math.isclose(float(text), number, rel_tol=1e-9, abs_tol=1e-12), (text, number)


def check_times(row, title, values):
    near(row[title + "_mean"], statistics.mean(values))
    near(row[title + "_std"], statistics.stdev(values))
    near(row[title + "_sum"], sum(values))


expected = {"gemm", "conv", "attn", "un_elemwise", "bin_elemwise", "kernel_launchers", "gpu_timelines",
            "linked_short_kernels", "unlinked_short_kernels", "short_cpu_op_counts", "cuda_events_summary",
            "grouped_breakdown", "nccl_summary_implicit_sync", "nccl_summary_long", "nccl_long",
            "nccl_implicit_sync", "straggler_summary", "kernels_0", "kernels_1"}
assert expected <= {name[:-4] for name in os.listdir(sys.argv[1])}, os.listdir(sys.argv[1])

[mm] = read("gemm")
assert (mm["name"], mm["param: M"], mm["param: N"], mm["param: K"], mm["name_count"]) == \
    ("aten::mm", "4", "2", "8", "4"), mm
check_times(mm, "Kernel Time (µs)", [20, 34, 21, 35])
check_times(mm, "Non-Data-Mov Kernel Time (µs)", [20, 30, 21, 31])
near(mm["GFLOPS_first"], 2 * 4 * 2 * 8 / 1e9)
near(mm["TFLOPS/s_mean"], statistics.mean(128 / (t * 1e6) for t in [20, 34, 21, 35]))
near(mm["Non-Data-Mov TFLOPS/s_mean"], statistics.mean(128 / (t * 1e6) for t in [20, 30, 21, 31]))
near(mm["kernel_time_sum_cum_pct"], 1)
[add] = read("bin_elemwise")
assert add["name"] == "aten::add" and add["Kernel Time (µs)_sum"] == "10.0", add
assert read("conv") == [] and read("attn") == [] and read("un_elemwise") == []

launchers = {row["name"]: row for row in read("kernel_launchers")}
assert set(launchers) == {"aten::mm", "aten::add"}, launchers
near(launchers["aten::mm"]["total_direct_kernel_time_sum"], 110)
near(launchers["aten::mm"]["Percentage (%)"], 100 * 110 / 120)

total = {row["type"]: row for row in read("gpu_timelines")}["computation_time"]
near(total["rank_0 time ms"], 59 / 1e3)
near(total["rank_1 time ms"], 61 / 1e3)
near(total["average time ms"], 60 / 1e3)
near(total["std time ms"], statistics.stdev([0.059, 0.061]))

linked = {row["Kernel name"]: row for row in read("linked_short_kernels")}
assert len(linked) == 2 and all(row["Short Kernel count"] == "2" for row in linked.values()), linked
[lone] = read("unlinked_short_kernels")
assert (lone["Kernel name"], lone["Short Kernel count"], lone["Parent cpu_op"]) == ("lone", "2", ""), lone
assert {row["Parent cpu_op"]: row["Short Kernel count"] for row in read("short_cpu_op_counts")} == \
    {"aten::mm": "2", "aten::add": "2"}
events = {(row["category"], row["name"]): row for row in read("cuda_events_summary")}
assert events["cuda_runtime", "cudaLaunchKernel"]["count"] == "10", events
near(events["gpu_memcpy", "Memcpy HtoD"]["duration (µs)_sum"], 16)
groups = {row["Group"]: float(row["Time (s)"]) for row in read("grouped_breakdown")}
assert list(groups) == ["Attention", "GEMM", "Conv", "Norm", "UpSample", "Pad", "Elemwise", "Concat", "MoE",
                        "Triton", "Comms", "Memcpy", "Other", "Total"], groups
for group, time in {"GEMM": 55, "Elemwise": 5, "Comms": 40, "Memcpy": 8, "Other": 3, "Total": 111}.items():
    near(groups[group], time / 1e6)
assert [row["name"] for row in read("kernels_1")][-2:] == ["lone", "Memcpy HtoD"]
assert read("kernels_1")[0]["parent"] == "aten::mm" and read("kernels_1")[0]["dur"] == "21.0"
PYTHON

# The report's name, the pattern, packed traces.
mkdir "$base/d" && gzip -c "$base/a/traces_rank_0_step_8.json" >"$base/d/node-r-0.json.gz"
succeeds trace report -b "$base/d" -e gz -p r- -f node- d/ -o "$WORK/named.xlsx" --csv
[ -e "$WORK/named_csvs/gemm.csv" ] || die "the report has another name"

# Both spellings of the rank in names, rank_0 and rank0; the paths that are there are printed.
mkdir "$base/e" && cp "$base/a/traces_rank_0_step_8.json" "$base/e/rank0.json"
cp "$base/a/traces_rank_1_step_8.json" "$base/e/rank1.json"
succeeds trace report -b "$base/e" --csv
[ -e "$base/e/e_rank_0_performance_report_csvs/gemm.csv" ] || die "rank0.json is not found"
succeeds trace report -b "$base/e" -f rank
sed 's/^written   //; s/: 2 ranks$//; s/: the page to open first$//' "$stdout" >"$WORK/written"
[ -s "$WORK/written" ] || die "no path is printed"
while IFS= read -r path; do [ -e "$path" ] || die "$path is printed and is not there"; done <"$WORK/written"
page=$base/e/e_rank_performance_report.html
has 'op with most time: aten::mm \(M 4, N 2, K 8(, B 1)?\), 0.110 ms over all ranks' "$page"
# One collective shows nothing about who is late.
has 'no rank stands out.*most often rank [01], in 100.0 % of 1 coll.*; chance alone gives 50.0 %' "$page"
rejects 'has rank_0, rank-0, rank\[0, rank0 in its path' trace report -b "$base/d" -e txt

# Names of torch's own handler have no ranks, and end in .gz: the lines lead to a command that reads them.
mkdir "$WORK/packed"
for rank in 0 1; do
    gzip -c "$base/a/traces_rank_${rank}_step_8.json" >"$WORK/packed/node_12$rank.17000.pt.trace.json.gz"
done

# Invalid input: one line.
rejects 'no file below ends in .json and has absent in its path' trace report -b "$base" -f absent
rejects 'none of 7 files has "step-" and a number in its name; -p TEXT gives the text' trace report \
    -b "$base" -f step_8 -p step-
rejects '2 files end in .gz: give -e gz' trace report -b "$WORK/packed"
rejects 'none of 2 files has "rank" .*; or run gentables trace pipeline .*/packed, which' trace report \
    -b "$WORK/packed" -e gz
succeeds trace pipeline "$WORK/packed" --csv --without plots,merge
rejects '-o names one report, and there are 3 configurations' trace report -b "$base" -f rank_0 \
    -o "$WORK/x.xlsx"
rejects 'absent: cannot be read' trace report -b "$base/absent"
rejects '-b: .*is not a folder' trace report -b "$base/a/traces_rank_0_step_8.json"
rejects 'out does not go with -b' trace report -b "$base" --out "$WORK/x"
rejects 'dry-run requires -b' trace report "$base/a" --out "$WORK/x" -d
rejects 'trace report needs --out DIR' trace report "$base/a"
cp "$base/a/traces_rank_0_step_8.json" "$base/a/traces_rank_0_step_9.json"
rejects 'traces_rank_0_step_8.json and .*step_9.json are both of rank 0; give a further -f' trace report \
    -b "$base/a"
