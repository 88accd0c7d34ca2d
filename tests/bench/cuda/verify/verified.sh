#!/bin/sh
# The folder for a machine with a GPU, used with stand-ins: verify.sh runs all parts, on small sizes; one
# command makes tables and a report of its results; if the bench fails in a part, verify.sh continues; without
# a GPU it prints that and ends with 77.
. "$(dirname "$0")/../lib_stand_in.sh"
small="GENTABLES_VERIFY_TP=2 GENTABLES_VERIFY_HIDDEN=160 GENTABLES_VERIFY_TOKENS=1"
small="$small GENTABLES_VERIFY_ROWS=1 GENTABLES_VERIFY_SAMPLES=2 GENTABLES_VERIFY_CHECK_TOKENS=3"
small="$small GENTABLES_VERIFY_WORKSPACE=256K GENTABLES_VERIFY_SECONDS=380 GENTABLES_VERIFY_PATIENCE=500"
small="$small GENTABLES_VERIFY_STAGE=timers GENTABLES_VERIFY_DEADLINE=60 GENTABLES_VERIFY_KERNELS_TOKENS=2"

# verify CODE SETTINGS NAME=VALUE...: it has this exit code.
verify() {
    wanted_status=$1 settings=$2 status=0
    shift 2
    # shellcheck disable=SC2086
    env $small "$@" PATH="$WORK/bin:$PATH" STAND_IN="$settings" LD_LIBRARY_PATH="$folder" timeout 430 \
        sh "$VERIFY/verify.sh" "$VERIFY" "$WORK/verified" >"$WORK/out" 2>"$WORK/err" || status=$?
    [ "$status" = "$wanted_status" ] || fail "$settings, $*: exit code $status"
}

sanitizer_in_place
only nvidia-ml
verify 77 ""
[ "$(grep -c . "$WORK/out")" = 1 ] || fail "without a GPU: more than one line"
grep -q "no CUDA driver" "$WORK/out" || fail "without a GPU: not printed"

only cuda nccl nvidia-ml
# Each start fills its arena, which takes most of the memory of such a GPU.
verify 0 "gpus=2 memory_mib=32" GENTABLES_VERIFY_MOST_TOKENS=2
[ "$(tail -n 1 "$WORK/out")" = verified ] || fail "verify.sh: the last line is not: verified"
for name in gpus.tp2 checked.tp2 rows.tp2 processes.tp2 streams eager cold cold_graph unfused one_rank \
    gpu_each sanitize-memcheck sanitize-racecheck sanitize-synccheck sanitize-initcheck; do
    grep -qx "ok      $name" "$WORK/out" || fail "verify.sh: $name"
done
grep -q "^TP 2  NONE 1 .* $above_0 ($above_0)  [A-Z]" "$WORK/out" || fail "verify.sh: no table"
# has PATTERN: expects a figure beside its aim.
has() {
    grep -q "^TP 2  $1" "$WORK/out" || fail "verify.sh: no figure: $1"
}
number='-\{0,1\}[0-9][0-9]*\.[0-9][0-9]'
has "2 tokens, NONE: ONESHOT reaches [0-9][0-9]*% of the bandwidth of a copy (aim: 80%)\$"
has "2 tokens, NONE: TWOSHOT reaches [0-9][0-9]*%"
has "1 token(s), NONE: ONESHOT $above_0 us (aim: 3.5), floor + $number us (aim: 2.5); RMS_NORM + $number us"
for fusion in RESIDUAL_RMS_NORM RESIDUAL_RMS_NORM_QUANT_FP8; do
    has "2 token(s), $fusion: fused $above_0 us; speedup $above_0 .* (aim: 1.25), $number .* (aim: 1.6)\$"
done
GENTABLES=$GENTABLES sh "$SOURCE/bench/cuda/tables.sh" "$WORK/verified" "$WORK/tables" >"$WORK/out" \
    2>"$WORK/err" || fail "tables.sh failed"
for arch in sm90 sm90-loopback; do
    for file in spec.lua table.csv allreduce_table.h report.md; do
        [ -s "$WORK/tables/$arch/$file" ] || fail "tables.sh wrote no $arch/$file"
    done
done
tar -tzf "$WORK/verified.tgz" | grep -qx "verified/gpus.tp2.txt" || fail "verify.sh: no archive of its logs"
is_loopback() {
    grep -q "from loopback rows" "$WORK/tables/$1/allreduce_table.h"
}
is_loopback sm90-loopback || fail "the table lacks its origin"
if is_loopback sm90; then fail "a GPU for each rank is no loopback"; fi

# With one GPU all ranks share it. TWOSHOT and its variant end the bench if a request has them; another bench
# continues without them, and no other strategy lacks a row.
rm -r "$WORK/verified"
verify 1 "gpus=1 memory_mib=32 sticky_on=twoshot" GENTABLES_VERIFY_MOST_TOKENS=8 \
    GENTABLES_VERIFY_PARTS=rows.tp2
[ ! -e "$WORK/verified/gpus.tp2.txt" ] || fail "a GPU for each of two ranks, on a machine with one"
printed out "^FAILED  rows.tp2: exit code 1: gentables-bench: a launch"
[ "$(grep -c "^hello" "$WORK/verified/rows.tp2.txt")" = 3 ] || fail "no other bench went on"
printed out "TWOSHOT was at work; the part continues without it"
[ "$(grep -c "^row .* strategy=ONESHOT " "$WORK/verified/rows.tp2.txt")" = 8 ] ||
    fail "others lose rows where one fails"
has "8 token(s), NONE: ONESHOT $above_0 us (aim: 4.5), floor + $number us; .*; FP8 + $number us (aim: 0.5)\$"
GENTABLES=$GENTABLES sh "$SOURCE/bench/cuda/tables.sh" "$WORK/verified" "$WORK/tables_of_less" >"$WORK/out" \
    2>"$WORK/err" || fail "tables.sh, of what came back where one fails"
