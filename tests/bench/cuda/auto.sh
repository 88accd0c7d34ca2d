#!/bin/sh
# AUTO on GPUs: each call uses the strategy that the lookup of the incumbent's table returns; a call in a
# graph looks it up at capture. If that strategy cannot run, AUTO falls back on NCCL; without NCCL it has no
# time, and the output has the reason. A sweep uses the header that it is given; no table chooses AUTO.
. "$(dirname "$0")/lib_stand_in.sh"
needs cc c++
only cuda nccl nvidia-ml

# module NAME [STATEMENT]: compiles a lookup that returns NAME from 4 tokens on, counts its calls, and runs
# STATEMENT in each call. At its end it prints the number of calls and the shortest call.
module() {
    cat >"$WORK/lookup.c" <<END
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
static atomic_int asked, least_us = INT_MAX;
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
__attribute__((destructor)) static void report(void) {
    fprintf(stderr, "asked %d times\nat least %d us\n", asked, least_us);
}
static int choose(int num_tokens) {
    ${2:-}
    return num_tokens >= 4;
}
int incumbent_choose(int tp_size, int fusion, int hidden_size, int num_tokens) {
    double begin = now();
    asked++;
    (void)(tp_size + fusion + hidden_size);
    int choice = choose(num_tokens), us = (int)((now() - begin) * 1e6), least = least_us;
    while (us < least && !atomic_compare_exchange_weak(&least_us, &least, us)) {}
    return choice;
}
const char *incumbent_name(int strategy) {
    static const char *const names[] = {"ONESHOT", "$1"};
    return strategy == 0 || strategy == 1 ? names[strategy] : "unknown";
}
END
    cc -shared -fPIC "$WORK/lookup.c" -o "$WORK/lookup.so" || fail "no module"
}
GENTABLES_INCUMBENT=$WORK/lookup.so
export GENTABLES_INCUMBENT

# auto SETTINGS OPTION...: the bench on one size, AUTO beside ONESHOT.
auto() {
    settings=$1
    shift
    ends 0 "$settings" -b 512 -e 512 --hidden-size 64 --samples 4 --budget 0.03 --strategies AUTO,ONESHOT "$@"
    asked=$(sed -n 's/^asked \([0-9]*\) times$/\1/p' "$WORK/err")
    lookup_us=$(sed -n 's/^at least \([0-9]*\) us$/\1/p' "$WORK/err")
}
# has_time SETTINGS OPTION...; has_none REASON SETTINGS OPTION...: so run, AUTO has a time, or this reason.
has_time() {
    auto "$@"
    printed out "^  *[0-9].* sum  *AUTO  *$above_0 .* 0\$"
}
has_none() {
    reason=$1
    shift
    auto "$@"
    grep "^# .* AUTO  *" "$WORK/out" | grep -qF "$reason" || fail "AUTO: not printed: $reason"
}
# time_is 'COMPARISON' TEXT: checks AUTO's microseconds.
time_is() {
    awk "\$5 == \"AUTO\" && \$6 $1 { found = 1 } END { exit !found }" "$WORK/out" || fail "$2"
}

module TWOSHOT
for mode in eager cold graph cold_graph; do
    has_time "" --mode $mode
done
has_time "" --fusion RESIDUAL_RMS_NORM
has_time "gpus=1" --loopback
has_time "gpus=1" --streams --mode graph
has_time "" -n 30 # in a row: whatever the budget, each of 2 ranks makes at least 6 calls
[ "$asked" -ge 12 ] || fail "12 calls or more, but $asked look-ups"

# The time of an eager call includes the lookup on the host, although the GPU's events do not; the time of a
# call in a graph does not include it.
module TWOSHOT 'double begin = now(); while (now() - begin < 0.0005) {}'
has_time ""
time_is ">= $lookup_us" "the lookup costs nothing"
has_time "" --mode graph --samples 3
time_is "< $lookup_us" "the lookup costs in a graph"

# A strategy that cannot run falls back on NCCL; without NCCL there is no time, but a reason.
module TWOSHOT 'return 1;'
has_time "" -b 128 -e 128
has_none "fewer tokens than ranks" "gpus=1" --loopback -b 128 -e 128
module NCCL
has_none "NCCL: duplicate GPU" "gpus=1" --loopback
module NCCL_SYMMETRIC
has_time "nccl_falls_back"
module TWOSHOT 'return 7;'
has_none "the incumbent's table chooses a strategy that this bench lacks" ""
for name in NOSUCH AUTO; do
    module $name
    has_none "the incumbent's table has $name, which this bench lacks" ""
done
GENTABLES_INCUMBENT=$WORK/none.so
why="no incumbent: the bench was built without a table; name one with gentables sweep --incumbent HEADER"
has_none "$why" ""
unset GENTABLES_INCUMBENT
bench "" -b 512 -e 512 --hidden-size 64 --samples 2
if grep -q AUTO "$WORK/out"; then fail "AUTO was not requested"; fi

# A sweep with either header as the incumbent: AUTO is in the rows, but never in a table.
spec() {
    cat >"$1/spec.lua" <<END
return { arch = "gpu", tp = { 2 }, hidden_sizes = { 64 }, num_tokens = { 1, 4 },
  fusions = { "NONE" }, strategies = { "ONESHOT", "NCCL", "AUTO" },
  limits = { min_samples = 3, max_samples = 4, cell_us = 100000, message_bytes = 65536, launches = 1 },
  table = { mode = "$2" } }
END
}
# sweeps CODE FOLDER OPTION...: by the spec in the folder.
sweeps() {
    code=$1 to=$2
    shift 2
    gentables "$code" "" sweep --out "$to" --bench "$BENCH" "$@"
}
rows=benchmark.tp2.sm90.csv
mkdir "$WORK/first"
spec "$WORK/first" eager
sweeps 0 "$WORK/first"
printed out "no time for 2: unavailable: no incumbent: .* --incumbent HEADER"
gentables 0 "" generate --data-dir "$WORK/first" --arch sm90
gentables 0 "" generate --data-dir "$WORK/first" --arch all --formats trtllm-header
# Rows of AUTO belong to the given header.
cp -r "$WORK/first" "$WORK/named"
for again in "measures again: .*the incumbent" "up to date"; do
    sweeps 0 "$WORK/named" --incumbent "$WORK/first/allreduce_table.h"
    grep -q "$again" "$WORK/out" "$WORK/err" || fail "another incumbent: not $again"
done
# swept MODE HEADER
swept() {
    mode=$1
    out=$WORK/$mode
    mkdir "$out"
    spec "$out" "$mode"
    sweeps 0 "$out" --incumbent "$WORK/first/$2"
    printed "$mode/$rows" ",AUTO,NONE,allreduce,.*,$mode,"
    awk 'BEGIN { FS = OFS = "," } $6 == "AUTO" { $9 = $10 = $11 = $13 = $14 = $15 = $21 = "0.0001" } 1' \
        "$out/$rows" >"$WORK/rows" && mv "$WORK/rows" "$out/$rows"
    rm "$out/${rows%.csv}.json" # it describes the rows before the change
    gentables 0 "" generate --data-dir "$out" --arch sm90
    if cut -d , -f 1-12 "$out/table.csv" | grep -q AUTO; then fail "a table chose AUTO"; fi
    printed "$mode/report.md" "^AUTO, the call through the incumbent's lookup, took 0.00 times"
    said=$(grep -c "go into a graph with what the lookup chose" "$out/report.md" || true)
    [ "$said" = "$([ "$mode" = graph ] && echo 1 || echo 0)" ] || fail "$mode: the note about AUTO in graphs"
}
swept eager allreduce_table.h
swept graph customAllReduceUtils.h
# With the flags of TensorRT-LLM's generator, and the existing spec.
mkdir "$WORK/drop_in"
spec "$WORK/drop_in" eager
sed -i 's/"gpu"/"sm90"/' "$WORK/drop_in/spec.lua"
gentables 0 "" generate --sm_version 90 --save_csv_dir "$WORK/drop_in" --enable_auto \
    --incumbent "$WORK/first/customAllReduceUtils.h"
printed out "^AUTO, the call through the incumbent's lookup, took [0-9.]* times .* of 2 cells"
[ -f "$WORK/drop_in/gen_heuristic_code/generated_lookup_table.cpp" ] || fail "no table"

# An invalid incumbent ends in one line, without a sweep.
refused() {
    wanted_text=$1
    shift
    gentables 2 "" "$@"
    [ "$(grep -c . "$WORK/err")" = 1 ] || fail "$wanted_text: more than one line"
    grep -qF -- "$wanted_text" "$WORK/err" || fail "not printed: $wanted_text"
    [ ! -e "$WORK/bad/$rows" ] || fail "$wanted_text: measured all the same"
}
mkdir "$WORK/bad"
spec "$WORK/bad" eager
set -- sweep --out "$WORK/bad" --bench "$BENCH" --incumbent
refused "none.h: cannot be read: No such file" "$@" "$WORK/none.h"
refused "has no lookup; allreduce_table.h or customAllReduceUtils.h is required" "$@" "$WORK/first/table.csv"
sed '20,$s/;$//' "$WORK/first/allreduce_table.h" >"$WORK/cut.h"
refused "cut.h: does not compile with" "$@" "$WORK/cut.h"
sed -i 's/, "AUTO"//' "$WORK/bad/spec.lua"
refused "--incumbent requires AUTO, which is not among the spec's strategies" "$@" \
    "$WORK/first/allreduce_table.h"
refused "--incumbent requires --enable_auto" \
    generate --sm_version 90 --save_csv_dir "$WORK/bad" --incumbent "$WORK/first/allreduce_table.h"
refused "--incumbent requires a sweep; with the rows in $WORK/first there is none" \
    generate --sm_version 90 --enable_auto \
    --data_dir "$WORK/first" --incumbent "$WORK/first/allreduce_table.h"
