#!/bin/sh
# On the real GUI exports the comparison gives the results of the tool that defined it; the figures are that
# tool's.
. "$(dirname -- "$0")/lib.sh"

skip_without_data eplb
succeeds metric communicationOverhead --csv1 "$data/EPLBOFF.csv" --csv2 "$data/EPLBON.csv" --out "$WORK/out"
tail -n 1 "$stdout" | grep -q '^4 of 8 improved, .*: mixed results$' || die "another verdict"
# The expected figures by row: without and with load balancing.
prints() {
    grep -Fq "$1" "$stdout" || die "no row $1"
    grep -F "$1" "$stdout" | grep -Eq " $2 +$3 " || die "$1 is not $2 and $3"
}
prints 'fused_moe total (ms)' 102664.00 108419.00
prints 'fused_moe average (us)' 383.682 398.684
prints 'fused_moe CV' 6.442835473126182 6.135184757853337
prints 'NCCL total (ms)' 85965.246 92534.086
prints 'AllReduce: total (ms)' 1272.246 1927.801
prints 'AllReduce: calls' 4191 4259
prints 'all kernels: total (ms)' 212526.338643 224513.176144
prints 'NCCL total / fused_moe total' 0.837 0.853

python3 - "$WORK/out/kernel_comparison_results.json" <<'END' || die "other results"
import json, sys
results = json.load(open(sys.argv[1]))
wanted = {
    "fused_moe_total_ms": (102664.0, 108419.0), "fused_moe_avg_us": (383.682, 398.684),
    "fused_moe_cv": (6.442835473126182, 6.135184757853337), "nccl_total_time_ms": (85965.246, 92534.086),
    "allreduce_total_ms": (1272.246, 1927.801), "allreduce_instances": (4191, 4259),
    "total_kernel_time_ms": (212526.338643, 224513.176144),
}
for key, pair in wanted.items():
    found = results["baseline"][key], results["eplb"][key]
    assert found == pair, (key, found)
comparison = results["comparison"]
assert (comparison["improved_count"], comparison["total_count"]) == (4, 8), comparison
assert list(results) == ["baseline", "eplb", "comparison"]
assert [kernel["name"] for kernel in results["baseline"]["top5_kernels"]][0] == "fused_moe_kernel"
assert "alltoall_total_ms" not in results["baseline"]
END
