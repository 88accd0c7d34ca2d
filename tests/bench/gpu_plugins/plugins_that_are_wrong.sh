#!/bin/sh
# A plug-in on GPUs that writes beyond its buffers, or has wrong or late results: one clear line leaves
# out the candidate that has the fault, and no other.
. "$(dirname "$0")/../cuda/lib_stand_in.sh"
. "$(dirname "$0")/lib_plugins.sh"
only cuda nccl nvidia-ml

left_out beyond "touched memory beyond a buffer\|writes beyond a buffer"
left_out before "touched memory beyond a buffer\|writes beyond a buffer"
# So it is where a trial calls it less often, above 4 MiB, and where it reaches beyond another rank's buffer.
for fault in large_beyond large_before peer_beyond; do
    sizes=4K,4100K left_out $fault "touched memory beyond a buffer\|writes beyond a buffer"
done
left_out wrong "wrong result"
left_out stream "wrong result\|writes after it has returned"
left_out early "wrong result"

# Work without a wait for it, once results have been verified, is found by the timed calls. (Who is slower
# than NCCL would not be called so often.)
samples=120
tune "" --op allgather --sizes 4K --plugin "$PLUGINS/bad_later_stream.so" --default GOOD \
    --strategies GOOD,FAULTY
samples=3
[ "$status" = 0 ] || fail "later_stream: $status"
grep -q 'wrong result in [0-9]* calls' "$WORK/out" || fail "later_stream: not said"
has GOOD
! grep -A 2 '"strategy": "FAULTY"' "$WORK/out" | grep -q '"time_us"' || fail "later_stream has a time"
