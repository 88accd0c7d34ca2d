#!/bin/sh
# A communicator of NCCL that fails, is lost or ends with an error: which cells are lost, and that each
# communicator ends exactly once.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml

# communicators NAME MADE ABORTED: expects these counts, over both ranks.
communicators() {
    for what in made aborted; do
        shift_by=$([ "$what" = made ] && echo "$2" || echo "$3")
        [ "$(grep -c "a communicator is $what" "$WORK/err")" = "$shift_by" ] ||
            fail "$1: not $shift_by communicators are $what"
    done
}
# A hang ends all communicators of the process, including those of other cells.
a_hang() {
    bench "hang_on=gentables_norm nccl_says" -b 256 -e 256 --timeout 5 --fusion RESIDUAL_RMS_NORM \
        --strategies NCCL,NCCL_UNFUSED
    grep -q "gentables-bench: rank [01]'s GPU hung for 5 s" "$WORK/err" ||
        fail "a GPU that hangs: not printed"
    communicators "a hang" 4 4
}
beside a_hang a_hang

# after FAILURES TIMED MADE ABORTED REASON: which of 256, 512, 1024 and 2048 bytes then have times of NCCL.
after() {
    name="NCCL that fails at $1"
    bench "nccl_says nccl_fails=$1" -b 256 -e 2K -f 2 --samples 2 --budget 0.03 --strategies ONESHOT,NCCL
    [ "$status" = 0 ] || fail "$name: exit code $status"
    timed=$(sed -n 's/^  *\([0-9]*\) .* sum  *NCCL  *'"$above_0"' .*/\1/p' "$WORK/out" | tr '\n' ' ')
    [ "$timed" = "$2" ] || fail "$name: times of $timed, not of $2"
    grep "^# .* NCCL  *" "$WORK/out" | grep -qF "$5" || fail "$name: not printed: $5"
    communicators "$name" "$3" "$4"
}
# If another rank died, the next cell gets a new communicator, until two of them in a row have failed.
after 512:6 "256 1024 2048 " 4 2 "NCCL, allreduce: the stand-in's error 6"
after 256:6,1024:2 "512 2048 " 6 4 "NCCL, allreduce: the stand-in's error 2"
after 256:6,512:6 "" 4 4 "NCCL, allreduce: the stand-in's error 6"
# A call with invalid arguments has no effect, and the communicator remains; after an internal error of NCCL a
# new one is made.
after 512:5 "256 1024 2048 " 2 0 "NCCL, allreduce: the stand-in's error 5"
after 512:4,1024:4 "256 2048 " 2 0 "NCCL, allreduce: the stand-in's error 4"
after 512:3 "256 " 2 2 "NCCL, allreduce: the stand-in's error 3"
# A communicator ends once, even if NCCL rejects its orderly end.
# ended SETTINGS DESTROYED ABORTED MODE
ended() {
    bench "nccl_says $1" -b 256 -e 256 --samples 2 --budget 0.03 --mode "$4" \
        --strategies ONESHOT,NCCL,NCCL_SYMMETRIC
    [ "$status" = 0 ] || fail "the end of a communicator: exit code $status"
    communicators "the end of a communicator, $1" 4 "$3"
    [ "$(grep -c "a communicator is destroyed" "$WORK/err")" = "$2" ] ||
        fail "the end of a communicator, $1: not $2 are destroyed"
}
ended "" 4 0 eager
ended nccl_refuses_end 0 4 graph
all_beside
