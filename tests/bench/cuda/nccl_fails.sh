#!/bin/sh
# A communicator of NCCL that fails, is lost or ends with an error: which cells are lost, and that each
# communicator ends exactly once.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml

# communicators COUNT WHAT...: expects these counts, over both ranks.
communicators() {
    while [ $# -gt 0 ]; do
        [ "$(grep -c "a communicator is $2" "$WORK/err")" = "$1" ] || fail "not $1 communicators are $2"
        shift 2
    done
}
# A hang ends all communicators of the process, including those of other cells.
a_hang() {
    bench "hang_on=gentables_norm nccl_says" -b 256 -e 256 --timeout 5 --fusion RESIDUAL_RMS_NORM \
        --strategies NCCL,NCCL_UNFUSED
    printed err "gentables-bench: rank [01]'s GPU hung for 5 s"
    communicators 4 made 4 aborted
}
beside a_hang a_hang

# after FAILURES TIMED MADE ABORTED REASON: which of 256, 512, 1024 and 2048 bytes then have times of NCCL.
after() {
    name="NCCL that fails at $1"
    ends 0 "nccl_says nccl_fails=$1" -b 256 -e 2K -f 2 --samples 2 --budget 0.03 --strategies ONESHOT,NCCL
    timed=$(sed -n 's/^  *\([0-9]*\) .* sum  *NCCL  *'"$above_0"' .*/\1/p' "$WORK/out" | tr '\n' ' ')
    [ "$timed" = "$2" ] || fail "$name: times of $timed, not of $2"
    grep "^# .* NCCL  *" "$WORK/out" | grep -qF "$5" || fail "$name: not printed: $5"
    communicators "$3" made "$4" aborted
}
# If another rank died, the next cell gets a new communicator, until two of them in a row have failed.
after 512,6 "256 1024 2048 " 4 2 "NCCL, allreduce: the stand-in's error 6"
after 256,6,1024,2 "512 2048 " 6 4 "NCCL, allreduce: the stand-in's error 2"
after 256,6,512,6 "" 4 4 "NCCL, allreduce: the stand-in's error 6"
# A call with invalid arguments has no effect, and the communicator remains; after an internal error of NCCL a
# new one is made.
after 512,5 "256 1024 2048 " 2 0 "NCCL, allreduce: the stand-in's error 5"
after 512,4,1024,4 "256 2048 " 2 0 "NCCL, allreduce: the stand-in's error 4"
after 512,3 "256 " 2 2 "NCCL, allreduce: the stand-in's error 3"
# A communicator ends once, even if NCCL rejects its orderly end.
# ended SETTINGS DESTROYED ABORTED MODE
ended() {
    ends 0 "nccl_says $1" -b 256 -e 256 --samples 2 --budget 0.03 --mode "$4" \
        --strategies ONESHOT,NCCL,NCCL_SYMMETRIC
    communicators 4 made "$2" destroyed "$3" aborted
}
ended "" 4 0 eager
ended nccl_refuses_end 0 4 graph
all_beside
