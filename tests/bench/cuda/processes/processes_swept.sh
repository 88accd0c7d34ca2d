#!/bin/sh
# Ranks that are processes: the rows of gentables sweep. A wrong result has no row; a rank that stops or dies
# costs no row.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_processes.sh"

# ---- rows ----
spec=$WORK/spec.lua
cat >"$spec" <<'END'
return { arch = "gpu", tp = { 2 }, hidden_sizes = { 64 }, num_tokens = { 4 },
  fusions = { "NONE", "RESIDUAL_RMS_NORM" }, strategies = { "ONESHOT", "TWOSHOT", "NVLS_TWOSHOT", "NCCL" },
  limits = { min_samples = 3, max_samples = 4, cell_us = 100000, message_bytes = 65536, launches = 1 },
  table = { mode = "graph" } }
END
# sweep SETTINGS FOLDER OPTION...
sweep() {
    settings=$1 to=$2
    shift 2
    status=0
    STAND_IN=$settings LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 300 "$GENTABLES" sweep \
        "$spec" --out "$WORK/$to" --bench "$BENCH-mpi" --launcher "$mpirun {ranks}" --exhaustive \
        "$@" >"$WORK/out" 2>"$WORK/err" || status=$?
    rows=$WORK/$to/benchmark.tp2.sm90.csv
}
# If a rank stops or dies, its cell is measured by a second bench, and no row is missing: 2 x 4 rows below the
# header.
# one_ends END
one_ends() {
    sweep "multicast ${1}_rank=1 after_kernels=40 once=$WORK/once" rows --patience 40
    [ "$status" = 0 ] || fail "a sweep with a rank that is $1: exit code $status"
    [ -e "$WORK/once" ] || fail "no rank is $1"
    grep -q "tried again with a new bench" "$WORK/err" || fail "a rank that is $1: no message"
    [ "$(wc -l <"$rows")" = 9 ] || fail "$1: not all rows"
    nothing_is_left "a sweep with a rank that is $1"
}
for end in stopped dead; do beside $end in_place one_ends $end; done

sweep multicast rows
[ "$status" = 0 ] || fail "a sweep: exit code $status"
for fusion in NONE RESIDUAL_RMS_NORM; do
    for strategy in ONESHOT TWOSHOT NVLS_TWOSHOT NCCL; do
        printed rows/benchmark.tp2.sm90.csv "^2,bfloat16,512,4,64,$strategy,$fusion,allreduce,.*,graph,"
    done
done
printed rows/benchmark.tp2.sm90.json '"reach": *"file"'
nothing_is_left "a sweep"
sweep "multicast wrong_rank=1 wrong_on=_twoshot" wrong
grep -q ",ONESHOT," "$rows" || fail "a fault of another strategy leaves no row"
if grep -q ",TWOSHOT," "$rows"; then fail "a wrong result has a time"; fi
grep -q "wrong result" "${rows%.csv}.json" || fail "the provenance lacks the wrong result"
[ "$(wc -l <"$WORK/rows/benchmark.tp2.sm90.csv")" = 9 ] || fail "not 8 rows"
all_beside
