#!/bin/sh
# What a candidate says of itself counts: its alignment, its places, its sizes, its fusions. And what it does
# beside its work harms nobody: it may print, and log, and its library may crash or hang when it is asked.
. "$(dirname "$0")/lib.sh"

# taken FAULT ARGUMENT...: all went well.
taken() {
    fault=$1
    shift
    tune --dtype float32 --plugin "$PLUGINS/bad_$fault.so" --fresh --json "$@"
    [ "$status" = 0 ] || fail "$fault ended with $status: $(cat "$WORK/err")"
}

# timed NAME...: each has one; quiet: nothing was said.
timed() {
    for name in "$@"; do
        grep -A 1 "\"strategy\": \"$name\"" "$WORK/out" | grep -q '"epilogue"' ||
            fail "$fault: no time of $name"
    done
}
quiet() {
    [ ! -s "$WORK/err" ] || fail "$fault: $(cat "$WORK/err")"
}

# Standard output of a candidate is no row, and no part of one.
taken prints --op allreduce --sizes 1K --strategies MPI,GOOD,FAULTY
timed MPI GOOD FAULTY
quiet

# A log is told, once a line, and is nobody's last words.
taken logs --op allreduce --sizes 1K --strategies MPI,GOOD,FAULTY
timed MPI GOOD FAULTY
said err "^gentables: bad, rank 0: strategy MPI: crashed, says the log$"
said err "^gentables: bad, rank 1: strategy MPI: crashed, says the log$"
[ "$(wc -l <"$WORK/err")" = 2 ] || fail "logs: $(cat "$WORK/err")"

# Large calls are tried, too; who has none in his trial is told.
taken large_beyond --op allreduce --sizes 8M --strategies MPI,GOOD,FAULTY
timed MPI GOOD
said err "FAULTY: touched memory beyond a buffer; it is left out"
taken large_only --op allreduce --sizes 1K --strategies MPI,GOOD,FAULTY
timed MPI GOOD
said err "FAULTY: was not called in its trial: does not do so small a size"
said out '"reason": "does not do so small a size"'
taken large_only --op allreduce --sizes 1K,8M --strategies MPI,GOOD,FAULTY
said err "FAULTY: touched memory beyond a buffer; it is left out"

# Buffers lie as it says, at sizes that do not; in place a part of one may not, and is not used.
taken aligned --op allreduce --sizes 1040 --strategies MPI,FAULTY
timed MPI FAULTY
quiet
taken aligned --op allgather --sizes 2080 --strategies MPI,FAULTY
timed MPI FAULTY
quiet

# Who works in place alone is called so, and rows say it; ops that have no such place are not asked of him.
taken in_place --op allreduce --sizes 4K --strategies MPI,FAULTY
timed MPI FAULTY
quiet
[ "$(grep -c '"place": "in"' "$WORK/out")" = 1 ] || fail "no row says in place: $(cat "$WORK/out")"
taken in_place --op alltoall --sizes 4K --strategies MPI,FAULTY
said out "works in place alone, and NCCL defines none for this op"
[ "$(wc -l <"$WORK/err")" = 1 ] || fail "in place, alltoall: $(cat "$WORK/err")"
taken in_place --op allreduce --sizes 4K --strategies MPI,FAULTY --fusion RESIDUAL_RMS_NORM --hidden-size 256
timed FAULTY
quiet
taken in_place_both --op allreduce --sizes 4K --strategies MPI,FAULTY
[ "$(grep -c '"place": "out"' "$WORK/out")" = 1 ] || fail "no row says out of place: $(cat "$WORK/out")"
quiet

# Ranks may get nothing, and then nothing is theirs to write.
for splits in 0:1 2:0 3:1; do
    tune --op alltoallv --splits $splits --sizes 4K --dtype float32 --plugin "$PLUGINS/uneven.so" \
        --strategies MPI,GATHERED --json
    [ "$status" = 0 ] || fail "splits $splits: $(cat "$WORK/err")"
    timed MPI GATHERED
    quiet
done
tune --op alltoallv --splits 0:1 --sizes 4K --dtype float32 --plugin "$PLUGINS/bad_uneven.so" \
    --strategies MPI,GATHERED --json
said err "GATHERED: .* beyond a buffer; it is left out"

# Only with an epilogue.
taken fused_only --op allreduce --sizes 4K --strategies MPI,FAULTY --fusion RESIDUAL_RMS_NORM \
    --hidden-size 256
grep -A 1 '"strategy": "FAULTY"' "$WORK/out" | grep -q '"epilogue": "fused"' ||
    fail "fused: $(cat "$WORK/out")"
quiet
taken fused_only --op allreduce --sizes 4K --strategies MPI,FAULTY
said out "does no call without an epilogue"

# A library that crashes or hangs before it says anything is left out, by its path, and no other.
taken dies --op allreduce --sizes 1K --plugin "$PLUGINS/chunked.so" --strategies MPI,CHUNKED_8192
timed MPI CHUNKED_8192
said err "bad_dies.so: crashed (segmentation fault) when it was asked what it has; it is left out"
taken hangs_asked --op allreduce --sizes 1K --plugin "$PLUGINS/chunked.so" --strategies MPI,CHUNKED_8192 \
    --timeout $timeout
timed MPI CHUNKED_8192
said err "bad_hangs_asked.so: no answer within $timeout s; it is left out"
