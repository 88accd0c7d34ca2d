#!/bin/sh
# The time of the metrics as whole processes: prints figures, judges none.
#
#   sh tests/perf/metric.sh [GENTABLES]     default: build/bin/gentables; needs python3
#
# token_to_expert_assignment reads 1,600 gate logs of 50 MB (make_gate_logs.py); cat reads the same files, as
# a lower bound on this machine. communicationOverhead compares two kernel summaries of 94 kernels, made up;
# `metric plot` draws 14 runs. Each figure is the least of 30 runs.
. "$(dirname -- "$0")/lib.sh"

# report NAME COMMAND...: prints the least wall time, and the least processor time, of its runs
report() {
    name=$1
    shift
    least_of_all 30 "$@" | awk -v name="$name" \
        '{ printf "  %-44s %8.1f ms, %8.1f ms on all cores\n", name, $1 * 1e3, $2 * 1e3 }'
}

python3 "$here/make_gate_logs.py" "$work/run"
echo "gate logs: $(find "$work/run" -name '*.json' | wc -l) files, $(du -sb "$work/run" | cut -f1) bytes"
report "token_to_expert_assignment" "$gentables" metric token_to_expert_assignment --trace "$work/run"
report "cat, one core" find "$work/run/baseline_gates_logs" -name '*.json' -exec cat {} +

python3 - "$work" <<'END_OF_PROGRAM'
import json, os, random, sys
work = sys.argv[1]
random.seed(1)
for name in "off", "on":
    with open(f"{work}/{name}.csv", "w") as out:
        print("Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name",
              file=out)
        for kernel in range(94):
            kinds = "fused_moe_kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "flash_fwd", "gemm"
            kind = kinds[kernel % 4]
            total, calls = random.randrange(10**6, 10**9), random.randrange(10, 10**4)
            mean = total / calls
            print(f'1.0,{total},{calls},{mean:.1f},{mean:.1f},{int(mean / 2)},{int(mean * 3)},{mean / 4:.1f},'
                  f'"{kind}<{kernel}, 1>"', file=out)
for framework, word in ("vllmTP4", "baseline"), ("vllmEP4", "defaultall2all"):
    for seqs, tokens in (8, 8192), (16, 8192), (32, 8192), (64, 8192), (32, 2048), (32, 4096), (32, 16384):
        run = f"{work}/runs/Mixtral8x7B-{framework}-Perlmutter[{word}_{seqs}_{tokens}]-group12"
        os.makedirs(run + "/results_json")
        with open(run + "/workload.yaml", "w") as out:
            out.write("workload: {model: {phase: inference}}\n")
        with open(run + "/results_json/result.json", "w") as out:
            json.dump({"mean_ttft_ms": 4000 + random.random() * seqs}, out)
END_OF_PROGRAM
echo "two kernel summaries of 94 kernels; 14 runs"
report "communicationOverhead" "$gentables" metric communicationOverhead --csv1 "$work/off.csv" \
    --csv2 "$work/on.csv" --out "$work"
report "metric plot TTFT" "$gentables" metric plot TTFT --traces "$work/runs" --out "$work"
report "gentables --version" "$gentables" --version
