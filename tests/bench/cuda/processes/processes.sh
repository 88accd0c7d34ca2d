#!/bin/sh
# Ranks that are processes: every strategy has right results with every kind of memory handle. If one kind
# fails, the next one is used, or the output has the reason.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_processes.sh"

# ---- every way to share memory, every strategy ----
all_timed "$own $switch $nccl NCCL_UNFUSED" processes 2 "multicast has_fabric fabric" --mode graph \
    --fusion RESIDUAL_RMS_NORM_QUANT_FP8
all_timed "$own $switch $nccl NCCL_UNFUSED" processes 2 "multicast" --fusion RESIDUAL_RMS_NORM
all_timed "$own $nccl" processes 2 "no_files" # CUDA IPC
reason NVLS_ONESHOT "the hardware has no multicast"
all_timed "$own $switch $nccl" processes 2 "own_gpu multicast" # a GPU that only its process sees
all_timed "$own $switch $nccl" processes 4 "gpus=4 multicast"
all_timed "TWOSHOT NVLS_TWOSHOT" processes 4 "gpus=4 multicast has_fabric fabric own_gpu" \
    --strategies TWOSHOT,NVLS_TWOSHOT

# ---- if one kind of handle fails, the next one is used ----
# reached WAY SETTINGS: expects that memory is shared in this way.
request 64 4 eager strategies=TWOSHOT,NVLS_TWOSHOT >"$WORK/requests"
reached() {
    # shellcheck disable=SC2086
    STAND_IN=$2 LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 200 $mpirun 2 "$BENCH-mpi" --serve \
        --workspace 64K <"$WORK/requests" >"$WORK/out" 2>"$WORK/err" || fail "$2: not served"
    [ "$(grep -c "^device .* reach=$1 " "$WORK/out")" = 2 ] || fail "$2: memory is not shared by $1"
    printed out "^row id=1 strategy=TWOSHOT "
}
reached fabric "has_fabric fabric"
reached file "has_fabric"               # refused to this user
reached file "has_fabric fabric own_fabric" # refused by the importing process
reached ipc "no_files"                  # the device reports that it has none
reached ipc "no_files has_files"        # or only a request for one fails
reached ipc "bad_files"                 # they cannot be sent to the other ranks
reached ipc "has_fabric fabric own_fabric bad_files multicast"
printed out "^none id=1 strategy=NVLS_TWOSHOT .*no multicast for memory of the kind: ipc"
all_timed "$nccl" processes 2 "no_files no_ipc"
for strategy in $own $switch; do
    reason "$strategy" "ranks share no memory: ipc, sharing memory: an error of the stand-in"
done
all_timed "$own $nccl" processes 2 "multicast bad_team"
for strategy in $switch; do
    reason "$strategy" "a file descriptor of memory, to rank 1: Bad file descriptor"
done
