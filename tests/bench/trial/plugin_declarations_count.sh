#!/bin/sh
# The declarations of a candidate count: its alignment, places, sizes and fusions. Side effects are harmless:
# a candidate may print and log, and its library may crash or hang in gentables_plugin.
. "$(dirname "$0")/../../unit/tune/lib.sh"
hurries

# taken FAULT ARGUMENT...: expects no fault.
taken() {
    fault=$1
    shift
    tuned --dtype float32 --plugin "$PLUGINS/bad_$fault.so" --fresh --json "$@"
}

# timed NAMES FAULT ARGUMENT...: the same, and a time of each of these; quiet: expects no message.
timed() {
    names=$1
    shift
    taken "$@"
    for name in $names; do
        grep -A 1 "\"strategy\": \"$name\"" "$WORK/out" | grep -q '"epilogue"' ||
            fail "$fault: no time of $name"
    done
}
quiet() {
    [ ! -s "$WORK/err" ] || fail "$fault: $(cat "$WORK/err")"
}

# Standard output of a candidate is no row, and no part of one.
prints() {
    timed "MPI GOOD FAULTY" prints --op allreduce --sizes 1K --strategies MPI,GOOD,FAULTY
    quiet
}

# A log is printed line by line, and is not mistaken for the line of a fault.
logs() {
    timed "MPI GOOD FAULTY" logs --op allreduce --sizes 1K --strategies MPI,GOOD,FAULTY
    printed err "^gentables: bad, rank 0: strategy MPI: crashed, says the log$"
    printed err "^gentables: bad, rank 1: strategy MPI: crashed, says the log$"
    [ "$(wc -l <"$WORK/err")" = 2 ] || fail "logs: $(cat "$WORK/err")"
}

# Large calls are tried, too.
large() {
    timed "MPI GOOD" "$1" --op allreduce --sizes "$2" --strategies MPI,GOOD,FAULTY
    printed err "FAULTY: touched memory beyond a buffer; it is left out"
}

# A candidate without a call in its trial is reported.
uncalled() {
    timed "MPI GOOD" large_only --op allreduce --sizes 1K --strategies MPI,GOOD,FAULTY
    printed err "FAULTY: was not called in its trial: does not support so small a size"
    printed out '"reason": "does not support so small a size"'
}

# Buffers have the declared alignment, also at sizes that are no multiple of it; an unaligned part of a buffer
# in place is not used.
aligned() {
    timed "MPI FAULTY" aligned --op "$1" --sizes "$2" --strategies MPI,FAULTY
    quiet
}

# A candidate that works only in place is called in place, and rows have it; it gets no ops that have no such
# place.
in_place() {
    timed "MPI FAULTY" in_place --op allreduce --sizes 4K --strategies MPI,FAULTY
    quiet
    [ "$(grep -c '"place": "in"' "$WORK/out")" = 1 ] || fail "no row is in place: $(cat "$WORK/out")"
}
in_no_place() {
    taken in_place --op alltoall --sizes 4K --strategies MPI,FAULTY
    printed out "works only in place, which NCCL does not define for this op"
    [ "$(wc -l <"$WORK/err")" = 1 ] || fail "in place, alltoall: $(cat "$WORK/err")"
}
in_place_fused() {
    timed FAULTY in_place --op allreduce --sizes 4K --strategies MPI,FAULTY --fusion RESIDUAL_RMS_NORM \
        --hidden-size 256
    quiet
}
in_both_places() {
    taken in_place_both --op allreduce --sizes 4K --strategies MPI,FAULTY
    [ "$(grep -c '"place": "out"' "$WORK/out")" = 1 ] || fail "no row is out of place: $(cat "$WORK/out")"
    quiet
}

# Ranks may get nothing; then they may write nothing.
uneven() {
    timed "MPI GOOD" uneven --op alltoallv --splits "$1" --sizes 4K --strategies MPI,GOOD
    quiet
}
bad_uneven() {
    taken uneven --op alltoallv --splits 0:1 --sizes 4K --strategies MPI,FAULTY
    printed err "FAULTY: .* beyond a buffer; it is left out"
}

# Only with an epilogue.
fused_only() {
    taken fused_only --op allreduce --sizes 4K --strategies MPI,FAULTY --fusion RESIDUAL_RMS_NORM \
        --hidden-size 256
    grep -A 1 '"strategy": "FAULTY"' "$WORK/out" | grep -q '"epilogue": "fused"' ||
        fail "fused: $(cat "$WORK/out")"
    quiet
}
fused_only_without() {
    taken fused_only --op allreduce --sizes 4K --strategies MPI,FAULTY
    printed out "supports no call without an epilogue"
}

# A library that crashes or hangs before it has described itself is left out, by its path, and no other.
speechless() {
    timed "MPI CHUNKED_8192" "$1" --op allreduce --sizes 1K --plugin "$PLUGINS/chunked.so" \
        --strategies MPI,CHUNKED_8192 --timeout $timeout
    printed err "bad_$1.so: $2; it is left out"
}

cases "$@" <<'END'
speechless hangs_asked "no answer within $timeout s"
speechless dies "crashed (segmentation fault) in gentables_plugin"
large large_beyond 8M
large large_only 1K,8M
uncalled
prints
logs
aligned allreduce 1040
aligned allgather 2080
in_place
in_no_place
in_place_fused
in_both_places
uneven 0:1
uneven 2:0
uneven 3:1
bad_uneven
fused_only
fused_only_without
END
