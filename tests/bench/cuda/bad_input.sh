#!/bin/sh
# If a GPU bench lacks a library, a GPU or memory, it prints one clear line and ends with exit code 2; if only
# some strategies cannot run, the others do.
. "$(dirname "$0")/lib_stand_in.sh"
arena=''

# refused SETTINGS TEXT OPTION...: expects exit code 2, and one line with TEXT.
refused() {
    wanted=$2
    settings=$1
    shift 2
    ends 2 "$settings" "$@"
    [ "$(grep -c . "$WORK/err")" = 1 ] || fail "$wanted: more than one line"
    grep -qF "gentables-bench: $wanted" "$WORK/err" || fail "$wanted: not printed"
}

# without STRATEGY SETTINGS TEXT OPTION...: expects no time of STRATEGY, for this reason, and a time of
# ONESHOT or NCCL.
without() {
    strategy=$1 settings=$2 wanted=$3
    shift 3
    ends 0 "$settings" -b 256 -e 256 --samples 2 --budget 0.03 "$@"
    grep "^# .* $strategy  *" "$WORK/out" | grep -qF "$wanted" || fail "$strategy: not printed: $wanted"
    printed out "^  *256 .* sum  *[A-Z_]*  *$above_0 "
}

only
refused "" "no CUDA driver (libcuda.so.1)"
only cuda nvidia-ml
refused "driver=0" "no CUDA driver: its library reports version 0"
refused "driver=11080" "the CUDA driver is for 11.8, older than this program's CUDA 1"
grep -q "; install one for CUDA [0-9]*.0 or later" "$WORK/err" || fail "an old driver: no way out"
refused "gpus=0" "no GPU: the driver sees none"
refused "gpus=1" "2 ranks need 2 GPUs, and here is 1; --loopback puts all ranks on one"
refused "gpus=4" "8 ranks need 8 GPUs, and here are 4; --loopback puts all ranks on one" --ranks 8
refused "sm=90,80" "GPUs of several kinds: rank 0 has sm_90, rank 1 sm_80"
refused "sm=75 no_binary" "kernels were built for "
if [ "$IS_COMPILED" = ON ]; then
    export CUDA_FORCE_PTX_JIT=1
    refused "no_binary" "CUDA_FORCE_PTX_JIT is set, and the driver cannot compile this program's PTX for sm"
    unset CUDA_FORCE_PTX_JIT
fi
need="messages of 8192 KiB need 64 MiB for their data, and a rank has"
refused "memory_mib=60" "$need 59 of GPU 0" --workspace 8M
refused "gpus=1 memory_mib=100" "$need 49 of GPU 0; use a smaller --workspace or --arena" \
    --workspace 8M --loopback
without NCCL "" "NCCL was not found (libnccl.so.2)"
without ONESHOT "memory_mib=12" "out of memory on GPU" --hidden-size 64 --workspace 1M
none="out of memory on GPU 0: 6[0-9]* KiB for a rank, and [0-9]* are free"
grep -q "^# .*$none; use a smaller --workspace" "$WORK/out" || fail "the exhausted memory is not named"

# The memory of a GPU is divided among its ranks; data that do not fit at once are made one after the other.
# fits SETTINGS OPTION...
fits() {
    ends 0 "$@" -b 256 -e 256 --hidden-size 64 --samples 2 --budget 0.03 --workspace 4M --arena 16G
    for strategy in ONESHOT TWOSHOT; do printed out "^  *256 .* sum  *$strategy  *$above_0 "; done
}
fits "memory_mib=100"
fits "memory_mib=186 granularity_kib=32768" # the unit of allocations, of small ones, too
fits "gpus=1 memory_mib=200" --loopback
fits "gpus=1 memory_mib=200" --streams

only cuda nccl nvidia-ml
without ONESHOT "no_peers" "no peer access between the GPUs"
without NCCL "gpus=1" "duplicate GPU" --loopback
without NCCL_SYMMETRIC "nccl=22600" "NCCL has no symmetric windows; version 2.27 or later is required"
without NCCL_SYMMETRIC "nccl_without_windows" "NCCL has no symmetric windows here"
without NCCL_SYMMETRIC "nccl_falls_back" "NCCL fell back"
without NVLS_TWOSHOT "" "the hardware has no multicast"
without ONESHOT_MULTICAST "" "the hardware has no multicast"
without ONESHOT_MULTICAST "gpus=1 multicast" "a multicast team needs a GPU for each rank" --loopback
without NVLS_ONESHOT "multicast team_fails" "binding memory to a multicast team: an error of the stand-in"
beside never_answers without NCCL "nccl_never_answers" \
    "NCCL, making a communicator: no answer within 18 s" --timeout 3
# The first communicator has six deadlines, at most 60 s; later ones have one.
slow_first() {
    all_timed NCCL bench "nccl_first_s=6" -b 256 -e 256 --samples 2 --budget 0.03 --timeout 3 \
        --strategies ONESHOT,NCCL
}
beside slow_first slow_first
# A cell with a communicator that hangs is lost; the next cell gets a new communicator.
lost() {
    ends 0 "nccl_lost=2" -b 256 -e 512 -f 2 --samples 2 --budget 0.03 --timeout 3 --strategies ONESHOT,NCCL
    printed out "^# .* NCCL  *.*making a communicator: no answer within 18 s"
    grep -q "^  *512 .* sum  *NCCL  *$above_0 " "$WORK/out" || fail "no other communicator"
}
beside lost lost

# From 2.30 on NCCL can run several ranks on one GPU, if that is enabled; it launches for each of them.
allowed="duplicate GPU: NCCL takes one for several ranks with NCCL_MULTI_RANK_GPU_ENABLE=1"
without NCCL "gpus=1 nccl=23000" "$allowed" --streams
without NCCL "gpus=1 nccl=22999" "duplicate GPU: this NCCL needs one for each rank" --streams
export NCCL_MULTI_RANK_GPU_ENABLE=1
without NCCL "gpus=1 nccl=22999" "duplicate GPU: this NCCL needs one for each rank" --streams
without NCCL "gpus=1 nccl=23000" "NCCL launches for each rank; use --streams" --loopback
bench "gpus=1 nccl=23000" -b 256 -e 256 --samples 2 --budget 0.03 --streams --strategies ONESHOT,NCCL
grep -q "^  *256 .* sum  *NCCL  *$above_0 " "$WORK/out" || fail "several ranks on a GPU: NCCL has no time"
unset NCCL_MULTI_RANK_GPU_ENABLE

# A driver that fails permanently ends the bench, with a message; the caller starts another bench.
ends 1 "sticky" -b 256 -e 256
printed err "gentables-bench: a launch: an error of the stand-in"
# So does a GPU that hangs: the bench stops the kernels, and the deadline ends. NCCL, which then waits for its
# graphs, delays no rank.
# hangs SETTINGS OPTION...
hangs() {
    ends 1 "$@" -b 256 -e 256 --timeout 5
    printed err "gentables-bench: rank [01]'s GPU hung for 5 s"
}
beside in_a_graph hangs "hang_on=gentables_norm" --fusion RESIDUAL_RMS_NORM --mode graph \
    --strategies NCCL,NCCL_UNFUSED
beside in_eager_mode hangs "hang"

"$BENCH" --help | grep -q -- --loopback || fail "no help without a driver"
all_beside
