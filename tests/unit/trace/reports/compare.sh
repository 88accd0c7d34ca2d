#!/bin/sh
# trace compare: reports of two and more runs side by side, on CSVs written here, with known differences; the
# reports of sweeps over threads, channels and sweeps; the page. Invalid input ends in one line.
# Needs: xlsx zlib
. "$SOURCE/tests/lib.sh"

# is FILE LINE...: expects exactly these lines.
is() {
    is_file=$1
    shift
    printf '%s\n' "$@" >"$WORK/wanted"
    cmp -s "$WORK/wanted" "$is_file" || { diff "$WORK/wanted" "$is_file" || die "$is_file differs"; }
}

# report FOLDER A B: a report with a time line of A ms, and an op of B µs in two rows.
report() {
    mkdir -p "$1"
    printf 'type,time ms,percent\ntotal_time,%s,100\nidle_time,0,0\n' "$2" >"$1/gpu_timeline.csv"
    cat >"$1/ops_unique_args.csv" <<CSV
name,op category,process_name,process_label,thread_name,Input Dims,Input type,Input Strides,Concrete Inputs,\
operation_count,total_direct_kernel_time_mean,total_direct_kernel_time_median,total_direct_kernel_time_max,\
total_direct_kernel_time_sum,ex_UID,kernel_details_summary,Cumulative Percentage (%)
aten::mm,GEMM,python,CPU,thread 1,"((2, 2), (2, 2))",,,,3,$3,1,$3,$((3 * $3)),7,x,50
aten::mm,GEMM,python,CPU,thread 2,"((2, 2), (2, 2))",,,,1,2,1,2,2,8,x,100
CSV
}
report "$WORK/base_csvs" 4 10
report "$WORK/new_csvs" 5 20
report "$WORK/third_csvs" 2 10
echo 'aten::add,elementwise,p,c,t,"((3,),)",,,,1,4,4,4,4,9,x,100' >>"$WORK/new_csvs/ops_unique_args.csv"
printf 'name,param: M,Kernel Time (µs)_mean,Kernel Time (µs)_sum,name_count\naten::mm,8,2.5,5,2\n' \
    >"$WORK/base_csvs/GEMM.csv"

# Rows of one key are summed first, not multiplied: 3 * 10 + 2 and 3 * 20 + 2; means are weighted.
succeeds trace compare "$WORK/base_csvs" "$WORK/new_csvs" --out "$WORK/out"
csvs=$WORK/out/compare_csvs
is "$csvs/gpu_timeline.csv" 'type,base::time ms,new::time ms,time ms__new_diff,time ms__new_pct,'\
'base::percent,new::percent,percent__new_diff,percent__new_pct' \
    'total_time,4,5,1,25.0,100,100,0,0.0' 'idle_time,0,0,0,,0,0,0,'
head=$(sed -n 1p "$csvs/ops_unique_args_common.csv")
row=$(sed -n 2p "$csvs/ops_unique_args_common.csv")
[ "$(wc -l <"$csvs/ops_unique_args_common.csv")" = 2 ] || die "rows of one key are multiplied"
wanted='aten::mm,GEMM,"((2, 2), (2, 2))",,,,4,4,0,0.0,8.0,15.5,7.5,93.75,,,,,'
case $row in "${wanted}10,20,10,100.0,32,62,30,93.75") ;;
*) die "the row of aten::mm is $row, under $head" ;; esac
case $head in *'base::total_direct_kernel_time_sum,new::total_direct_kernel_time_sum,'*'_sum__new_diff,'*) ;;
*) die "the head is $head" ;; esac
grep -q '^aten::add,' "$csvs/ops_unique_args_only_variant_new.csv" || die "what only the variant has is lost"
is "$csvs/GEMM_only_baseline_new.csv" 'name,param: M,base::Kernel Time (µs)_mean,'\
'base::Kernel Time (µs)_sum,base::name_count' 'aten::mm,8,2.5,5,2'
[ ! -e "$csvs/GEMM_common.csv" ] || die "a sheet without rows is written"

# Collectives inferred from different kernels are not summed.
mkdir -p "$WORK/nccl_csvs" "$WORK/vllm_csvs"
nccl='Collective name,dtype,In msg nelems,count,inferred from kernel'
summary=nccl_summary_implicit_sync
printf '%s\nAllReduce,,,2,ring\nAllReduce,,,4,vllm\n' "$nccl" >"$WORK/nccl_csvs/$summary.csv"
printf '%s\nAllReduce,,,5,vllm\n' "$nccl" >"$WORK/vllm_csvs/$summary.csv"
succeeds trace compare "$WORK/nccl_csvs" "$WORK/vllm_csvs" --out "$WORK/inferred"
is "$WORK/inferred/compare_csvs/${summary}_common.csv" \
    'Collective name,dtype,In msg nelems,inferred from kernel,nccl::count,vllm::count,count__vllm_diff,'\
'count__vllm_pct' 'AllReduce,,,vllm,4,5,1,25.0'

# GEMMs match although their kernels' names differ in transposition; so do kernels on other streams.
mkdir -p "$WORK/a100_csvs" "$WORK/h100_csvs"
gemm='name,param: M,param: transpose,Kernel Time (µs)_sum'
printf '%s\naten::mm,8,"(True, False)",5\naten::mm,8,,9\n' "$gemm" >"$WORK/a100_csvs/GEMM.csv"
printf '%s\naten::mm,8,"(False, True)",7\n' "$gemm" >"$WORK/h100_csvs/GEMM.csv"
kernel='Parent op category,Parent cpu_op,Kernel name,Kernel stream,Kernel duration (µs)_sum'
printf '%s\nGEMM,aten::mm,sgemm,7,5\n' "$kernel" >"$WORK/a100_csvs/kernel_summary.csv"
printf '%s\nGEMM,aten::mm,sgemm,13,4\nGEMM,aten::mm,sgemm,14,2\n' "$kernel" \
    >"$WORK/h100_csvs/kernel_summary.csv"
succeeds trace compare "$WORK/a100_csvs" "$WORK/h100_csvs" --out "$WORK/gpus"
time='a100::Kernel Time (µs)_sum,h100::Kernel Time (µs)_sum,Kernel Time (µs)_sum__h100_diff,'\
'Kernel Time (µs)_sum__h100_pct'
is "$WORK/gpus/compare_csvs/GEMM_common.csv" "name,param: M,$time" 'aten::mm,8,14,7,-7,-50.0'
[ "$(wc -l <"$WORK/gpus/compare_csvs/kernel_summary_common.csv")" = 2 ] ||
    die "kernels on other streams do not match"
[ ! -e "$WORK/gpus/compare_csvs/GEMM_only_baseline_h100.csv" ] || die "transpositions keep GEMMs apart"

# Traces: their trees too. An op more, and the same trace.
recorded=$SOURCE/tests/recorded/traces
succeeds trace compare "$recorded/gemms.json.gz" "$recorded/operators.json.gz" --label a --label b --csv \
    --html --out "$WORK/trees"
has '^thread 1,replaced,1,' "$WORK/trees/compare_csvs/tree_diff.csv"
has 'What changed in the tree of ops' "$WORK/trees/comparison.html"
succeeds trace compare "$recorded/gemms.json.gz" "$recorded/gemms.json.gz" --label a --label b --csv \
    --html --out "$WORK/equal"
has '0 of 0 changes' "$WORK/equal/comparison.html"
[ ! -e "$WORK/equal/compare_csvs/tree_diff.csv" ] || die "changes of equal traces"

# Three, with labels that a page must escape.
succeeds trace compare "$WORK/base_csvs" "$WORK/new_csvs" "$WORK/third_csvs" --label a \
    --label '<b>"x"' --label c --out "$WORK/three" --csv --html
is "$WORK/three/compare_csvs/gpu_timeline.csv" 'type,a::time ms,"<b>""x""::time ms",c::time ms,'\
'"time ms__<b>""x""_diff","time ms__<b>""x""_pct",time ms__c_diff,time ms__c_pct,a::percent,'\
'"<b>""x""::percent",c::percent,"percent__<b>""x""_diff","percent__<b>""x""_pct",'\
'percent__c_diff,percent__c_pct' \
    'total_time,4,5,2,1,25.0,-2,-50.0,100,100,100,0,0.0,0,0.0' 'idle_time,0,0,0,0,,0,,0,0,0,0,,0,'
grep -q '<b>' "$WORK/three/comparison.html" && die "a label is not escaped"
grep -q '&lt;b&gt;' "$WORK/three/comparison.html" || die "a label is missing on the page"
[ ! -e "$WORK/three/compare.xlsx" ] || die "a workbook without --xlsx"

# A sweep over its threads and channels, and two sweeps.
for sweep in one two; do
    analysis=$WORK/$sweep/tracelens_analysis
    for threads in 256 512; do
        for channels in 28 56; do
            time=$((threads + channels))
            [ "$sweep" = one ] || time=$((2 * time))
            report "$analysis/${threads}thread/individual_reports/perf_${channels}ch_rank0_csvs" "$time" 1
        done
        mkdir -p "$analysis/${threads}thread/collective_reports/collective_28ch_csvs"
        summary=$analysis/${threads}thread/collective_reports/collective_28ch_csvs
        summary=$summary/nccl_summary_implicit_sync.csv
        printf 'Collective name,dtype,In msg nelems,comm_latency_mean,count\n' >"$summary"
        printf 'allreduce,Float,8,%s,3\n' "$threads" >>"$summary"
    done
    printf 'threads,channel,rank,time_diff_us\n256,28,0,%s\n' 3.5 \
        >"$analysis/top5_gemm_kernels_time_variance.csv"
    mkdir -p "$analysis/plots"
    printf 'PNG of %s' "$sweep" >"$analysis/plots/variance_by_threads_boxplot.png"
done
rm "$WORK/two/tracelens_analysis/plots/variance_by_threads_boxplot.png"
rm -r "$WORK/two/tracelens_analysis/512thread/individual_reports/perf_56ch_rank0_csvs"
succeeds trace compare "$WORK/one" --out "$WORK/within" --csv
[ "$(cd "$WORK/within" && echo *)" = "compare_256thread_rank0_across_channels_csvs \
compare_28ch_rank0_across_threads_csvs compare_512thread_rank0_across_channels_csvs \
compare_56ch_rank0_across_threads_csvs compare_collective_28ch_across_threads_csvs" ] ||
    die "not these comparisons"
has '^total_time,284,540,256,' "$WORK/within/compare_28ch_rank0_across_threads_csvs/gpu_timeline.csv"
grep -q '^type,256thread::time ms,512thread::time ms,' \
    "$WORK/within/compare_28ch_rank0_across_threads_csvs/gpu_timeline.csv" || die "tags are not the threads"
has '^allreduce,Float,8,256,512,256,100.0,' \
    "$WORK/within/compare_collective_28ch_across_threads_csvs/nccl_summary_implicit_sync_common.csv"
succeeds trace compare "$WORK/one" "$WORK/two" --label 'old & slow' --label new --out "$WORK/sweeps"
has '^total_time,284,568,284,100.0,' \
    "$WORK/sweeps/compare_256thread_28ch_rank0_across_sweeps_csvs/gpu_timeline.csv"
page=$WORK/sweeps/comparison.html
for text in 'old &amp; slow' 'missing: plots/variance_violin_combined.png' \
    'missing: new: 1 reports: 512 threads, 56 channels, rank 0' "$(printf 'PNG of one' | base64)" \
    'missing: plots/variance_by_threads_boxplot.png'; do
    grep -qF "$text" "$page" || die "the page lacks: $text"
done
succeeds trace compare "$WORK/one" "$WORK/two" --html --out "$WORK/page"
[ "$(ls "$WORK/page")" = comparison.html ] || die "more than the requested page"
[ "$(cat "$stdout")" = "written   $WORK/page/comparison.html" ] || die "other files are reported than written"
succeeds trace compare "$WORK/one" "$WORK/two" --out "$WORK/alone.html"
[ -s "$WORK/alone.html" ] || die "no page alone"
has '<p>.*: [+-][0-9.]+ % of time against one [(]geometric mean over [0-9]+ configurations?[)][.]</p>' \
    "$WORK/alone.html"
has '<p>c: 2.000 ms in all, -50.0 % against a [(]4.000 ms[)][.]</p>' "$WORK/three/comparison.html"

# Invalid input.
bad() { # PATTERN ARGUMENT...
    pattern=$1
    shift
    rejects "$pattern" trace compare "$@" --out "$WORK/bad"
}
bad 'a second report to compare it with is missing' "$WORK/base_csvs"
bad 'absent: cannot be read' "$WORK/absent" "$WORK/new_csvs"
bad 'a sweep and a report cannot be compared' "$WORK/one" "$WORK/new_csvs"
bad 'workbooks are not read; give the folder of CSVs' "$WORK/out/compare.xlsx" "$WORK/new_csvs"
bad '1 --label for 2 inputs' "$WORK/base_csvs" "$WORK/new_csvs" --label x
bad 'label "x" of two inputs' "$WORK/base_csvs" "$WORK/new_csvs" --label x --label x
bad 'over: ranks is neither threads nor channels' "$WORK/one" --over ranks
mkdir "$WORK/empty" "$WORK/empty2" && mkdir "$WORK/empty2/tracelens_analysis"
bad 'neither a report .* nor a sweep' "$WORK/empty" "$WORK/new_csvs"
bad 'has no reports of a sweep' "$WORK/empty2" "$WORK/one"
echo 'type,time ms' >"$WORK/empty/gpu_timeline.csv" && echo 'total,1,2' >>"$WORK/empty/gpu_timeline.csv"
bad 'gpu_timeline.csv:2: 3 fields; the header has 2' "$WORK/empty" "$WORK/new_csvs"
echo '{"traceEvents": [' >"$WORK/cut.json"
bad 'cut.json: byte' "$WORK/new_csvs" "$WORK/cut.json"
