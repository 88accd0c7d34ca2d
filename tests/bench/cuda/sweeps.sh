#!/bin/sh
# gentables tune and gentables sweep on GPUs: rows, devices and provenance; a GPU that hangs; too few GPUs.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml

# gentables tune on GPUs: ops by bytes, rows of this SM version, and a table of them.
STAND_IN="" LD_LIBRARY_PATH=$folder "$GENTABLES" tune --backend cuda --bench "$BENCH" --fresh --samples 3 \
    --op allreduce,allgather,reducescatter,alltoallv,broadcast --splits 3:1 --sizes 512:4K:8 --launches 2 \
    --cache "$WORK/tune.json" --out "$WORK/tuned" >"$WORK/out" 2>"$WORK/err" || fail "tune failed"
grep -q "^alltoallv, TP 2, bfloat16, splits 3:1" "$WORK/out" || fail "the output of tune lacks an op"
grep -q "^2,bfloat16,4096,,,NCCL,NONE,allgather," "$WORK/tuned/benchmark.tp2.sm90.csv" ||
    fail "no row of tune"
"$GENTABLES" generate --data-dir "$WORK/tuned" --arch sm90 --formats c,table,report >"$WORK/out" \
    2>"$WORK/err" || fail "no table of the rows of tune"
grep -q "GENTABLES_SM90_OP_ALLGATHER" "$WORK/tuned/allreduce_table.h" || fail "the C header"
a_hang() {
    if STAND_IN="hang" LD_LIBRARY_PATH=$folder "$GENTABLES" tune --backend cuda --bench "$BENCH" --fresh \
        --op allgather --sizes 512 --timeout 5 --cache "$WORK/tune.json" >"$WORK/out" 2>"$WORK/err"; then
        fail "a GPU that hangs: tune succeeds"
    fi
    grep -q "every op takes its default, NCCL" "$WORK/err" || fail "a GPU that hangs: the default is not NCCL"
}
beside a_hang a_hang
STAND_IN="" LD_LIBRARY_PATH=$folder "$GENTABLES" tune --backend cuda --bench "$BENCH" --samples 3 \
    --op alltoallv --splits 0:1 --sizes 4K --cache "$WORK/tune.json" --json >"$WORK/out" 2>"$WORK/err" ||
    fail "tune of a rank without a share"
grep -q '"splits": "0:1"' "$WORK/out" || fail "tune of a rank without a share has no cell"
grep -q '"strategy": "NCCL"' "$WORK/out" || fail "tune of a rank without a share has no time"

printf 'quit\n' | STAND_IN="" LD_LIBRARY_PATH=$folder "$BENCH" --serve --workspace 64K \
    >"$WORK/out" 2>"$WORK/err" || fail "the bench does not serve"
grep -q "^hello .*isa=sm_90 .*library=CUDA .* driver 999.1 for .* NCCL .* on 2 x stand-in GPU" "$WORK/out" ||
    fail "no line hello"
grep -q "^device rank=1 gpu=1 bus=0000:01:00.0 sm=90 .*clock_mhz=1980 .*throttle=0x4 nvlinks=4 \
pcie=4x8 pcie_most=5x16 " "$WORK/out" || fail "no lines about devices"

cat >"$WORK/spec.lua" <<'END'
return { arch = "gpu-loopback", tp = { 2 }, hidden_sizes = { 64 }, num_tokens = { 1, 4 },
  fusions = { "NONE" }, strategies = { "ONESHOT", "TWOSHOT", "NCCL" },
  limits = { min_samples = 3, max_samples = 4, cell_us = 100000, message_bytes = 65536, launches = 1 },
  table = { mode = "graph" } }
END
# A kernel that hangs costs only the time of its strategy; the sweep continues, and prints the reason.
spec=$WORK/spec.lua
a_sweep_with_a_hang() {
    if STAND_IN="gpus=1 hang_on=twoshot" LD_LIBRARY_PATH=$folder timeout 300 "$GENTABLES" sweep "$spec" \
        --out "$WORK/hang" --bench "$BENCH" --patience 12 --budget none >"$WORK/out" 2>"$WORK/err"; then
        fail "a sweep with a hang ends as if there was none"
    fi
    for tokens in 1 4; do
        grep -q ",$tokens,64,ONESHOT," "$WORK/hang/benchmark.tp2.sm90-loopback.csv" ||
            fail "a strategy that does not hang has no row of $tokens tokens"
    done
    grep -q "GPU hung .*; TWOSHOT stays without a time" "$WORK/err" || fail "no message about TWOSHOT"
    grep -A1 '"reason": ".*GPU hung' "$WORK/hang/benchmark.tp2.sm90-loopback.json" | grep -q TWOSHOT ||
        fail "the row lacks the hang"
}
beside a_sweep_with_a_hang a_sweep_with_a_hang

# NCCL's first communicator may take longer than the patience.
a_slow_communicator() {
    sed 's/gpu-loopback/gpu/; s/{ 1, 4 }/{ 4 }/; s/"graph"/"eager"/' "$spec" >"$WORK/slow.lua"
    STAND_IN="nccl_first_s=12" LD_LIBRARY_PATH=$folder timeout 300 "$GENTABLES" sweep "$WORK/slow.lua" \
        --out "$WORK/slow" --bench "$BENCH" --patience 8 --budget none >"$WORK/out" 2>"$WORK/err" ||
        fail "a sweep with a slow communicator failed"
    grep -q ",4,64,NCCL," "$WORK/slow/benchmark.tp2.sm90.csv" || fail "a slow communicator has no row"
}
beside a_slow_communicator a_slow_communicator

sweep() {
    STAND_IN="gpus=1" LD_LIBRARY_PATH=$folder "$GENTABLES" sweep "$WORK/spec.lua" --out "$WORK" \
        --bench "$BENCH" --budget none "$@" >"$WORK/out" 2>"$WORK/err"
}
sweep || fail "the sweep failed"
rows=$WORK/benchmark.tp2.sm90-loopback.csv
grep -q "floor (us),calls\$" "$rows" || fail "the floor is not in the rows"
grep -q ",ONESHOT,NONE,allreduce,.*,graph,fp32,loopback,.*,$above_0,40\$" "$rows" ||
    fail "a row lacks its fields"
grep -q '"sm": *"90"' "$WORK/benchmark.tp2.sm90-loopback.json" || fail "the provenance lacks the GPU"
grep -q '"throttle_seen": *"0x44"' "$WORK/benchmark.tp2.sm90-loopback.json" ||
    fail "the provenance lacks the throttling"
grep -q '"least_clock_mhz": *"1200"' "$WORK/benchmark.tp2.sm90-loopback.json" ||
    fail "the provenance lacks the lowest clock"
grep -q "duplicate GPU" "$WORK/benchmark.tp2.sm90-loopback.json" || fail "no reason for NCCL without a time"
# A TP size that needs more GPUs than there are has no rows; the others are complete.
sed 's/gpu-loopback/gpu/; s/tp = { 2 }/tp = { 2, 4 }/' "$WORK/spec.lua" >"$WORK/two.lua"
if STAND_IN="gpus=2" LD_LIBRARY_PATH=$folder "$GENTABLES" sweep "$WORK/two.lua" --out "$WORK/two" \
    --bench "$BENCH" --budget none >"$WORK/out" 2>"$WORK/err"; then
    fail "a sweep with too few GPUs for a TP size ends as if there were enough"
fi
few="the bench reports: 4 ranks need 4 GPUs, and here are 2; --loopback puts all ranks on one"
again="the next sweep tries again; --tp leaves TP sizes out"
# On a slow machine lines of progress come before it.
[ "$(grep -v '^gentables: [0-9]* %: ' "$WORK/err")" = "gentables: TP 4: $few; $again" ] ||
    fail "no message of one line about too few GPUs for a TP size"
grep -q ",ONESHOT,NONE,allreduce," "$WORK/two/benchmark.tp2.sm90.csv" || fail "the other TP size has no rows"
grep -qF "unavailable: $few" "$WORK/two/benchmark.tp4.sm90.json" || fail "the cells lack the reason"
if sweep --arch sm100-loopback; then fail "rows of another SM version"; fi
grep -q "this GPU is sm_90" "$WORK/err" || fail "no message about another SM version"
all_beside
