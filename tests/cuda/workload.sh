#!/bin/sh
# Workloads on GPUs, with stand-ins for the driver, cuBLASLt and NCCL that compute on the CPU: every kind of
# collective and GEMM is right, traces keep the rules, NCCL gets what was asked for and its log is believed,
# and what is missing ends in one clear line.
# shellcheck source=tests/workload/lib.sh
. "$SOURCE/tests/workload/lib.sh"

# shellcheck source=tests/cuda/lib_libraries.sh
. "$SOURCE/tests/cuda/lib_libraries.sh"
only cuda cublasLt nccl

odd_workloads 2 13 21
routed=$(routed_workload)

# ---- right, on two GPUs and more ----
for file in "$reduced" "$spread" "$routed"; do
    gpus "" 0 workload run --backend cuda -f "$file" -p 2 -c 28 -t 512 --steps 2 --warm-up 0
done
gpus "gpus=3 real_clock" 0 workload run --backend cuda -f "$spread" -p 3 --steps 1 --warm-up 0 \
    --trace "$WORK/rank%r.json"
"$GENTABLES" lua "$SOURCE/tests/workload/check_trace.lua" "$WORK"/rank[012].json ||
    die "traces break the rules"
grep -q '"clock":"event"' "$WORK/rank0.json" || die "the trace does not say its clock"
grep -q '"name":"stand-in GPU"' "$WORK/rank0.json" || die "the trace does not name the GPU"

# ---- smaller types: exact where -2 .. 2 in every element would not be; readers know their names ----
for dtype in bfloat16 float16; do
    long=$(workload "$dtype" <<END
return { name = "long", dtype = { host = "float32", cuda = "$dtype" }, tokens = 3000, micro_batches = 2,
  layers = { { name = "a", gemms = { { name = "g", n = 13, k = 21 }, { name = "h", n = 5, k = 3 } } },
    { name = "e", experts = { load = { 1, 2 } }, gemms = { { name = "up", n = 3, k = 5 } } } },
  gradients = { collective = "allreduce", bucket_bytes = 500 } }
END
    )
    sed "s/^return {/&dtype = '$dtype',/" "$spread" >"$WORK/spread_$dtype.lua"
    gpus "" 0 workload run --backend cuda -f "$WORK/spread_$dtype.lua" -p 2 --steps 1 --warm-up 0
    gpus "gpus=3 real_clock" 0 workload run --backend cuda -f "$long" -p 3 --steps 1 --warm-up 0 \
        --trace "$WORK/${dtype}_%r.json"
    "$GENTABLES" lua "$SOURCE/tests/workload/check_trace.lua" "$WORK/${dtype}"_[012].json ||
        die "traces break the rules"
done
grep -q '"Input type":\["c10::BFloat16","c10::BFloat16"\]' "$WORK/bfloat16_0.json" || die "GEMMs of bfloat16"
grep -q '"name":"ncclGentables_NCCL_ALLREDUCE_f16".*"dtype":"Half"' "$WORK/float16_0.json" ||
    die "collectives of float16"

# GEMMs of several types in a step: what is summed and sent together is of one.
mixed_workloads 13 21
for file in "$mixed" "$mixed_spread"; do
    gpus "gpus=3 real_clock" 0 workload run --backend cuda -f "$file" -p 3 --steps 1 --warm-up 0 \
        --trace "$WORK/mixed%r.json"
    types_are_told 13 21 "$WORK"/mixed[012].json
done

# without experts, whose tokens go by all_to_all
sed '/name = "e"/d; s/{ name = "h", n = 5, k = 3 } } },/{ name = "h", n = 5, k = 3 } } } },/' \
    "$WORK/bfloat16.lua" >"$WORK/bucketed.lua"
gpus own_gpu 0 workload run --backend cuda -f "$reduced" -p 2 --steps 1 --warm-up 0
gpus "own_gpu same_gpu" 1 workload run --backend cuda -f "$reduced" -p 2 --steps 1 --warm-up 0
one_line '2 ranks and 1 GPU: a GPU for each rank would be right'

# ---- a sweep: what NCCL's log says stands in the summary ----
gpus "most_channels=32" 0 workload sweep --backend cuda -f "$reduced" -p 2 -c 28,42 -t 256 --steps 2 \
    --warm-up 0 -o "$WORK/sweep_20260102_030405"
summary=$WORK/sweep_20260102_030405/nccl_thread_sweep_summary_20260102_030405.txt
grep -Eq '^256 +28 +ok +[0-9.]+ +256 +28 ' "$summary" || die "NCCL's own counts are not told"
grep -Eq '^256 +42 +ok +[0-9.]+ +256 +32 ' "$summary" || die "what NCCL made of it is not told"
ends_with 0 "$GENTABLES" workload report "$WORK/sweep_20260102_030405" --csv --without plots,comparisons,merge
page=$WORK/sweep_20260102_030405/workload.html
for text in '2 ranks, a GPU each; GEMMs' 'Times are of events on the GPUs' 'stand-in GPU' 'cuBLASLt [0-9]' \
    'NCCL [0-9]*\.[0-9]*\.[0-9]'; do
    grep -q "$text" "$page" || die "the page does not say: $text"
done
for text in 'on the host' 'on a processor' 'OpenBLAS' 'futex' 'threads. own clock' 'for the processor'; do
    if grep -q "$text" "$page"; then die "the page of GPUs says: $text"; fi
done
if grep -q 'waiting' "$summary"; then die "the summary says how the host waits"; fi
log=$WORK/sweep_20260102_030405/256thread/nccl_28channels/run_output.log
grep -q 'traces are timed by events: no CUPTI' "$log" || die "the log does not say why by events"

# Streams wait, not the host: what it takes to tell them so is no waiting.
gpus "" 0 workload sweep --backend cuda -f "$spread" -p 2 -c 28 -t 256 --steps 1 --warm-up 0 -o "$WORK/waits"
grep -q '"await_us": 0\.0\>' "$WORK/waits/256thread/nccl_28channels/result.json" || die "who waits on a GPU"

# ---- what NCCL refuses and goes on without: in the log and in the summary, whoever asked for its log ----
# RCCL's own name for the threads has what -t asks for, too, whatever it had.
for debug in "" "NCCL_DEBUG=WARN RCCL_THREADS_PER_BLOCK=64" \
    "NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$WORK/nccl.log"; do
    rm -rf "$WORK/sweep_20260102_030409"
    # shellcheck disable=SC2086
    ends_with 0 env $debug LD_LIBRARY_PATH="$folder" "$GENTABLES" workload sweep --backend cuda \
        -f "$reduced" -p 2 -c 28 -t 250 --steps 1 --warm-up 0 -o "$WORK/sweep_20260102_030409"
    summary=$WORK/sweep_20260102_030409/nccl_thread_sweep_summary_20260102_030409.txt
    grep -Eq '^250 +28 +ok +[0-9.]+ +250 +28 ' "$summary" || die "$debug: NCCL's own counts are not told"
    grep -q 'NCCL: Invalid NCCL_NTHREADS 250 (must be a multiple of 32)' "$summary" ||
        die "$debug: the summary lacks what NCCL refused"
    case $debug in *FILE*) continue ;; esac
    grep -q 'stderr: .*RCCL_THREADS_PER_BLOCK set by environment to 250' \
        "$WORK/sweep_20260102_030409/250thread/nccl_28channels/run_output.log" ||
        die "$debug: RCCL is told another number of threads"
    grep -q 'stderr: .*NCCL INFO Invalid NCCL_NTHREADS 250' \
        "$WORK/sweep_20260102_030409/250thread/nccl_28channels/run_output.log" ||
        die "$debug: the log lacks NCCL's own line"
done
# Of several: whose it is, in rows and below; each text once, also on standard output, and in the sweep's log.
gpus "most_channels=32" 0 workload sweep --backend cuda -f "$reduced" -p 2 -c 28,42 -t 250,256 --steps 1 \
    --warm-up 0 -o "$WORK/sweep_20260102_030410"
swept=$WORK/sweep_20260102_030410
summary=$swept/nccl_thread_sweep_summary_20260102_030410.txt
said='NCCL: Invalid NCCL_NTHREADS 250 .must be a multiple of 32.'
for file in "$summary" "$stdout"; do
    grep -q "\[1\] 250 threads x 28, 42 channels: $said" "$file" || die "whose threads NCCL refused"
    grep -q '\[2\] all: traces are timed by events: no CUPTI' "$file" || die "what all have in common"
    [ "$(grep -c 'NCCL: ' "$file")$(grep -c 'no CUPTI' "$file")" = 11 ] || die "the same is told twice"
done
for channels in 28 42; do
    grep -Eq "^250 +$channels +ok .*, hidden .* \[1\] \[2\]$" "$summary" || die "a row without its notes"
    grep -Eq "^256 +$channels +ok .*, hidden [^[]* \[2\]$" "$summary" || die "a row with another's note"
    grep -q "250 threads, $channels channels: ok, .*$said" "$swept"/nccl_thread_sweep_20*.log ||
        die "the sweep's log lacks what NCCL refused"
done
grep -q "coll channels" "$WORK/nccl.log" || die "a log of somebody else's is not theirs any more"

# ---- a rank that fails: the others are told at once, wherever they wait, and all name it ----
# lonely WHAT SETTINGS OPTION...
lonely() {
    what=$1
    settings=$2
    shift 2
    gpus "$settings" 1 workload run --backend cuda -f "$reduced" -p 2 --steps 1 "$@"
    one_line "rank 1$what"
}
lonely ': NCCL makes no communicator: invalid usage' nccl_refuses_rank=1 --warm-up 0
lonely ': an event: .*719' "broken_rank=1 broken_after=0" --warm-up 0 # in set-up
# A step asks for one time, a noted one for many more: those of two verified steps, then of one of each kind.
for place in "1 its results" "3 serial step" "4 overlapped step" "5 traced step" \
    "7 gemms_traced step"; do
    lonely ": ${place#* }: an event: .*719" "broken_rank=1 broken_after=${place%% *}" --warm-up 0
done
lonely ": gemms step: an event: .*719" "broken_rank=1 broken_after=80" --warm-up 1
gpus "broken_rank=0 broken_after=3" 1 workload sweep --backend cuda -f "$reduced" -p 2 -c 28 -t 256 \
    --steps 1 --warm-up 0 -o "$WORK/sweep_20260102_030408"
grep -Eq '^256 +28 +failed +[0-9.]+ +256 +28 +rank 0: serial step: an event: .*719' \
    "$WORK/sweep_20260102_030408/nccl_thread_sweep_summary_20260102_030408.txt" ||
    die "the summary does not name the rank that failed, or what NCCL had accepted"
grep -q '^\[1\] 256 threads x 28 channels: traces are timed by events: no CUPTI' \
    "$WORK/sweep_20260102_030408/nccl_thread_sweep_summary_20260102_030408.txt" ||
    die "what was said of a configuration that failed is lost"

# ---- our own kernels, all ranks on one GPU ----
only cuda cublasLt
own() {
    code=$1
    settings=$2
    file=$3
    shift 3
    gpus "$settings" "$code" workload run --backend cuda --transport own -f "$file" --steps 2 --warm-up 0 "$@"
}
own 0 gpus=1 "$reduced" -p 2 -c 3 -t 64
own 0 "gpus=1 real_clock" "$WORK/bucketed.lua" -p 2 -c 2 -t 96 --trace "$WORK/own%r.json"
"$GENTABLES" lua "$SOURCE/tests/workload/check_trace.lua" "$WORK"/own[01].json || die "traces break the rules"
grep -q '"name":"ncclGentables_TWOSHOT_bf16"' "$WORK/own1.json" || die "the trace does not name our kernel"
grep -q 'all ranks share one GPU: kernels are real, links are not' "$stdout" || die "a GPU that ranks share"
own 1 gpus=1 "$reduced" -p 2 -c 9 -t 64
one_line '9 blocks of 64 threads for each of 2 ranks: this GPU holds 8 of them at once, by --channels'
own 1 gpus=1 "$reduced" -p 2 -c 2 -t 65
one_line 'blocks of 65 threads: multiples of 32 would be right, by --threads'
own 1 gpus=1 "$reduced" -p 3 -c 2 -t 64
one_line 'our kernels are built for .* ranks, not 3'
for file in "$spread" "$routed" "$WORK/spread_bfloat16.lua" "$WORK/spread_float16.lua"; do
    own 0 gpus=1 "$file" -p 2 -c 3 -t 64
done
own 0 "gpus=1 real_clock" "$WORK/bfloat16.lua" -p 2 -c 2 -t 96 --trace "$WORK/routed%r.json"
"$GENTABLES" lua "$SOURCE/tests/workload/check_trace.lua" "$WORK"/routed[01].json ||
    die "traces break the rules"
grep -q '"name":"ncclGentables_ALL_TO_ALL_bf16"' "$WORK/routed1.json" || die "the trace names no all_to_all"
for file in "$mixed" "$mixed_spread"; do
    gpus "gpus=1 real_clock" 0 workload run --backend cuda --transport own -f "$file" -p 2 -c 2 -t 64 \
        --steps 1 --warm-up 0 --trace "$WORK/mixed%r.json"
    types_are_told 13 21 "$WORK"/mixed[01].json
done
# Those that come along: the small one as it is, the others in matrices a quarter as wide and long, for
# kernels on a CPU take their time.
own 0 gpus=1 small -p 2 -c 2 -t 64
for name in dense moe; do
    sed 's/^local hidden = 512/local hidden = 128/; s/bytes = 1024 \* 1024/bytes = 64 * 1024/
        s/tokens = 512/tokens = 128/; s/tokens = 384/tokens = 96/' "$SOURCE/workloads/$name.lua" \
        >"$WORK/$name.lua"
    "$GENTABLES" workload show -f "$WORK/$name.lua" -p 2 >"$WORK/scaled"
    "$GENTABLES" workload show -f "$name" -p 2 >"$WORK/shipped"
    [ "$(head -n 1 "$WORK/scaled")" = "$(head -n 1 "$WORK/shipped")" ] ||
        die "$name: not the same step, scaled"
    own 0 gpus=1 "$WORK/$name.lua" -p 2 -c 2 -t 64
done
own 1 "gpus=1 no_binary" "$reduced" -p 2 -c 2 -t 64
one_line 'our kernels are built for .*, not for this GPU'
own 1 "gpus=1 memory_mib=100" "$reduced" -p 2 -c 2 -t 64
one_line 'out of memory'
gpus gpus=1 0 workload sweep --backend cuda --transport own -f "$reduced" -p 2 -c 2,4 -t 32 --steps 2 \
    --warm-up 0 -o "$WORK/sweep_20260102_030406"
summary=$WORK/sweep_20260102_030406/nccl_thread_sweep_summary_20260102_030406.txt
grep -Eq '^32 +4 +ok +[0-9.]+ +32 +4 ' "$summary" || die "a sweep over our own kernels' blocks"
ends_with 0 "$GENTABLES" workload report "$WORK/sweep_20260102_030406" --csv --without plots,comparisons,merge
grep -q '2 ranks on one GPU; .*links are not' "$WORK/sweep_20260102_030406/workload.html" || die "who shares"

# Gone on with where there is another GPU: what was measured stays, and nothing of the other one joins it.
kept=$(cat "$WORK"/sweep_20260102_030406/32thread/nccl_*channels/result.json | cksum)
rest() {
    gpus "gpus=1 other_gpu" "$1" workload sweep --backend cuda --transport own -f "$reduced" -p 2 -c "$2" \
        -t 32 --steps 2 --warm-up 0 -o "$WORK/sweep_20260102_030406"
}
rest 2 2,4,3
one_line 'measured with another GPU: stand-in GPU, and here is stand-in GPU of another kind; another --out'
[ ! -e "$WORK/sweep_20260102_030406/32thread/nccl_3channels/result.json" ] || die "another GPU has joined"
[ "$kept" = "$(cat "$WORK"/sweep_20260102_030406/32thread/nccl_*channels/result.json | cksum)" ] ||
    die "what another GPU measured was touched"
rest 0 2,4 # nothing is missing, so nothing is measured
grep -q '0 measured, 2 there already, 0 failed' "$stdout" || die "what is there was measured again"
# Two sweeps of two GPUs in one page: their kinds differ, which it says.
gpus "gpus=1 other_gpu" 0 workload sweep --backend cuda --transport own -f "$reduced" -p 2 -c 2 -t 32 \
    --steps 2 --warm-up 0 -o "$WORK/elsewhere"
ends_with 0 "$GENTABLES" workload compare "$WORK/sweep_20260102_030406" "$WORK/elsewhere" -o "$WORK/two.html"
grep -q 'differ in their GPU: stand-in GPU, stand-in GPU of another kind' "$WORK/two.html" ||
    die "two GPUs are compared as one"

# ---- kernels that wait too long: told to give up; what follows is not harmed ----
# shellcheck source=tests/mpirun.sh
. "$SOURCE/tests/mpirun.sh"
export MPIRUN="$mpirun"
cat >"$WORK/short_patience" <<'END'
#!/bin/sh
shift
sed -u '/ channels=4 /s/patience_ms=[0-9]*/patience_ms=300/' |
    $MPIRUN -n 2 "$@"
END
chmod +x "$WORK/short_patience"
gpus "gpus=1 held_blocks=4" 1 workload sweep --backend cuda --transport own -f "$reduced" -p 2 -c 4,2 -t 32 \
    --steps 1 --warm-up 0 -o "$WORK/sweep_20260102_030407" --launcher "$WORK/short_patience {ranks}"
swept=$WORK/sweep_20260102_030407
summary=$swept/nccl_thread_sweep_summary_20260102_030407.txt
grep -Eq '^32 +4 +failed .*no progress for more than 0.3 s, and its kernels gave up' "$summary" ||
    die "who gave up"
grep -Eq '^32 +2 +ok ' "$summary" || die "the sweep does not go on"
grep -q 'no progress for more than 0.3 s, and its kernels gave up' \
    "$swept/32thread/nccl_4channels/run_output.log" ||
    die "the log does not say who gave up"
own 1 "gpus=1 hang_on=twoshot" "$reduced" -p 2 -c 4 -t 32 --launcher "$WORK/short_patience {ranks}"
one_line 'no progress for more than 0.3 s, and the GPU hangs'
# A step that takes long and goes on is none of these, and says that it is still there.
cat >"$WORK/patience" <<END
#!/bin/sh
shift
sed -u 's/patience_ms=[0-9]*/patience_ms=2000/' |
    $mpirun -n 2 "\$@" |
    tee "$WORK/said"
END
chmod +x "$WORK/patience"
own 0 "gpus=1 paced_ms=40 paced=75" "$spread" -p 2 -c 2 -t 32 --launcher "$WORK/patience {ranks}"
grep -q '^progress done=0 ' "$WORK/said" || die "a long step does not say that it goes on"
own 1 "gpus=1 held_blocks=4 give_up_breaks" "$spread" -p 2 -c 4 -t 32 \
    --launcher "$WORK/short_patience {ranks}"
one_line 'the GPU, told to give up: .*700'

# ---- where it runs unless told: where a GPU can be used, there ----
only cuda cublasLt nccl
unasked() {
    settings=$1
    code=$2
    shift 2
    gpus "$settings" "$code" workload sweep -f "$reduced" -p 2 --steps 1 --warm-up 0 "$@"
}
swept=$WORK/sweep_20260102_030411
unasked "" 0 -c 28,42 -t 256,512 -o "$swept"
for file in "$stdout" "$swept"/nccl_thread_sweep_20*.log; do
    grep -q 'cuda, for 2 GPUs are seen; --backend host decides otherwise' "$file" || die "who decided"
done
grep -q '"backend": *"cuda"' "$swept/workload.json" || die "a GPU can be used, and is not taken"
grep -q '4 measured, 0 there already, 0 failed' "$stdout" || die "a sweep on the GPUs that are seen"
# It goes on as it was begun, or says what is in the way.
unasked "gpus=0" 0 -c 28,42 -t 256,512 -o "$swept"
grep -q '^backend   cuda, as this sweep was begun$' "$stdout" || die "why it goes on there"
grep -q '0 measured, 4 there already' "$stdout" || die "what is there was measured again"
unasked "" 2 -c 2 -t 1 -o "$swept" --backend host
one_line 'was measured with another backend; another --out, or --fresh, would be right'
unasked "" 0 -c 2 -t 1 -o "$WORK/told" --backend host
grep -q '"backend": *"host"' "$WORK/told/workload.json" || die "the host was asked for"
if grep -q '^backend' "$stdout"; then die "what was asked for was decided"; fi
unasked "" 0 -c 2,3 -t 1 -o "$WORK/told"
grep -q '^backend   host, as this sweep was begun$' "$stdout" || die "a sweep of the host goes on there"
grep -q '1 measured, 1 there already' "$stdout" || die "a sweep of the host does not go on"
unasked "gpus=0" 2 -c 28 -t 256 -o "$WORK/none"
one_line '--threads: 256 is impossible; .* on the host, for no GPU can be used: no GPU: the driver'
[ ! -e "$WORK/none" ] || die "a sweep that is refused has begun"
unasked "gpus=0" 0 -c 2 -t 1 -o "$WORK/none"
grep -q '^backend   host, for no GPU can be used: no GPU: the driver' "$stdout" || die "why on the host"
# NCCL has a GPU for each rank; all on one are ours. Of several each has a rank.
gpus "gpus=1" 0 workload run -f "$reduced" -c 2 -t 64 --steps 1 --warm-up 0
grep -q '^backend   cuda, all ranks on one GPU, by --transport own; --backend' "$stdout" ||
    die "ranks that share the GPU that is there"
gpus "gpus=3" 0 workload run -f "$spread" --steps 1 --warm-up 0 --json
grep -q '"backend": *"cuda"' "$stdout" || die "JSON alone, of the GPUs"
head -c 1 "$stdout" | grep -q '{' || die "JSON does not stand alone"
grep -q '^backend   cuda, for 3 GPUs are seen' "$stderr" || die "who decided, beside JSON"
[ "$(grep -o '"gemm_alone_us"' "$stdout" | wc -l)" = 3 ] || die "a rank for each GPU"
# A transport that only one of them has decides, too.
gpus "" 0 workload run -f "$reduced" -p 2 --steps 1 --warm-up 0 --transport mpi --json
grep -q '"backend": *"host"' "$stdout" || die "MPI's collectives are of the host"
gpus "gpus=0" 1 workload run -f "$reduced" -p 2 --steps 1 --warm-up 0 --transport nccl
grep -q 'no GPU: the driver sees none' "$stderr" || die "NCCL's are of GPUs"
gpus "" 0 workload run -f "$reduced" -p 2 -c 2 -t 64 --steps 1 --warm-up 0 --transport own
grep -q '^backend   cuda, all ranks on one GPU, by --transport own; --backend' "$stdout" ||
    die "ranks that share one of several"
# Without the libraries that steps need there.
only cuda cublasLt
gpus "" 0 workload run -f "$reduced" -p 2 -c 2 -t 64 --steps 1 --warm-up 0
grep -q '^backend   cuda, all ranks on one GPU, by --transport own, for NCCL is not here' "$stdout" ||
    die "without NCCL"
only cuda nccl
gpus "" 0 workload run -f "$reduced" -p 2 --steps 1 --warm-up 0
grep -q '^backend   host, for no GPU can be used: libcublasLt' "$stdout" || die "without cuBLASLt"
only
gpus "" 0 workload run -f "$reduced" -p 2 --steps 1 --warm-up 0
grep -q '^backend   host, for no GPU can be used: no CUDA driver' "$stdout" || die "without a driver"

# ---- what is missing ----
only cuda cublasLt nccl
run() { gpus "$1" 1 workload run --backend cuda -f "$reduced" -p 2 --steps 1 --warm-up 0; }
run gpus=1
one_line '2 ranks and 1 GPU: a GPU for each rank would be right'
run gpus=0
one_line 'no GPU: the driver sees none'
run memory_mib=100
one_line 'out of memory'
run nccl_refuses
one_line 'NCCL makes no communicator: invalid usage; no such thing'
run refuses
one_line 'cuBLASLt does not compute this'
only cuda cublasLt
run ""
one_line 'NCCL is not here'
only cuda nccl
run ""
one_line 'libcublasLt.so'
only
run ""
one_line 'no CUDA driver'
