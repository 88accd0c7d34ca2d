#!/bin/sh
# Ranks that are processes: one line reports settings that do not fit; a fault in one process is caught; a
# rank that dies or stops ends the bench, and no process is left.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_processes.sh"

# not_the_same: the data from other ranks is a copy, so ranks never meet.
not_the_same() {
    ended 1 "rank [01]'s GPU hung for 6 s; its kernels gave up" 2 "private_rank=1" --timeout 6
}

# ---- a rank that stops, or dies, amid the others' kernels; before and during the timing ----
# stops KERNELS; dies KERNELS
stops() {
    ended 1 "rank 0's GPU hung for 6 s; its kernels gave up" 2 "stopped_rank=1 after_kernels=$1" --timeout 6
}
dies() {
    processes 2 "dead_rank=1 after_kernels=$1" --timeout 6
    [ "$status" != 0 ] || fail "a process that dies: exit code 0"
    grep -q "process rank 1 .* exited on signal 9" "$WORK/err" || fail "a process that dies: no message"
    nothing_is_left "a process that dies"
}
beside not_the_same in_place not_the_same
for kernels in 0 30; do
    beside stops_$kernels in_place stops $kernels
    beside dies_$kernels in_place dies $kernels
done

# ---- settings that do not fit ----
ended 2 "GPUs of several kinds: rank 0 has sm_90, rank 1 sm_80;" 2 "sm=90,80"
ended 2 "GPUs of several kinds: rank 0 has sm_90, rank 1 sm_80;" 2 "own_gpu sm=90,80"
ended 2 "unavailable: shared GPU: 2 processes, and each sees 1;" 2 "gpus=1"
ended 2 "unavailable: shared GPU: 4 processes, and each sees 3;" 4 "gpus=3"
all_timed "$nccl" processes 2 "no_peers"
for strategy in $own $switch; do reason "$strategy" "no peer access between the GPUs"; done

# ---- a fault in one process ----
all_timed "ONESHOT NVLS_ONESHOT" processes 2 "multicast wrong_rank=1 wrong_on=twoshot"
for strategy in TWOSHOT TWOSHOT_NATIVE NVLS_TWOSHOT; do reason "$strategy" "wrong result: out[0]"; done
all_timed "$own" processes 2 "nccl_adds_wrong_rank=1"
reason NCCL "wrong result: out[0]"
all_beside
