#!/bin/sh
# Each fault of a plug-in on GPUs gives one clear line, and leaves out the candidate that has it and no other.
. "$(dirname "$0")/lib_stand_in.sh"
. "$(dirname "$0")/lib_plugins.sh"
only cuda nccl nvidia-ml

# left_out FAULT PATTERN [TIMEOUT [LINES [OTHERS]]]
left_out() {
    tune "" --op allgather --sizes "${sizes:-4K}" --plugin "$PLUGINS/bad_$1.so" --timeout "${3:-20}"
    [ "$status" = 0 ] || fail "$1: $status"
    grep -q "FAULTY: $2" "$WORK/err" || fail "$1: not said"
    [ "$(wc -l <"$WORK/err")" = "${4:-1}" ] || fail "$1: not so many lines"
    # shellcheck disable=SC2086
    has NCCL ${5-GOOD}
    ! grep -q '"strategy": "FAULTY"' "$WORK/out" || fail "$1 has a time"
}
beside hang left_out hang "did not come back in time" 10
beside waits left_out waits "its run waits for the GPU, and does not only enqueue" 10
beside later_hang left_out later_hang "did not come back in time" 10
left_out beyond "touched memory beyond a buffer\|writes beyond a buffer"
left_out before "touched memory beyond a buffer\|writes beyond a buffer"
# So it is where a trial calls it less often, and where it reaches beyond another rank's buffer.
for fault in large_beyond large_before peer_beyond; do
    sizes=4K,8M left_out $fault "touched memory beyond a buffer\|writes beyond a buffer"
done
left_out wrong "wrong result"
left_out stream "wrong result\|writes after it has returned"
left_out early "wrong result"
left_out crash "crashed (abort)"
left_out fails "run: it does not feel like it"
left_out leak "its plug-in leaks device memory" 20 2 "" # whose leak it is, nobody can tell
left_out init "crashed (abort)" 20 2 ""                 # so is it here
left_out later_crash "crashed (abort)"

# Work that nobody waits for, once results have been verified, is found by the timed calls. (Who is slower
# than NCCL would not be called so often.)
samples=120
tune "" --op allgather --sizes 4K --plugin "$PLUGINS/bad_later_stream.so" --default GOOD \
    --strategies GOOD,FAULTY
samples=3
[ "$status" = 0 ] || fail "later_stream: $status"
grep -q 'wrong result in [0-9]* calls' "$WORK/out" || fail "later_stream: not said"
has GOOD
! grep -A 2 '"strategy": "FAULTY"' "$WORK/out" | grep -q '"time_us"' || fail "later_stream has a time"
all_beside
