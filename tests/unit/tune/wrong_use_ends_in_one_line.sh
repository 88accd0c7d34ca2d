#!/bin/sh
# Wrong use of tune ends with exit code 2 and one line with valid values. If the group cannot start, every op
# has its default, and the exit code is 1; Open MPI's session folder of the failed launch is removed.
. "$(dirname "$0")/lib.sh"

refused() {
    pattern=$1
    shift
    tune "$@"
    [ "$status" = 2 ] || fail "$* ended with $status"
    [ "$(wc -l <"$WORK/err")" = 1 ] || fail "$*: not one line: $(cat "$WORK/err")"
    printed err "$pattern"
}
refused "is no op that is measured here" --op gather
refused "a whole number from 2 to 512" --op allgather --tp 1
refused "a whole number from 2 to 512" --op allgather --tp 513 --nodes 64
refused "17 ranks on 1 node; a node has 16 at most" --op allgather --tp 17
refused "40 ranks on 2 nodes; a node has 16 at most" --op allgather --tp 20,40 --nodes 2
refused "is no size" --op allgather --sizes 1Q
refused "A not above B" --op allgather --sizes 2K:1K
refused "there is no int8; valid: bfloat16, float16, float32" --op allgather --dtype int8
refused "requires --op alltoallv" --op allgather --splits 3:1
refused "weights from 0 to 14.*not all of them 0" --op alltoallv --splits 0:0
refused "weights from 0 to 14" --op alltoallv --splits 15:1
refused "there is no WRONG; valid: MPI" --op allgather --strategies WRONG
refused "there is no ONSHOT [(]did you mean ONESHOT[?][)]; valid: MPI" --op allgather --strategies ONSHOT
refused "there is no MPPI [(]did you mean MPI[?][)]" --op allgather --default MPPI
refused "alreduce is no op that is measured here [(]did you mean allreduce[?][)]; valid: allreduce" \
    --op alreduce
refused "residual_rms_norm is no epilogue [(]did you mean RESIDUAL_RMS_NORM[?][)]" --op allreduce \
    --fusion residual_rms_norm
refused "none is no epilogue; valid: RESIDUAL.*; without --fusion there is none" --op allreduce --fusion none
refused "does not implement allgather" --op allgather --default ONESHOT
refused "no size is left" --op allgather --sizes 1
refused "a number above 0 and at most 1000000" --op allgather --timeout never
refused "one of pass, op, both" --op allgather --sync never
refused "one of host, cuda" --op allgather --backend tpu
refused "requires --backend cuda" --op allgather --loopback
refused "requires --backend cuda" --op allgather --sanitizer none

tune --op all_to_all_single --sizes 1K --launcher "false {ranks}" --fresh
[ "$status" = 1 ] || fail "a group that does not start ended with $status"
printed err "every op takes its default, MPI"
printed out "1 KiB *MPI$"

cat >"$WORK/launcher" <<'END_OF_SCRIPT'
#!/bin/sh
mkdir -p "$TMPDIR/ompi.$(uname -n | cut -d . -f 1).0/pid.$$/1"
exit 1
END_OF_SCRIPT
mkdir "$WORK/tmp"
TMPDIR=$WORK/tmp tune --op allgather --sizes 1K --launcher "sh $WORK/launcher {ranks}" --fresh
[ "$status" = 1 ] || fail "a launcher that fails ended with $status"
[ -z "$(ls "$WORK/tmp")" ] || fail "left behind: $(ls "$WORK/tmp")"
