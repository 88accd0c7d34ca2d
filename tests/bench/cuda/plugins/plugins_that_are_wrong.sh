#!/bin/sh
# A plug-in on GPUs that writes beyond its buffers, or has wrong or late results: one clear line leaves out
# the candidate with the fault, and no other.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_plugins.sh"
only cuda nccl nvidia-ml

left_out beyond "touched memory beyond a buffer\|writes beyond a buffer"
left_out before "touched memory beyond a buffer\|writes beyond a buffer"
# The same if a trial calls it less often, above 4 MiB, and if it writes beyond another rank's buffer.
for fault in large_beyond large_before peer_beyond; do
    sizes=4K,4100K left_out $fault "touched memory beyond a buffer\|writes beyond a buffer"
done
left_out wrong "wrong result"
left_out stream "wrong result\|writes after it has returned"
left_out early "wrong result"

# Missing synchronisation is found by the timed calls, after results have been verified. (A candidate slower
# than NCCL would have too few calls.)
samples=120
tuned "" --op allgather --sizes 4K --plugin "$PLUGINS/bad_later_stream.so" --default GOOD \
    --strategies GOOD,FAULTY
samples=3
printed out 'wrong result in [0-9]* calls'
has GOOD
! grep -A 2 '"strategy": "FAULTY"' "$WORK/out" | grep -q '"time_us"' || fail "later_stream has a time"
