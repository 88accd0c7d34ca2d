#!/bin/sh
# The protocol: a hello with the version, an end at `quit` and at the end of the input, and an error for an
# invalid request.
. "$(dirname "$0")/lib.sh"

good="measure id=7 dtype=bfloat16 fusion=NONE num_tokens=2 hidden_size=64"
good="$good min_samples=2 max_samples=2 budget_us=1"

# answer TEXT: the answer of two ranks; the exit code in $status.
answer() {
    status=0
    printf '%s\n' "$1" | run 2 --serve >"$WORK/answer" 2>"$WORK/err" || status=$?
}

answer "$good strategies=ONESHOT"
[ "$status" = 0 ] || fail "a good request ended with $status"
printed answer "^hello .*protocol=3 bench=[0-9a-f]\{16\} "
[ "$(grep -c '^row id=7 strategy=ONESHOT ' "$WORK/answer")" = 1 ] || fail "no row"
[ "$(grep -c '^row\|^none' "$WORK/answer")" = 1 ] || fail "more than was requested"

# A shape too large for any memory has the same error as other invalid shapes.
answer "measure id=8 dtype=bfloat16 fusion=RESIDUAL_RMS_NORM_QUANT_NVFP4 num_tokens=1 hidden_size=1 \
min_samples=1 max_samples=1 budget_us=1 strategies=ONESHOT"
printed answer "^none id=8 strategy=ONESHOT reason=NVFP4 needs a hidden size that is a multiple of 16"

# A request with a deadline in the past has a reason in place of a time; with time enough it is sampled.
answer "$good left_us=1 strategies=ONESHOT,MPI"
[ "$(grep -c '^none id=7 strategy=.* reason=budget spent$' "$WORK/answer")" = 2 ] ||
    fail "no time left: $(cat "$WORK/answer")"
printed answer "^done id=7 "
answer "$good left_us=1e9 strategies=ONESHOT"
printed answer '^row id=7 strategy=ONESHOT .* samples=2 '

# Endless calls end at the deadline, with fewer samples than requested.
answer "measure id=9 dtype=float32 fusion=NONE num_tokens=64 hidden_size=4096 min_samples=1000000 \
max_samples=1000000 budget_us=1e12 left_us=2e6 strategies=ONESHOT"
printed answer '^row id=9 strategy=ONESHOT '
! grep -q ' samples=1000000 ' "$WORK/answer" || fail "for ever: it made all samples"

answer "quit"
[ "$status" = 0 ] || fail "quit ended with $status"

answer "$good colour=red"
[ "$status" != 0 ] || fail "an unknown field was taken"
printed answer "^error reason=cannot read the field colour=red"

# One rank, and more ranks than supported.
status=0
run 1 --serve </dev/null >"$WORK/answer" 2>"$WORK/err" || status=$?
[ "$status" = 2 ] || fail "one rank ended with $status"
printed err "1 rank; 2 to 16 are possible on one node"
"$BENCH" --version |
    grep -q "^gentables-bench protocol=3 bench=[0-9a-f]\{16\} isa=[a-z0-9]* compiler=[^ ]* library=." ||
    fail "--version prints another line"
