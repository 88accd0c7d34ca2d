#!/bin/sh
# Workloads by our own kernels, all ranks on one GPU, with stand-ins: every kind of collective has right
# results; sizes that do not fit are rejected; sweeps resume, but not on another GPU; kernels that wait too
# long are stopped.
. "$SOURCE/tests/unit/workload/lib.sh"
. "$SOURCE/tests/bench/workload/gpu/lib_libraries.sh"
odd_workloads 2 13 21
routed=$(routed_workload)
typed_workloads
mixed_workloads 13 21

# ---- our own kernels, all ranks on one GPU ----
only cuda cublasLt
own() {
    code=$1
    settings=$2
    file=$3
    shift 3
    gpus "$settings" "$code" workload run --backend cuda --transport builtin -f "$file" --steps 2 \
        --warm-up 0 "$@"
}
own 0 "gpus=1 module_loading=LAZY" "$reduced" -p 2 -c 3 -t 64
own 0 "gpus=1 real_clock" "$WORK/bucketed.lua" -p 2 -c 2 -t 96 --trace "$WORK/own%r.json"
keep_rules "$WORK"/own[01].json
grep -q '"name":"ncclGentables_TWOSHOT_bf16"' "$WORK/own1.json" || die "the trace does not name our kernel"
has 'all ranks share one GPU: kernels are real, links are not' "$stdout"
# Our blocks leave multiprocessors free, so that a GEMM with blocks that wait for each other goes on.
own 0 "gpus=1 gemms_wait" "$reduced" -p 2 -c 9 -t 64
has '64 threads, 9 channels were requested; 64 threads, 3 channels were used; all ranks share' "$stdout"
has 'at most 3: 1 of 8 multiprocessors stay free for GEMMs' "$stdout"
own 1 "gpus=1 multiprocessors=2" "$reduced" -p 2 -c 2 -t 64
one_line '2 ranks need a block of 64 threads each, and beside GEMMs this GPU has room for 1; use fewer'
own 1 gpus=1 "$reduced" -p 2 -c 2 -t 65
one_line 'blocks of 65 threads; --threads must be a multiple of 32'
own 1 gpus=1 "$reduced" -p 3 -c 2 -t 64
one_line 'our kernels are built for .* ranks, not 3'
for file in "$spread" "$routed" "$WORK/spread_bfloat16.lua" "$WORK/spread_float16.lua"; do
    own 0 gpus=1 "$file" -p 2 -c 3 -t 64
done
own 0 "gpus=1 real_clock" "$WORK/bfloat16.lua" -p 2 -c 2 -t 96 --trace "$WORK/routed%r.json"
keep_rules "$WORK"/routed[01].json
grep -q '"name":"ncclGentables_ALL_TO_ALL_bf16"' "$WORK/routed1.json" || die "the trace names no all_to_all"
for file in "$mixed" "$mixed_spread"; do
    gpus "gpus=1 real_clock" 0 workload run --backend cuda --transport builtin -f "$file" -p 2 -c 2 -t 64 \
        --steps 1 --warm-up 0 --trace "$WORK/mixed%r.json"
    traces_have_types 13 21 "$WORK"/mixed[01].json
done
# The shipped workloads: the small one as it is, the others with matrices of a quarter of the width and
# length, because kernels are slow on a CPU.
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
gpus gpus=1 0 workload sweep --backend cuda --transport builtin -f "$reduced" -p 2 -c 2,4 -t 32 --steps 2 \
    --warm-up 0 -o "$WORK/sweep_20260102_030406"
summary=$WORK/sweep_20260102_030406/nccl_thread_sweep_summary_20260102_030406.txt
has '^32 +4 +ok +[0-9.]+ +32 +3 ' "$summary" # a sweep over the blocks of our own kernels
succeeds workload report "$WORK/sweep_20260102_030406" --csv --without plots,comparisons,merge
has '1 of 8 multiprocessors stay free for GEMMs' "$summary"
has '2 ranks on one GPU; .*links are not' "$WORK/sweep_20260102_030406/workload.html"

# Resumed on a machine with another GPU: the measured runs stay, and none of the other GPU are added.
kept=$(cat "$WORK"/sweep_20260102_030406/32thread/nccl_*channels/result.json | cksum)
rest() {
    gpus "gpus=1 other_gpu" "$1" workload sweep --backend cuda --transport builtin -f "$reduced" -p 2 \
        -c "$2" -t 32 --steps 2 --warm-up 0 -o "$WORK/sweep_20260102_030406"
}
rest 2 2,4,3
one_line 'measured with another GPU: stand-in GPU instead of stand-in GPU of another kind; give'
[ ! -e "$WORK/sweep_20260102_030406/32thread/nccl_3channels/result.json" ] || die "another GPU has joined"
[ "$kept" = "$(cat "$WORK"/sweep_20260102_030406/32thread/nccl_*channels/result.json | cksum)" ] ||
    die "what another GPU measured was touched"
rest 0 2,4 # nothing is missing, so nothing is measured
grep -q '0 measured, 2 already present, 0 failed' "$stdout" || die "what is there was measured again"
# Two sweeps of two GPUs in one page: the page reports that their GPUs differ.
gpus "gpus=1 other_gpu" 0 workload sweep --backend cuda --transport builtin -f "$reduced" -p 2 -c 2 -t 32 \
    --steps 2 --warm-up 0 -o "$WORK/elsewhere"
succeeds workload compare "$WORK/sweep_20260102_030406" "$WORK/elsewhere" -o "$WORK/two.html"
has 'differ in their GPU: stand-in GPU, stand-in GPU of another kind' "$WORK/two.html"

# ---- kernels that wait too long are stopped; later kernels are not affected ----
. "$SOURCE/tests/mpirun.sh"
export MPIRUN="$mpirun"
cat >"$WORK/short_patience" <<'END'
#!/bin/sh
shift
sed -u '/ channels=4 /s/patience_ms=[0-9]*/patience_ms=300/' |
    $MPIRUN -n 2 "$@"
END
chmod +x "$WORK/short_patience"
gpus "gpus=1 held_blocks=3" 1 workload sweep --backend cuda --transport builtin -f "$reduced" -p 2 \
    -c 4,2 -t 32 --steps 1 --warm-up 0 -o "$WORK/sweep_20260102_030407" \
    --launcher "$WORK/short_patience {ranks}"
swept=$WORK/sweep_20260102_030407
summary=$swept/nccl_thread_sweep_summary_20260102_030407.txt
has '^32 +4 +failed .*no progress for more than 0.3 s, and its kernels gave up' "$summary"
grep -Eq '^32 +2 +ok ' "$summary" || die "the sweep does not go on"
has 'no progress for more than 0.3 s, and its kernels gave up' "$swept/32thread/nccl_4channels/run_output.log"
own 1 "gpus=1 hang_on=twoshot" "$reduced" -p 2 -c 4 -t 32 --launcher "$WORK/short_patience {ranks}"
one_line 'no progress for more than 0.3 s, and the GPU hangs'
# A long step that makes progress is not stopped, and prints its progress.
cat >"$WORK/patience" <<END
#!/bin/sh
shift
sed -u 's/patience_ms=[0-9]*/patience_ms=2000/' |
    $mpirun -n 2 "\$@" |
    tee "$WORK/said"
END
chmod +x "$WORK/patience"
own 0 "gpus=1 paced_ms=40 paced=75" "$spread" -p 2 -c 2 -t 32 --launcher "$WORK/patience {ranks}"
grep -q '^progress done=0 ' "$WORK/said" || die "a long step prints no progress"
own 1 "gpus=1 held_blocks=3 give_up_breaks" "$spread" -p 2 -c 4 -t 32 \
    --launcher "$WORK/short_patience {ranks}"
one_line 'the GPU, after its kernels gave up: .*700'
