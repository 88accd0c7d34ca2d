#!/bin/sh
# Ranks that are processes which the bench starts itself, without MPI (--processes): every strategy has right
# results, on GPUs of their own and on one GPU; a rank that dies or stops ends the bench, and no process is
# left, nor if the bench itself is killed. A library that really shares memory between processes stands in for
# the driver.
. "$(dirname "$0")/../lib_stand_in.sh"
only cuda nvidia-ml
cp "$STAND_INS_PROCESSES"/libnccl.so.2 "$folder"
budget=0.0307 # of no other test, so that it marks the processes of this one
small="--processes --workspace 64K --arena 256K -b 512 -e 512 --hidden-size 64 --samples 2 --budget $budget"

# processes SETTINGS OPTION...: the bench's output in $WORK/out and $WORK/err, its exit code in $status.
processes() {
    settings=$1 status=0
    shift
    # shellcheck disable=SC2086
    STAND_IN=$settings LD_LIBRARY_PATH=$folder timeout 200 "$BENCH" $small "$@" >"$WORK/out" 2>"$WORK/err" ||
        status=$?
}

# lines PATTERN COUNT: of standard error.
lines() {
    [ "$(grep -c "^gentables-bench: $1" "$WORK/err")" = "$2" ] || fail "not $2 lines: $1"
}

# The processes of this test's bench.
running() {
    pgrep -f "^$BENCH .*--budget $budget " || true
}

# none_is_left WHAT: within a minute; the kernel ends processes some time after the one that started them. The
# end of their output, descriptor 8, comes with the last of them.
none_is_left() {
    until_s=$(($(date +%s) + 60))
    timeout 60 cat <&8 >>"$WORK/out" || fail "$1: processes are left: $(running)"
    while [ -n "$(running)" ]; do
        [ "$(date +%s)" -lt "$until_s" ] || fail "$1: processes are left: $(running)"
    done
}

# ---- right results ---------------------------------------------------------------------------------------

own="ONESHOT TWOSHOT ONESHOT_NATIVE TWOSHOT_NATIVE"
switch="NVLS_ONESHOT NVLS_TWOSHOT"
all_timed "$own $switch NCCL NCCL_SYMMETRIC NCCL_UNFUSED" processes "multicast" --mode graph \
    --fusion RESIDUAL_RMS_NORM
all_timed "TWOSHOT NVLS_TWOSHOT" processes "gpus=4 multicast has_fabric fabric" --ranks 4 \
    --strategies TWOSHOT,NVLS_TWOSHOT
for handles in file ipc; do
    all_timed "$own" processes "gpus=1" --loopback --handles "$handles" \
        --fusion RESIDUAL_RMS_NORM_QUANT_FP8
    lines "warning: processes on one GPU get time slices of it" 1
done
all_timed "ONESHOT TWOSHOT" processes "gpus=1" --loopback --ranks 4 --mode graph \
    --strategies ONESHOT,TWOSHOT

# Requests on standard input, which rank 0 reads.
request 64 4 eager strategies=TWOSHOT,NVLS_TWOSHOT >"$WORK/requests"
request=$(head -n 1 "$WORK/requests")
processes "multicast" --serve <"$WORK/requests"
[ "$status" = 0 ] || fail "requests: exit code $status"
[ "$(grep -c "^device .* reach=file " "$WORK/out")" = 2 ] || fail "requests: not two devices"
for strategy in TWOSHOT NVLS_TWOSHOT; do printed out "^row id=1 strategy=$strategy "; done
# The stand-in's switch rounds to either neighbour; each rank compares its part of the sums.
[ "$(grep -c "^device rank=[01] .* largest_switch_error_ulp=0\.[5-9][0-9]$" "$WORK/out")" = 2 ] ||
    fail "requests: no error of sums in the switch"

# ---- ranks that end ----------------------------------------------------------------------------------------

# signalled SIGNAL RANK REQUEST OPTION...: sends the signal to the process of a rank (0, 1), or to the one
# that starts the ranks (-1), while rank 0 waits for a request; then sends that request. The exit code in
# $status.
signalled() {
    signal=$1 rank=$2 then=$3 status=0
    shift 3
    rm -f "$WORK/pipe" "$WORK/answers"
    mkfifo "$WORK/pipe" "$WORK/answers"
    : >"$WORK/out" # not that of the run before
    # shellcheck disable=SC2086
    STAND_IN="gpus=1" LD_LIBRARY_PATH=$folder timeout 200 "$BENCH" $small --loopback --serve "$@" \
        <"$WORK/pipe" >"$WORK/answers" 2>"$WORK/err" &
    exec 9>"$WORK/pipe" 8<"$WORK/answers"
    answer=
    until [ "$answer" = ready ]; do
        read -r answer <&8 || fail "$signal to $rank: the bench has ended"
        echo "$answer" >>"$WORK/out"
    done
    processes=$(running)
    starter=$(for process in $processes; do awk '{ print $4 }' "/proc/$process/stat"; done | sort | uniq -d)
    to=$(for process in $processes; do
        if [ "$process" = "$starter" ]; then echo "-1 $process"; else echo "0 $process"; fi
    done | sort -n | sed -n "$((rank + 2))s/.* //p") # ranks in the order of their starts
    kill "-$signal" "$to"
    if [ -n "$then" ]; then echo "$then" >&9; fi
    wait $! || status=$?
    none_is_left "$signal to $rank" # while rank 0's input is open, the end of which would end it, too
    exec 9>&- 8<&-
}
died="\(was ended by signal 9 (Killed)\|died, between cells\)"
for rank in 0 1; do
    signalled KILL $rank "$request"
    [ "$status" = 1 ] || fail "rank $rank dies: exit code $status"
    lines "rank $rank $died" 1
done
grep -q "^error reason=rank 1 " "$WORK/out" || fail "rank 1 dies: rank 0 prints no reason"
signalled TERM -1 ""
signalled KILL -1 ""
signalled STOP 1 "$request" --timeout 3
[ "$status" = 1 ] || fail "rank 1 stops: exit code $status"
lines "rank 1 is stopped, between cells; rank 0 waited for" 1
grep -q "^error reason=rank 1 is stopped" "$WORK/out" || fail "rank 1 stops: rank 0 prints no reason"

# ---- settings that do not fit ------------------------------------------------------------------------------

# refused TEXT COMMAND...
refused() {
    text=$1 status=0
    shift
    STAND_IN="gpus=1" LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} "$@" >"$WORK/out" 2>"$WORK/err" ||
        status=$?
    [ "$status" = 2 ] || fail "$text: exit code $status"
    lines "$text" 1
}
refused "unavailable: shared GPU: 2 processes, and each sees 1" "$BENCH" --processes --workspace 64K
refused "--processes has no plug-ins; use threads, or mpirun" "$BENCH" --processes \
    --plugin "$PLUGINS/peer_copies.so"
if [ -x "$BENCH-mpi" ]; then
    refused "--processes is for gentables-bench-cuda; mpirun starts processes itself" "$BENCH-mpi" --processes
fi
