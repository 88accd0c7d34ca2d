#!/bin/sh
# The compared figures and their judgement, on kernels few enough to add up by hand; and rejected input.
. "$(dirname -- "$0")/lib.sh"

results=$WORK/out/kernel_comparison_results.json

# summary FILE ROW...: total ns, calls, average, median, minimum, maximum, deviation, name.
summary() {
    file=$1
    shift
    {
        echo 'Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name'
        for line in "$@"; do echo "$line"; done
    } >"$file"
}

# compare [LAST_LINE]: of what it prints.
compare() {
    succeeds metric communicationOverhead --csv1 "$WORK/a" --csv2 "$WORK/b" --out "$WORK/out"
    [ $# = 0 ] || tail -n 1 "$stdout" | grep -Fqx "$1" || die "the last line is not: $1"
}

# results_hold EXPRESSION: a python condition on `baseline`, `eplb` and `comparison`.
results_hold() {
    python3 -c 'import json, sys
globals().update(json.load(open(sys.argv[1])))
assert eval(sys.argv[2])' "$results" "$1" || die "the results are not such that $1"
}

moe=4000,4,1000,900,500,2000,600,fused_moe_kernel

# Each collective by itself, under any of NCCL's names; a cache is no attention; the shares are of all
# kernels.
summary "$WORK/a" $moe 100,1,100,100,100,100,0,ncclDevKernel_ReduceScatter_Sum_f32 \
    200,1,200,200,200,200,0,ncclDevKernel_Reduce_Sum_bf16 \
    300,1,300,300,300,300,0,ncclAllReduceRingLLKernel_sum_f16 \
    100,1,100,100,100,100,0,ncclDevKernel_AllReduce_Sum_u32 400,2,200,200,150,250,70.7,ncclSendRecvKernel \
    500,1,500,500,500,500,0,ncclDevKernel_Broadcast_RING_LL 600,1,600,600,600,600,0,ncclDevKernel_AllToAll \
    50,1,50,50,50,50,0,ncclDevKernel_Generic 700,1,700,700,700,700,0,ncclDevKernel_AllGather_RING_LL \
    50,1,50,50,50,50,0,reshape_and_cache_flash_kernel 900,1,900,900,900,900,0,flash_fwd \
    100,1,100,100,100,100,0,expert_sort
cp "$WORK/a" "$WORK/b"
compare '0 of 10 improved, 10 unchanged, 0 worse: overhead may outweigh benefits'
results_hold 'baseline["collectives"]["Reduce"]["total_ms"] == 200e-6'
results_hold 'baseline["collectives"]["ReduceScatter"]["total_ms"] == 100e-6'
results_hold 'baseline["collectives"]["AllReduce"]["total_ms"] == 400e-6 == baseline["allreduce_total_ms"]'
results_hold 'baseline["collectives"]["AllReduce"]["avg_us"] == 0.2'
results_hold 'baseline["collectives"]["SendRecv"]["instances"] == 2'
results_hold 'baseline["collectives"]["other"]["total_ms"] == 50e-6'
results_hold 'list(baseline["collectives"]) == ["AllReduce", "ReduceScatter", "AllGather", "AllToAll",
    "SendRecv", "Broadcast", "Reduce", "other"]'
results_hold 'baseline["nccl_total_time_ms"] == 2950e-6 and baseline["nccl_kernels"] == 9'
results_hold 'baseline["communication_compute_ratio"] == 2950 / 4000'
results_hold 'baseline["attention_total_ms"] == 900e-6'
results_hold 'baseline["moe_kernels"] == 2 and baseline["moe_instances"] == 5'
results_hold 'baseline["moe_time_pct"] == 4100 / 8000 * 100'
results_hold 'baseline["alltoall_max_min_ratio"] == 1 and baseline["alltoall_avg_us"] == 0.6'
results_hold 'baseline["fused_moe_cv"] == 0.6 and baseline["fused_moe_med_mean_ratio"] == 0.9'
results_hold '[k["instances"] for k in baseline["top5_kernels"]] == [4, 1, 1, 1, 1]'
results_hold 'list(baseline)[:4] == ["label", "moe_kernels", "moe_total_time_ms", "moe_time_pct"]'

# Seven figures: six of fused_moe, NCCL's total. Five of seven are over 60 %, three between, two below 40 %.
nccl=1000,1,1000,1000,1000,1000,0,ncclDevKernel_Broadcast
summary "$WORK/a" $moe $nccl
summary "$WORK/b" 3000,4,750,700,500,1500,450,fused_moe_kernel $nccl # the same CV: 450 / 750
# 4000 -> 3000, 1000 -> 750, 2000 -> 1500, 600 -> 450, 4 -> 3; CV stays 0.6, NCCL 1000.
compare '5 of 7 improved, 2 unchanged, 0 worse: significant benefit'
results_hold 'comparison["improved_count"] == 5 and comparison["total_count"] == 7'
summary "$WORK/b" 5000,4,1250,900,500,1600,600,fused_moe_kernel $nccl
# less: maximum, CV, maximum/minimum; more: total, average
compare '3 of 7 improved, 2 unchanged, 2 worse: mixed results'
summary "$WORK/b" 4000,4,1000,900,500,1600,600,fused_moe_kernel $nccl
# less: maximum, maximum/minimum
compare '2 of 7 improved, 5 unchanged, 0 worse: overhead may outweigh benefits'

# 60 % is not over 60 %: AllReduce and AllToAll in both make ten figures, six of them less.
summary "$WORK/a" $moe 100,1,100,100,100,100,0,nccl_AllReduce 100,1,100,100,100,100,0,nccl_AllToAll
summary "$WORK/b" 3000,4,750,700,500,1500,450,fused_moe_kernel 90,1,90,90,90,90,0,nccl_AllReduce \
    110,1,110,110,110,110,0,nccl_AllToAll
compare '6 of 10 improved, 3 unchanged, 1 worse: mixed results'

# Kernels of only one side are not compared, and are left out of its results; a minimum of 0 gives no ratio.
summary "$WORK/b" 4000,4,1000,900,0,2000,600,fused_moe_kernel
compare '0 of 5 improved, 5 unchanged, 0 worse: overhead may outweigh benefits'
results_hold '"allreduce_total_ms" in baseline and "allreduce_total_ms" not in eplb'
results_hold 'eplb["nccl_kernels"] == 0 and eplb["nccl_total_time_ms"] == 0'
results_hold '"fused_moe_max_min_ratio" not in eplb'
summary "$WORK/b" 10,1,10,10,10,10,0,gemm
compare '0 of 0 improved, 0 unchanged, 0 worse: nothing to compare: they share no kernel of MoE or NCCL'

# The first row with fused_moe counts, and a message reports that there are more.
summary "$WORK/b" 10,1,10,10,10,10,0,fused_moe_first 4000,4,1000,900,500,2000,600,fused_moe_kernel
compare
has '2 kernels have fused_moe in their names; fused_moe is the first, fused_moe_first' "$stdout"
results_hold 'eplb["fused_moe_instances"] == 1'

# --json prints the file's text; without --out the file is in the default place.
mkdir "$WORK/here"
(cd "$WORK/here" && "$GENTABLES" metric communicationOverhead --csv1 ../a --csv2 ../b --json >../printed)
(cd "$WORK/here" && "$GENTABLES" metric communicationOverhead ../a ../b --json) | cmp - "$WORK/printed" ||
    die "another answer for files as arguments"
cmp "$WORK/printed" "$WORK/here/kernel_comparison_results.json" || die "printed is not what is written"

# refuses CODE A B [PATTERN]: expects that the earlier results stay; and one line.
refuses() {
    cp "$results" "$WORK/before"
    ends_with "$1" "$GENTABLES" metric communicationOverhead --csv1 "$2" --csv2 "$3" --out "$WORK/out"
    cmp "$WORK/before" "$results" || die "results of a comparison that failed"
    [ $# = 3 ] || one_line "$4"
}
refuses 1 "$WORK/none.csv" "$WORK/b"
refused "Error: CSV file not found: $WORK/none.csv" 'none.csv does not exist; give a kernel summary'
refuses 1 "$WORK/a" "$WORK/none%s.csv"
refused "Error: CSV file not found: $WORK/none%s.csv" 'none%s.csv does not exist'
ends_with 1 "$GENTABLES" metric communicationOverhead --csv1 "$WORK/a"
refused 'Error: communicationOverhead metric requires --csv1 and --csv2 arguments' '--csv1 and --csv2'
sed 's/StdDev (ns)/StdDev (fortnights)/' "$WORK/a" >"$WORK/odd"
refuses 2 "$WORK/a" "$WORK/odd" 'odd:1: column "StdDev \(fortnights\)" has an unknown unit'
refuses 2 "$WORK" "$WORK/a" 'is not a file'
touch "$WORK/file"
ends_with 1 "$GENTABLES" metric communicationOverhead --csv1 "$WORK/a" --csv2 "$WORK/b" --out "$WORK/file"
one_line 'file: is not a folder'

# SQLite exports of different versions of nsys, and databases that are none.
has_sqlite || exit 0

# bad SQL PATTERN: a database of these statements is rejected.
bad() {
    database "$WORK/bad" "$1"
    refuses 2 "$WORK/a" "$WORK/bad" "bad: $2"
}

# database FILE SQL: makes a database by these statements.
database() {
    rm -f "$1"
    sqlite3 "$1" "$2"
}
strings="CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
    INSERT INTO StringIds VALUES (1, 'fused_moe_kernel'), (2, 'fused_moe_kernel'), (3, 'short');"
table='CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL'

# Two ids of one name are one kernel: 10, 20, 40 ns, so a median of 20 and an average of 70 / 3.
database "$WORK/b" "$strings $table (start, end, demangledName, shortName, mangledName);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 10, 1, 3, 9), (5, 25, 2, 3, 9), (9, 49, 1, 3, 9);"
compare
results_hold 'eplb["fused_moe_instances"] == 3 and eplb["fused_moe_med_us"] == 0.02'
results_hold 'eplb["total_kernel_time_ms"] == 70e-6 and abs(eplb["fused_moe_avg_us"] - 0.07 / 3) < 1e-17'
database "$WORK/b" "$strings $table (start, end, shortName);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 10, 2), (0, 30, 2);"
compare # between 10 and 30 lies 20; the deviation is that of a sample, sqrt(200)
results_hold 'eplb["fused_moe_med_us"] == 0.02 and abs(eplb["fused_moe_std_us"] - 200 ** 0.5 / 1e3) < 1e-15'

bad "$strings" 'has no table CUPTI_ACTIVITY_KIND_KERNEL: no CUDA kernel was traced; give a profile'
bad "$strings $table (start, end, demangledName);" 'its table CUPTI_ACTIVITY_KIND_KERNEL is empty'
bad "$strings $table (start, demangledName);" 'its table CUPTI_ACTIVITY_KIND_KERNEL has no column end'
bad "$strings $table (start, end);" '.* has no column demangledName'
bad "$table (start, end, demangledName);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 1, 1);" 'has no table StringIds'
for row in '(0, 10, 7)|no name 7' '(10, 0, 1)|1 of its kernels' '(0, NULL, 1)|1 of its kernels'; do
    bad "$strings $table (start, end, demangledName);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ${row%|*};" ".*${row#*|}"
done
head -c 3000 "$WORK/b" >"$WORK/bad"
refuses 2 "$WORK/a" "$WORK/bad" 'bad: cannot be read|bad: .*malformed'
