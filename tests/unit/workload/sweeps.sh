#!/bin/sh
# A sweep by one command: the documented tree, traces that follow the rules, the results of trace pipeline, a
# page with sentences. A second run does the missing or failed parts, and a failing part does not end the
# rest. Ctrl-C ends the processes of the sweep, and no others.
. "$SOURCE/tests/unit/workload/lib.sh"
needs_blas

tiny=$(workload tiny <<'END'
return { name = "tiny", tokens = 16, steps = 20, warm_up = 1,
  layers = {
    { name = "a", gemms = { { name = "g", n = 24, k = 32 } } },
    { name = "e", experts = { load = { 1, 2 } }, gemms = { { name = "up", n = 40, k = 24 } } },
  } }
END
)
sweep=$WORK/sweep_20260102_030405

# ---- a failing configuration does not end the rest ----
# A launcher that fails for the counts in BREAK: the request is on standard input, the launcher sees only
# counts.
cat >"$WORK/launch" <<'END'
#!/bin/sh
echo launched >>"$(dirname "$0")/launches"
if [ "$(wc -l <"$(dirname "$0")/launches")" = 2 ]; then
    echo "the fabric is on fire" >&2
    exit 3
fi
shift
exec $MPIRUN -n 2 "$@"
END
chmod +x "$WORK/launch"
. "$SOURCE/tests/mpirun.sh"
export MPIRUN="$mpirun"
failed '1 thread, 3 channels: failed after .* s: it died: exit code 3' workload sweep -f "$tiny" -p 2 -c 1,3 \
    -t 1,2 -o "$sweep" --launcher "$WORK/launch {ranks}"
summary=$sweep/nccl_thread_sweep_summary_20260102_030405.txt
grep -Eq '^1 +3 +failed +[0-9.]+ .*it died: exit code 3' "$summary" || die "the summary lacks the failure"
[ "$(grep -c ' ok ' "$summary")" = 3 ] || die "not three of four configurations were measured"
grep -Eq '^2 +1 +ok +[0-9.]+ +1 +1 ' "$summary" || die "the summary lacks the threads and channels of NCCL"
failed=$sweep/1thread/nccl_3channels
grep -q 'stderr: the fabric is on fire' "$failed/run_output.log" || die "the log lacks why"
[ ! -e "$failed/torch_profiler/rank0/trace_step19.json" ] || die "a failure left a trace"
[ -s "$sweep/nccl_thread_sweep_20260102_030405.log" ] || die "no log of the sweep"

# A failed run is listed with its reason, and analysis does not expect its trace.
succeeds workload report "$sweep" --csv --without plots,comparisons,merge
[ ! -s "$stderr" ] || die "a failure is reported twice: $(cat "$stderr")"
succeeds workload compare "$sweep" "$sweep" --label a --label b -o "$WORK/c.html"
grep -q 'b, 1 thread, 3 channels: it died: exit code 3' "$WORK/c.html" || die "a gap has no reason"

succeeds workload compare "$sweep" "$sweep" --label a --label b --json
cat >"$WORK/answer.lua" <<'END'
local d = assert(require("codec.json").decode(assert(require("core.file").read(arg[1]))))
assert(d.sweeps[2] == "b" and d.findings[1]:find("^a and b have"))
assert(d.configurations[1].times[2].overlapped.median_us > 0)
END
"$GENTABLES" lua "$WORK/answer.lua" "$stdout" || die "not the answer in JSON"

# ---- again: only failed or missing parts ----
rm "$sweep/2thread/nccl_1channels/torch_profiler/rank1/trace_step19.json"
kept=$(cksum "$sweep/1thread/nccl_1channels/result.json")
succeeds workload pipeline -f "$tiny" -p 2 -c 1,3 -t 1,2 -o "$sweep" --csv
if grep -q incomplete "$stderr"; then die "our own traces are incomplete"; fi
grep -q '2 measured, 2 already present, 0 failed' "$stdout" || die "existing results were measured again"
[ "$kept" = "$(cksum "$sweep/1thread/nccl_1channels/result.json")" ] || die "a finished result was touched"
ends_with 2 "$GENTABLES" workload sweep -f "$tiny" -p 3 -o "$sweep"
one_line 'was measured with another number of ranks; give another --out, or --fresh'
rejects 'was measured with another workload' workload sweep -f small -p 2 -o "$sweep"

# ---- the files afterwards ----
"$GENTABLES" lua "$SOURCE/tests/unit/workload/check_rounds.lua" "$sweep"/*thread/*/result.json ||
    die "rounds that cannot be"
keep_rules "$sweep"/*thread/*/torch_profiler/rank*/*.json
for result in "$sweep"/*thread/*/result.json; do
    traces=$(dirname "$result")/torch_profiler
    "$GENTABLES" lua "$SOURCE/tests/unit/workload/check_waits.lua" "$result" "$traces"/rank[01]/*.json ||
        die "waiting differs from that of the traces"
done
analysis=$sweep/tracelens_analysis
for name in 1thread/individual_reports/perf_3ch_rank1_csvs/GEMM.csv 2thread/collective_reports \
    top5_gemm_kernels_time_variance.csv top5_gemm_kernels_time_variance_with_timestamps.csv \
    top5_gemm_kernels_time_variance_with_collective_overlap.csv comparisons; do
    [ -e "$analysis/$name" ] || die "no $name"
done
[ "$(find "$sweep/merged_traces" -name '*_merged.json' | wc -l)" = 4 ] || die "not four merged traces"
has 'all_to_allv' "$analysis/1thread/collective_reports/collective_1ch_csvs/nccl_long.csv"
for text in 'The shortest step is that of' 'threads that move data' \
    'hides\|is within noise\|cannot be estimated' \
    'Tracing costs' 'beside communication, .* [mu]s alone' 'a thread without a channel' 'on the host; GEMMs' \
    "the sum over the rank's\|the sum over the rank&#39;s" 'Each configuration is one launch'; do
    grep -q "$text" "$sweep/workload.html" || die "not on the page: $text"
done
# Shares are of the steps that were traced, one in five.
awk -F, '$1 == "total_time" { total = $2 } $1 == "busy_time" { busy = $2 } $1 == "idle_time" { idle = $2 }
    /^"?untraced_time/ { untraced = $(NF - 1) }
    END { sum = busy + idle
        exit !(untraced > 0 && total > 0 && sum > 0.999 * total && sum < 1.001 * total) }' \
    "$analysis/1thread/individual_reports/perf_1ch_rank0_csvs/gpu_timeline.csv" ||
    die "time between traced steps counts"

# A trace names the processor like a replay: on the machine that wrote it the two are compared.
succeeds replay "$sweep/1thread/nccl_1channels" --out "$WORK/replay" --csv --samples 1
replayed=$WORK/replay/node_replay_report_csvs
grep -q '^Diff columns,.*processors of the same name' "$replayed/node_replay.csv" || die "no Diff columns"
[ "$(awk -F, 'NR == 2 { print ($5 != "" && $6 != "") }' "$replayed/gemm_node_replay.csv")" = 1 ] ||
    die "a Diff column is empty"

# ---- two sweeps in one page ----
succeeds workload sweep -f "$tiny" -p 2 -c 1,2 -t 1 -o "$WORK/other" --transport mpi --warm-up 2
# elsewhere FIELD VALUE RESULT: gives it another machine.
elsewhere() {
    sed "s/\"$1\": \"[^\"]*\"/\"$1\": \"$2\"/" "$3" >"$WORK/moved"
    mv "$WORK/moved" "$3"
}
elsewhere cpu "some other one" "$WORK/other/1thread/nccl_1channels/result.json"
succeeds workload compare "$sweep" "$WORK/other" --label ours --label '<mpi>' -o "$WORK/c.html"
for text in 'ours and &lt;mpi&gt; have 1 configuration in common' 'differ in their transport: builtin, mpi' \
    'differ in their warm-up steps: 1, 2' 'differ in their processor: .*, some other one' \
    'GEMMs alone are not comparable in both' 'not analysed yet'; do
    grep -q "$text" "$WORK/c.html" || die "not in the comparison: $text"
done
rejects '1 --label for 2 inputs' workload compare "$sweep" "$WORK/other" --label one

# ---- of an older gentables, without the cost of communication for GEMMs ----
for result in "$WORK"/other/1thread/*/result.json; do
    grep -v '"gemm_alone_us"' "$result" | sed 's/"cost"/"toll"/' >"$WORK/older"
    mv "$WORK/older" "$result"
done
ends_with 1 "$GENTABLES" workload report "$WORK/other" --csv
grep -q 'lacks a valid ratios.cost.high, .*: it is damaged, .*; run its sweep again with --fresh' \
    "$WORK/other/workload.html" || die "no text about a sweep of an older gentables"

# ---- unrelated or incomplete files do not count ----
# In a folder with a name like a placeholder for ranks.
odd="$WORK/a %r folder"
one() {
    wanted_code=$1
    shift
    ends_with "$wanted_code" "$GENTABLES" workload sweep -p 2 -c 1,2 -t 1 -o "$odd" --steps 3 "$@"
}
one 0 -f "$tiny"
first=$odd/1thread/nccl_1channels
[ -s "$first/torch_profiler/rank1/trace_step2.json" ] || die "no trace in a folder with %r in its name"
: >"$first/result.json"
truncate -s -3 "$odd/1thread/nccl_2channels/torch_profiler/rank0/trace_step2.json"
succeeds workload compare "$odd" "$odd" --label a --label b -o "$WORK/c.html"
has 'The difference of overlapped steps of 1 is unknown for fewer than 6 steps' "$WORK/c.html"
one 0 -f "$tiny"
grep -q '2 measured, 0 already present' "$stdout" || die "an empty result, or a cut trace, counts as measured"
has 'nccl_1channels/result.json: .*; it is measured again' "$stderr"
has 'rank0/trace_step2.json: has .* bytes.*; it is measured again' "$stderr"
elsewhere core Elsewhere "$first/result.json"
rm "$odd/1thread/nccl_2channels/result.json"
one 2 -f "$tiny"
one_line 'was measured with another OpenBLAS core: Elsewhere instead of .*; give another --out, or --fresh'
[ ! -e "$odd/1thread/nccl_2channels/result.json" ] || die "what was measured elsewhere has joined"

# With other settings --fresh removes the old sweep, even if the new one fails early.
one 0 -f "$tiny" --fresh
succeeds workload report "$odd" --csv --without plots,comparisons
has 'The order is unknown for fewer than 6 steps' "$odd/workload.html"
ends_with 1 "$GENTABLES" workload sweep -f "$tiny" -p 3 -c 1 -t 1 -o "$odd" --steps 5 --fresh --launcher \
    'false {ranks}'
ends_with 1 "$GENTABLES" workload report "$odd" --csv
[ -z "$(find "$odd" -name 'trace_*.json' -o -name '*.csv' -o -name '*_merged.json')" ] ||
    die "old traces stay"
grep -q 'No configuration was measured' "$odd/workload.html" || die "an old result counts"
one 0 -f "$tiny" --fresh
succeeds workload sweep -f "$tiny" -p 2 -c 1 -t 1 -o "$odd" --steps 5 --fresh
[ "$(find "$odd" -name 'trace_*.json' | wc -l)" = 2 ] || die "traces of another sweep stay"
[ "$(grep -c ' ok ' "$odd"/nccl_thread_sweep_summary_*.txt)" = 1 ] || die "an old result is in the summary"
succeeds workload sweep -f "$tiny" -p 2 -c 1,2 -t 1 -o "$odd" --steps 5
grep -q '1 measured, 1 already present' "$stdout" || die "an old result is taken for a new one"

# Traces of others are not overwritten.
mkdir -p "$WORK/others/4thread/nccl_8channels/torch_profiler/rank0"
ends_with 2 "$GENTABLES" workload sweep -f "$tiny" -p 2 -c 8 -t 4 -o "$WORK/others" --fresh
one_line '4thread/nccl_8channels: was not written by gentables workload; give another --out'

# ---- Ctrl-C ----
# A process of the same name that the sweep did not start survives; those that it started do not.
cat >"$WORK/slow" <<'END'
#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo $$ >launched
: >begun
exec "$SLEEPER" 600
END
chmod +x "$WORK/slow"
cp /bin/sleep "$WORK/sleeper"
SLEEPER=$WORK/sleeper
export SLEEPER
"$SLEEPER" 600 &
other=$!
mkfifo "$WORK/said"
# interrupted COMMAND...: of workload, in a folder of its own, by Ctrl-C after its first launch.
mkdir -p "$WORK/here"
interrupted() {
    rm -f "$WORK/begun"
    # A shell's background processes ignore Ctrl-C; those of a terminal do not.
    (cd "$WORK/here" && exec env --default-signal=INT "$GENTABLES" workload "$@" -f "$tiny" -p 2 -t 1 \
        --launcher "$WORK/slow {ranks}" >"$stdout" 2>"$WORK/said") &
    pid=$!
    exec 3<"$WORK/said"
    until [ -e "$WORK/begun" ]; do
        kill -0 "$pid" 2>/dev/null || die "it ended before it began: $(cat <&3)"
    done
    kill -INT "$pid"
    cat <&3 >"$stderr"
    code=0
    wait "$pid" || code=$?
    [ "$code" = 130 ] || die "exit code $code, not 130"
}
interrupted sweep -c 1 -o "$WORK/cut"
child=$(cat "$WORK/launched")
kill -0 "$other" || die "a process of another program was ended"
kill "$other"
one_line 'interrupted by SIGINT; to resume, run the same command'
if kill -0 "$child" 2>/dev/null; then die "a child lives on"; fi
has '1 thread, 1 channel: failed after .*: interrupted by SIGINT' "$WORK"/cut/nccl_thread_sweep_*.log
has 'failed: interrupted by SIGINT' "$WORK/cut/1thread/nccl_1channels/run_output.log"
has '^1 +1 +interrupted +[0-9.]+ +- +- +interrupted by SIGINT' "$WORK"/cut/nccl_thread_sweep_summary_*.txt
succeeds workload sweep -f "$tiny" -p 2 -c 1 -t 1 -o "$WORK/cut"
grep -q '1 measured, 0 already present' "$stdout" || die "what was cut off counts as measured"

# The summary lists configurations that were not started. Without -o the name of the folder is made from the
# time: the name is printed at the beginning, and the command to resume at the end.
interrupted sweep -c 2,1
made=$(sed -n 's/^folder    //p' "$stdout")
case $made in experiments/sweep_*) ;; *) die "the folder is not printed" ;; esac
one_line "SIGINT; to resume, run the same command with -o $made"
summary=$(echo "$WORK/here/$made"/nccl_thread_sweep_summary_*.txt)
grep -Eq '^1 +2 +interrupted ' "$summary" || die "the summary lacks the interrupted configuration"
has '^1 +1 +not begun +- +- +-$' "$summary"
(cd "$WORK/here" && "$GENTABLES" workload sweep -f "$tiny" -p 2 -t 1 -c 2,1 -o "$made") >"$stdout" ||
    die "the printed command does not resume"
grep -q '2 measured, 0 already present' "$stdout" || die "what was cut off, or not begun, counts as measured"
if grep -q 'not begun' "$summary"; then die "what was measured was not begun"; fi
# The command to resume does not repeat --fresh.
interrupted sweep -c 2,1 -o "$made" --fresh
one_line 'SIGINT; to resume, run the same command without --fresh'
# A single configuration leaves nothing to resume.
interrupted run -c 1
one_line 'gentables: interrupted by SIGINT$'
