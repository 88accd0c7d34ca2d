#!/bin/sh
# Ranks that are processes, one for each GPU, with stand-ins whose memory they really share: every strategy is
# right, whichever way handles go; what a way refuses is done the next way, or is a reason; what does not fit
# is told in one line; a fault in one process is caught; one that dies or stops ends the bench, of which
# nothing is left; and the rows that gentables sweeps so.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nvidia-ml
cp "$STAND_INS_PROCESSES"/libnccl.so.2 "$folder"
# mpirun's own files apart from those of others, which take the folder away that they share as they end.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
# What it has in /dev/shm elsewhere, where others' is not taken for it. The bench has nothing there.
export OMPI_MCA_btl_vader_backing_directory="$WORK/shm"
mkdir -p "$WORK/shm"
# shellcheck source=tests/mpirun.sh
. "$SOURCE/tests/mpirun.sh"
mpirun="$mpirun -n"

# processes COUNT SETTINGS OPTION...: the bench's output in $WORK/out and $WORK/err, its exit code in $status.
processes() {
    count=$1 settings=$2
    shift 2
    status=0
    # shellcheck disable=SC2086
    STAND_IN=$settings LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 200 \
        $mpirun "$count" "$BENCH-mpi" --workspace 64K -b 512 -e 512 --hidden-size 64 --samples 2 \
        --budget 0.1 "$@" \
        >"$WORK/out" 2>"$WORK/err" || status=$?
}

# reason STRATEGY TEXT: why it has no time.
reason() {
    grep "^# .* $1  *" "$WORK/out" | grep -qF "$2" || fail "$1 does not say: $2"
}

# ended NAME CODE TEXT: in one line, and no process is left.
ended() {
    [ "$status" = "$2" ] || fail "$1: exit code $status"
    [ "$(grep -c "^gentables-bench: " "$WORK/err")" = 1 ] || fail "$1: not one line"
    grep -q "^gentables-bench: $3" "$WORK/err" || fail "$1: not said: $3"
    nothing_is_left "$1"
}

# Of whoever runs this program with this test's folder for libraries.
nothing_is_left() {
    for process in /proc/[0-9]*; do
        if tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qF "LD_LIBRARY_PATH=$folder" &&
            [ "$(readlink "$process/exe")" = "$BENCH-mpi" ]; then
            fail "$1: process ${process#/proc/} is left"
        fi
    done
    for file in "$WORK"/shm/*; do
        if [ -e "$file" ]; then fail "$1: shared memory is left: $file"; fi
    done
}

own="ONESHOT TWOSHOT ONESHOT_NATIVE TWOSHOT_NATIVE"
switch="NVLS_ONESHOT NVLS_TWOSHOT"
nccl="NCCL NCCL_SYMMETRIC"

# ---- every way to share memory, every strategy ----
# shellcheck disable=SC2086
{
    processes 2 "multicast has_fabric fabric" --mode graph --fusion RESIDUAL_RMS_NORM_QUANT_FP8
    all_timed "fabric handles" $own $switch $nccl NCCL_UNFUSED
    processes 2 "multicast" --fusion RESIDUAL_RMS_NORM
    all_timed "file descriptors" $own $switch $nccl NCCL_UNFUSED
    processes 2 "no_files"
    all_timed "CUDA IPC" $own $nccl
    reason NVLS_ONESHOT "the hardware has no multicast"
    processes 2 "own_gpu multicast"
    all_timed "a GPU that only its process sees" $own $switch $nccl
    processes 4 "gpus=4 multicast"
    all_timed "four of them" $own $switch $nccl
    processes 4 "gpus=4 multicast has_fabric fabric own_gpu" --strategies TWOSHOT,NVLS_TWOSHOT
    all_timed "four by fabric handles" TWOSHOT NVLS_TWOSHOT
}

# ---- what a way refuses is done the next way ----
# reached WAY SETTINGS: so memory is shared.
reached() {
    printf 'quit\n' >"$WORK/requests"
    # shellcheck disable=SC2086
    STAND_IN=$2 LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 200 $mpirun 2 "$BENCH-mpi" --serve \
        --workspace 64K <"$WORK/requests" >"$WORK/out" 2>"$WORK/err" || fail "$2: not served"
    [ "$(grep -c "^device .* reach=$1 " "$WORK/out")" = 2 ] || fail "$2: memory is not shared by $1"
    processes 2 "$2" --strategies TWOSHOT,NVLS_TWOSHOT
    all_timed "$2" TWOSHOT
}
reached fabric "has_fabric fabric"
reached file "has_fabric"               # refused to this user
reached file "has_fabric fabric own_fabric" # refused by who is to import them
reached ipc "no_files"                  # which the device says,
reached ipc "no_files has_files"        # or only whoever asks for them learns
reached ipc "bad_files"                 # they do not get to the others
reached ipc "has_fabric fabric own_fabric bad_files multicast"
reason NVLS_TWOSHOT "no multicast for memory of the kind: ipc"
processes 2 "no_files no_ipc"
# shellcheck disable=SC2086
all_timed "no way to share memory" $nccl
for strategy in $own $switch; do
    reason "$strategy" "ranks share no memory: ipc, sharing memory: an error of the stand-in"
done
processes 2 "multicast bad_team"
# shellcheck disable=SC2086
all_timed "a team that does not get to the others" $own $nccl
for strategy in $switch; do
    reason "$strategy" "a file descriptor of memory, to rank 1: Bad file descriptor"
done

# ---- what does not fit ----
processes 2 "sm=90,80"
ended "GPUs of two kinds" 2 "GPUs of several kinds: rank 0 has sm_90, rank 1 sm_80;"
processes 2 "own_gpu sm=90,80"
ended "GPUs of two kinds, each its own" 2 "GPUs of several kinds: rank 0 has sm_90, rank 1 sm_80;"
processes 2 "gpus=1"
ended "too few GPUs" 2 "unavailable: shared GPU: 2 processes, and each sees 1;"
processes 4 "gpus=3"
ended "too few GPUs for four" 2 "unavailable: shared GPU: 4 processes, and each sees 3;"
processes 2 "no_peers"
# shellcheck disable=SC2086
all_timed "no peer access" $nccl
for strategy in $own $switch; do reason "$strategy" "no peer access between the GPUs"; done

# ---- a fault in one process ----
processes 2 "multicast wrong_rank=1 wrong_on=twoshot"
all_timed "one rank's output" ONESHOT NVLS_ONESHOT
for strategy in TWOSHOT TWOSHOT_NATIVE NVLS_TWOSHOT; do reason "$strategy" "wrong result: out[0]"; done
processes 2 "nccl_adds_wrong_rank=1"
# shellcheck disable=SC2086
all_timed "one rank's addend" $own
reason NCCL "wrong result: out[0]"
processes 2 "private_rank=1" --timeout 3 # what it has from the others is a copy: nobody meets
ended "memory that is not the same" 1 "rank [01]'s GPU hung for 3 s; its kernels gave up"

# ---- one that stops, or dies, amid the others' kernels; before and while times are taken ----
for kernels in 0 30; do
    processes 2 "stopped_rank=1 after_kernels=$kernels" --timeout 3
    ended "a process that stops" 1 "rank 0's GPU hung for 3 s; its kernels gave up"
    processes 2 "dead_rank=1 after_kernels=$kernels" --timeout 3
    [ "$status" != 0 ] || fail "a process that dies: as if nothing was"
    grep -q "process rank 1 .* exited on signal 9" "$WORK/err" || fail "a process that dies: not told"
    nothing_is_left "a process that dies"
done

# ---- rows ----
cat >"$WORK/spec.lua" <<'END'
return { arch = "gpu", tp = { 2 }, hidden_sizes = { 64 }, num_tokens = { 4 },
  fusions = { "NONE", "RESIDUAL_RMS_NORM" }, strategies = { "ONESHOT", "TWOSHOT", "NVLS_TWOSHOT", "NCCL" },
  limits = { min_samples = 3, max_samples = 4, cell_us = 100000, message_bytes = 65536, launches = 1 },
  table = { mode = "graph" } }
END
# sweep SETTINGS FOLDER OPTION...
sweep() {
    settings=$1 to=$2
    shift 2
    status=0
    STAND_IN=$settings LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 300 "$GENTABLES" sweep \
        "$WORK/spec.lua" --out "$WORK/$to" --bench "$BENCH-mpi" --launcher "$mpirun {ranks}" --exhaustive \
        "$@" >"$WORK/out" 2>"$WORK/err" || status=$?
    rows=$WORK/$to/benchmark.tp2.sm90.csv
}
sweep multicast rows
[ "$status" = 0 ] || fail "a sweep: exit code $status"
for fusion in NONE RESIDUAL_RMS_NORM; do
    for strategy in ONESHOT TWOSHOT NVLS_TWOSHOT NCCL; do
        grep -q "^2,bfloat16,512,4,64,$strategy,$fusion,allreduce,.*,graph," "$rows" ||
            fail "no row of $strategy, $fusion"
    done
done
grep -q '"reach": *"file"' "${rows%.csv}.json" || fail "the provenance does not say how memory is shared"
nothing_is_left "a sweep"
sweep "multicast wrong_rank=1 wrong_on=_twoshot" wrong
grep -q ",ONESHOT," "$rows" || fail "a fault of another strategy leaves no row"
if grep -q ",TWOSHOT," "$rows"; then fail "a wrong result has a time"; fi
grep -q "wrong result" "${rows%.csv}.json" || fail "a wrong result is not told"
# One that stops, or dies, costs its cell a second bench, and the sweep nothing.
for end in stopped dead; do
    sweep "multicast ${end}_rank=1 after_kernels=40 once=$WORK/$end.once" $end --patience 40
    [ "$status" = 0 ] || fail "a sweep with a rank that is $end: exit code $status"
    [ -e "$WORK/$end.once" ] || fail "no rank is $end"
    grep -q "once more, with a fresh bench" "$WORK/err" || fail "a rank that is $end: not told"
    [ "$(wc -l <"$rows")" = "$(wc -l <"$WORK/rows/benchmark.tp2.sm90.csv")" ] || fail "$end: not all rows"
    nothing_is_left "a sweep with a rank that is $end"
done
