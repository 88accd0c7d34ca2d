#!/bin/sh
# The two examples pass their trial and are measured beside our strategies; the choices are printed, written
# and cached; with the cache nothing is launched.
. "$(dirname "$0")/lib.sh"

tuned --op all_reduce,all_gather_into_tensor --sizes 4K:16K:4 --dtype float32 --plugin "$PLUGINS/chunked.so" \
    --plugin "$PLUGINS/reduce_broadcast.so" --out "$WORK/tuned" --json
for candidate in CHUNKED_8192 CHUNKED_65536 REDUCE_BROADCAST DIRECT MPI; do
    printed out "\"strategy\": \"$candidate\""
done
printed out '"excluded": {}'
cmp -s "$WORK/out" "$WORK/tuned/tuned.json" || fail "tuned.json differs from the output"

tuned --op allreduce,allgather --sizes 4K:16K:4 --dtype float32 --plugin "$PLUGINS/chunked.so" \
    --plugin "$PLUGINS/reduce_broadcast.so"
printed out "all results are from the cache"
