#!/bin/sh
# Workloads on GPUs, with stand-ins for the driver, cuBLASLt and NCCL that compute on the CPU: every kind of
# collective and GEMM has right results, traces follow the rules, the settings reach NCCL and its log is read,
# and all ranks name a rank that fails.
. "$SOURCE/tests/unit/workload/lib.sh"

. "$SOURCE/tests/bench/workload/gpu/lib_libraries.sh"
only cuda cublasLt nccl

odd_workloads 2 13 21
routed=$(routed_workload)

# ---- right, on two GPUs and more ----
for file in "$reduced" "$spread" "$routed"; do
    gpus "" 0 workload run --backend cuda -f "$file" -p 2 -c 28 -t 512 --steps 2 --warm-up 0
done
gpus "gpus=3 real_clock" 0 workload run --backend cuda -f "$spread" -p 3 --steps 1 --warm-up 0 \
    --trace "$WORK/rank%r.json"
keep_rules "$WORK"/rank[012].json
grep -q '"clock":"event"' "$WORK/rank0.json" || die "the trace lacks its clock"
grep -q '"name":"stand-in GPU"' "$WORK/rank0.json" || die "the trace does not name the GPU"

# ---- smaller types: exact although they cannot represent -2 .. 2 in every element; readers have their names
# ----
typed_workloads
for dtype in bfloat16 float16; do
    gpus "" 0 workload run --backend cuda -f "$WORK/spread_$dtype.lua" -p 2 --steps 1 --warm-up 0
    gpus "gpus=3 real_clock" 0 workload run --backend cuda -f "$WORK/$dtype.lua" -p 3 --steps 1 --warm-up 0 \
        --trace "$WORK/${dtype}_%r.json"
    keep_rules "$WORK/${dtype}"_[012].json
done
has '"Input type":\["c10::BFloat16","c10::BFloat16"\]' "$WORK/bfloat16_0.json"
has '"name":"ncclGentables_NCCL_ALLREDUCE_f16".*"dtype":"Half"' "$WORK/float16_0.json"

# GEMMs of several types in a step: elements that are summed and sent together have one type.
mixed_workloads 13 21
for file in "$mixed" "$mixed_spread"; do
    gpus "gpus=3 real_clock" 0 workload run --backend cuda -f "$file" -p 3 --steps 1 --warm-up 0 \
        --trace "$WORK/mixed%r.json"
    traces_have_types 13 21 "$WORK"/mixed[012].json
done

gpus own_gpu 0 workload run --backend cuda -f "$reduced" -p 2 --steps 1 --warm-up 0
gpus "own_gpu same_gpu" 1 workload run --backend cuda -f "$reduced" -p 2 --steps 1 --warm-up 0
one_line '2 ranks and 1 GPU: each rank needs a GPU'

# ---- a sweep: the summary has the facts of NCCL's log ----
gpus "most_channels=32" 0 workload sweep --backend cuda -f "$reduced" -p 2 -c 28,42 -t 256 --steps 2 \
    --warm-up 0 -o "$WORK/sweep_20260102_030405"
summary=$WORK/sweep_20260102_030405/nccl_thread_sweep_summary_20260102_030405.txt
grep -Eq '^256 +28 +ok +[0-9.]+ +256 +28 ' "$summary" || die "the summary lacks NCCL's own counts"
grep -Eq '^256 +42 +ok +[0-9.]+ +256 +32 ' "$summary" || die "the summary lacks the counts that NCCL limited"
succeeds workload report "$WORK/sweep_20260102_030405" --csv --without plots,comparisons,merge
page=$WORK/sweep_20260102_030405/workload.html
for text in '2 ranks, a GPU each; GEMMs' 'Times are of events on the GPUs' 'stand-in GPU' 'cuBLASLt [0-9]' \
    'NCCL [0-9]*\.[0-9]*\.[0-9]'; do
    grep -q "$text" "$page" || die "not on the page: $text"
done
for text in 'on the host' 'on a processor' 'OpenBLAS' 'futex' 'threads. own clock' 'for the processor'; do
    if grep -q "$text" "$page"; then die "on the page of GPUs: $text"; fi
done
if grep -q 'waiting' "$summary"; then die "the summary has the host's way to wait"; fi
log=$WORK/sweep_20260102_030405/256thread/nccl_28channels/run_output.log
grep -q 'traces are timed by events: no CUPTI' "$log" || die "the log lacks the reason for events"

# Streams wait, not the host: the time to enqueue a wait is not waiting.
gpus "" 0 workload sweep --backend cuda -f "$spread" -p 2 -c 28 -t 256 --steps 1 --warm-up 0 -o "$WORK/waits"
has '"await_us": 0\.0\>' "$WORK/waits/256thread/nccl_28channels/result.json"

# ---- settings that NCCL rejects without failing: in the log and in the summary, with or without -t ----
# -t also sets RCCL's own variable for the threads, and replaces its value.
for debug in "" "NCCL_DEBUG=WARN RCCL_THREADS_PER_BLOCK=64" \
    "NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$WORK/nccl.log"; do
    rm -rf "$WORK/sweep_20260102_030409"
    # shellcheck disable=SC2086
    ends_with 0 env $debug LD_LIBRARY_PATH="$folder" "$GENTABLES" workload sweep --backend cuda \
        -f "$reduced" -p 2 -c 28 -t 250 --steps 1 --warm-up 0 -o "$WORK/sweep_20260102_030409"
    summary=$WORK/sweep_20260102_030409/nccl_thread_sweep_summary_20260102_030409.txt
    grep -Eq '^250 +28 +ok +[0-9.]+ +250 +28 ' "$summary" || die "$debug: the summary lacks NCCL's own counts"
    has 'NCCL: Invalid NCCL_NTHREADS 250 \(must be a multiple of 32\)' "$summary"
    case $debug in *FILE*) continue ;; esac
    has 'stderr: .*RCCL_THREADS_PER_BLOCK set by environment to 250' \
        "$WORK/sweep_20260102_030409/250thread/nccl_28channels/run_output.log"
    has 'stderr: .*NCCL INFO Invalid NCCL_NTHREADS 250' \
        "$WORK/sweep_20260102_030409/250thread/nccl_28channels/run_output.log"
done
# Of several: the owner, in rows and below; each text once, also on standard output, and in the sweep's log.
gpus "most_channels=32" 0 workload sweep --backend cuda -f "$reduced" -p 2 -c 28,42 -t 250,256 --steps 1 \
    --warm-up 0 -o "$WORK/sweep_20260102_030410"
swept=$WORK/sweep_20260102_030410
summary=$swept/nccl_thread_sweep_summary_20260102_030410.txt
said='NCCL: Invalid NCCL_NTHREADS 250 .must be a multiple of 32.'
for file in "$summary" "$stdout"; do
    has "\[1\] 250 threads x 28, 42 channels: $said" "$file"
    grep -q '\[2\] all: traces are timed by events: no CUPTI' "$file" || die "no note for all configurations"
    [ "$(grep -c 'NCCL: ' "$file")$(grep -c 'no CUPTI' "$file")" = 11 ] || die "a text occurs twice"
done
for channels in 28 42; do
    grep -Eq "^250 +$channels +ok .*, hidden .* \[1\] \[2\]$" "$summary" || die "a row without its notes"
    grep -Eq "^256 +$channels +ok .*, hidden [^[]* \[2\]$" "$summary" || die "a row with another's note"
    grep -q "250 threads, $channels channels: ok, .*$said" "$swept"/nccl_thread_sweep_20*.log ||
        die "the sweep's log lacks what NCCL refused"
done
grep -q "coll channels" "$WORK/nccl.log" || die "the user's own log is gone"

# ---- a rank that fails: the others stop at once, at any wait, and all name it ----
# lonely WHAT SETTINGS OPTION...
lonely() {
    what=$1
    settings=$2
    shift 2
    gpus "$settings" 1 workload run --backend cuda -f "$reduced" -p 2 --steps 1 "$@"
    one_line "rank 1$what"
}
lonely ": NCCL makes no communicator: the stand-in's error 5" nccl_refuses_rank=1 --warm-up 0
lonely ': an event: .*719' "broken_rank=1 broken_after=0" --warm-up 0 # in set-up
# A step reads one time, a traced one many more: those of two verified steps, then of one of each kind.
for place in "1 its results" "3 serial step" "4 overlapped step" "5 traced step" \
    "7 gemms_traced step"; do
    lonely ": ${place#* }: an event: .*719" "broken_rank=1 broken_after=${place%% *}" --warm-up 0
done
lonely ": gemms step: an event: .*719" "broken_rank=1 broken_after=80" --warm-up 1
gpus "broken_rank=0 broken_after=3" 1 workload sweep --backend cuda -f "$reduced" -p 2 -c 28 -t 256 \
    --steps 1 --warm-up 0 -o "$WORK/sweep_20260102_030408"
has '^256 +28 +failed +[0-9.]+ +256 +28 +rank 0: serial step: an event: .*719' \
    "$WORK/sweep_20260102_030408/nccl_thread_sweep_summary_20260102_030408.txt"
has '^\[1\] 256 threads x 28 channels: traces are timed by events: no CUPTI' \
    "$WORK/sweep_20260102_030408/nccl_thread_sweep_summary_20260102_030408.txt"
