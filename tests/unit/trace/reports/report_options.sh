#!/bin/sh
# gentables trace report: its options, its files, and rejected input.
# Needs: zlib xlsx
. "$SOURCE/tests/lib.sh"

trace=$SOURCE/tests/golden/trace/h100_bert/h100_bert.json.gz
csvs=$WORK/out/h100_bert_csvs

report() { ends_with 0 "$GENTABLES" trace report "$trace" --out "$WORK/out" "$@"; }
lines() { wc -l <"$csvs/$1.csv"; }

# Both forms by default, one if an option selects it; CSVs without a library for workbooks.
report
[ -s "$csvs/GEMM.csv" ] || die "no CSVs"
echo 'os.exit((require "pages.sheets".has_xlsx()) and 0 or 1)' >"$WORK/has_xlsx.lua"
if "$GENTABLES" lua "$WORK/has_xlsx.lua"; then
    [ -s "$WORK/out/h100_bert.xlsx" ] || die "no workbook"
    rm -r "$WORK/out"
    report --xlsx
    [ ! -e "$csvs" ] || die "CSVs without --csv"
    [ -s "$WORK/out/h100_bert.xlsx" ] || die "no workbook"
    has_xlsx=true
else
    one_line 'no workbook: .*libxlsxwriter'
    has_xlsx=false
fi
# The printed paths are those that are there.
report
sed 's/^written   //; s/: [0-9]* CSVs$//; s/: the page to open first$//' "$stdout" >"$WORK/written"
for path in "$WORK/out/h100_bert_csvs/" $(! "$has_xlsx" || echo "$WORK/out/h100_bert.xlsx"); do
    grep -qFx "$path" "$WORK/written" || die "$path is not printed"
done
while IFS= read -r path; do [ -e "$path" ] || die "$path is printed and is not there"; done <"$WORK/written"
rm -r "$WORK/out"
report --csv
[ ! -e "$WORK/out/h100_bert.xlsx" ] || die "a workbook without --xlsx"

[ "$(lines short_kernel_histogram)" = 101 ] || die "not 100 bins"
report --csv --bins 7 --top-short 3 --short-limit 6 --micro-idle 100
[ "$(lines short_kernel_histogram)" = 8 ] || die "not 7 bins"
[ "$(lines short_kernels_summary)" = 4 ] || die "not the first 3 rows"
awk -F, 'NR > 1 { total += $3 } END { exit total != 47 }' "$csvs/short_kernel_histogram.csv" ||
    die "not the 47 kernels below 6 us"
# The parts of idle time add up to it.
awk -F, '$1 == "idle_time" { idle = $2 } $1 ~ /^(micro|macro)_idle_time$/ { parts += $2; count++ }
    END { exit !(count == 2 && parts - idle < 1e-9 && idle - parts < 1e-9) }' "$csvs/gpu_timeline.csv" ||
    die "micro and macro idle time are not the idle time"

report --csv --kernel-summary
[ -e "$csvs/kernel_summary.csv" ] || die "no kernel_summary"
rm -r "$WORK/out"
report --csv --no-kernel-summary
[ ! -e "$csvs/kernel_summary.csv" ] || die "a kernel_summary despite --no-kernel-summary"

# Several traces: those with equal names get reports with different names, and a failing one does not end the
# others.
mkdir -p "$WORK/a" "$WORK/b"
cp "$trace" "$WORK/a/one.json.gz"
cp "$trace" "$WORK/b/one.json.gz"
echo '{"traceEvents": [{' >"$WORK/b/broken.json"
failed 'b/broken.json: byte ' trace report "$WORK/a/one.json.gz" "$WORK/b/one.json.gz" "$WORK/b/broken.json" \
    --out "$WORK/many" --csv
for folder in a b; do
    [ -e "$WORK/many/${folder}__one_csvs/GEMM.csv" ] || die "not both reports"
done
rejects 'b/broken.json: byte ' trace report "$WORK/b/broken.json" --out "$WORK/broken"
[ ! -e "$WORK/broken" ] || die "a report of a trace that cannot be read"

# The same file twice is read once.
succeeds trace report "$trace" "$trace" --out "$WORK/once" --csv
[ "$(find "$WORK/once" -name GEMM.csv | wc -l)" = 1 ] || die "not one report"

# A sweep's reports lie in its tree.
mkdir -p "$WORK/sweep_1/256thread/nccl_28channels/torch_profiler/rank3"
cp "$trace" "$WORK/sweep_1/256thread/nccl_28channels/torch_profiler/rank3/trace.json.gz"
succeeds trace report "$WORK/sweep_1" --out "$WORK/tree"
report=$WORK/tree/256thread/individual_reports/perf_28ch_rank3
[ -s "${report}_csvs/GEMM.csv" ] || die "not where the tree has it"
[ "$has_xlsx" = false ] || [ -s "$report.xlsx" ] || die "not where the tree has it"

# Rejected: a trace of JAX. Its events have no category.
cat >"$WORK/jax_rank0.json" <<'END'
{"displayTimeUnit": "ns", "traceEvents": [
 {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
 {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "Stream #13(Compute)"}},
 {"ph": "X", "pid": 1, "tid": 1, "ts": 10.5, "dur": 3.2, "name": "loop_fusion",
  "args": {"hlo_module": "jit_step", "hlo_op": "loop_fusion"}}, {}]}
END
not_torch='jax_rank0.json: none of its 4 events has a category of torch.s profiler'
rejects "$not_torch" trace report "$WORK/jax_rank0.json" --out "$WORK/jax"
ends_with 2 "$GENTABLES" trace variance "$WORK/jax_rank0.json" --out "$WORK/jax"
grep -q "$not_torch" "$stderr" || die "no reason for a trace that is not torch's"
[ ! -e "$WORK/jax" ] || die "a report of a trace that is not torch's"
ends_with 2 "$GENTABLES" trace report --out "$WORK/out"
rejects 'needs --out DIR' trace report "$trace"
rejects 'nothing.json' trace report "$WORK/nothing.json" --out "$WORK/out"
for wrong in '--bins 0' '--bins many' '--bins 1000000000' '--short-limit -1' '--short-limit soon' \
    '--micro-idle x' '--top-short 0' '--kernel-summary --no-kernel-summary'; do
    # shellcheck disable=SC2086
    rejects "$(echo "$wrong" | cut -d' ' -f1)" trace report "$trace" --out "$WORK/refused" $wrong
done
[ ! -e "$WORK/refused" ] || die "something is written that was refused"
