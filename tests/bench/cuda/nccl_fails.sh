#!/bin/sh
# A communicator of NCCL that fails, is lost or does not end well: which cells that costs, and that each one
# made ends once.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml

# communicators NAME MADE ABORTED: so many, on the two ranks.
communicators() {
    for what in made aborted; do
        shift_by=$([ "$what" = made ] && echo "$2" || echo "$3")
        [ "$(grep -c "a communicator is $what" "$WORK/err")" = "$shift_by" ] ||
            fail "$1: not $shift_by communicators are $what"
    done
}
# A hang ends all communicators of the process, whoever's they are.
a_hang() {
    bench "hang_on=gentables_norm nccl_says" -b 256 -e 256 --timeout 5 --fusion RESIDUAL_RMS_NORM \
        --strategies NCCL,NCCL_UNFUSED
    grep -q "gentables-bench: rank [01]'s GPU hung for 5 s" "$WORK/err" || fail "a GPU that hangs: not said"
    communicators "a hang" 4 4
}
beside a_hang a_hang

# after FAILURES TIMED MADE ABORTED REASON: which of 256, 512, 1024 and 2048 bytes NCCL then has times of.
after() {
    name="NCCL that fails at $1"
    bench "nccl_says nccl_fails=$1" -b 256 -e 2K -f 2 --samples 2 --budget 0.03 --strategies ONESHOT,NCCL
    [ "$status" = 0 ] || fail "$name: exit code $status"
    timed=$(sed -n 's/^  *\([0-9]*\) .* sum  *NCCL  *'"$above_0"' .*/\1/p' "$WORK/out" | tr '\n' ' ')
    [ "$timed" = "$2" ] || fail "$name: times of $timed, not of $2"
    grep "^# .* NCCL  *" "$WORK/out" | grep -qF "$5" || fail "$name: not said: $5"
    communicators "$name" "$3" "$4"
}
# Another rank is gone: the next cell has another communicator, as often as that helps; two of them in a row
# that do nothing are enough.
after 512:6 "256 1024 2048 " 4 2 "NCCL, allreduce: the stand-in's error 6"
after 256:6,1024:2 "512 2048 " 6 4 "NCCL, allreduce: the stand-in's error 2"
after 256:6,512:6 "" 4 4 "NCCL, allreduce: the stand-in's error 6"
# What was asked wrongly did nothing, and the communicator is as it was; where NCCL itself is wrong, another
# one is, too.
after 512:5 "256 1024 2048 " 2 0 "NCCL, allreduce: the stand-in's error 5"
after 512:4,1024:4 "256 2048 " 2 0 "NCCL, allreduce: the stand-in's error 4"
after 512:3 "256 " 2 2 "NCCL, allreduce: the stand-in's error 3"
# A communicator ends once, also where NCCL refuses to end it well.
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
