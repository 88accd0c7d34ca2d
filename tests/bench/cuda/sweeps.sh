#!/bin/sh
# gentables tune and gentables sweep on GPUs: rows, devices and provenance; a GPU that hangs; too few GPUs.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml

# gentables tune on GPUs: ops by bytes, rows of this SM version, and a table of them.
# tuned CODE SETTINGS ARGUMENT...
tuned() {
    code=$1 settings=$2
    shift 2
    gentables "$code" "$settings" tune --backend cuda --bench "$BENCH" --cache "$WORK/tune.json" "$@"
}
tuned 0 "" --fresh --samples 3 --op allreduce,allgather,reducescatter,alltoallv,broadcast --splits 3:1 \
    --sizes 512:4K:8 --launches 2 --out "$WORK/tuned"
printed out "^alltoallv, TP 2, bfloat16, splits 3:1"
printed tuned/benchmark.tp2.sm90.csv "^2,bfloat16,4096,,,NCCL,NONE,allgather,"
gentables 0 "" generate --data-dir "$WORK/tuned" --arch sm90 --formats c,table,report
printed tuned/allreduce_table.h "GENTABLES_SM90_OP_ALLGATHER"
a_hang() {
    tuned 1 "hang" --fresh --op allgather --sizes 512 --timeout 5
    printed err "every op takes its default, NCCL"
}
beside a_hang a_hang
# A rank without a share.
tuned 0 "" --samples 3 --op alltoallv --splits 0:1 --sizes 4K --json
printed out '"splits": "0:1"'
printed out '"strategy": "NCCL"'

serves ""
printed hello "^hello .*isa=sm_90 .*library=CUDA .* driver 999.1 for .* NCCL .* on 2 x stand-in GPU"
printed hello "^device rank=1 gpu=1 bus=0000:01:00.0 sm=90 .*clock_mhz=1980 .*throttle=0x4 nvlinks=4 \
pcie=4x8 pcie_most=5x16 "

cat >"$WORK/spec.lua" <<'END'
return { arch = "gpu-loopback", tp = { 2 }, hidden_sizes = { 64 }, num_tokens = { 1, 4 },
  fusions = { "NONE" }, strategies = { "ONESHOT", "TWOSHOT", "NCCL" },
  limits = { min_samples = 3, max_samples = 4, cell_us = 100000, message_bytes = 65536, launches = 1 },
  table = { mode = "graph" } }
END
# A kernel that hangs costs only the time of its strategy; the sweep continues, and prints the reason.
spec=$WORK/spec.lua
# sweep CODE SETTINGS SPEC OUT OPTION...
sweep() {
    code=$1 settings=$2 of=$3 to=$4
    shift 4
    gentables "$code" "$settings" sweep "$of" --out "$to" --bench "$BENCH" --budget none "$@"
}
a_sweep_with_a_hang() {
    sweep 1 "gpus=1 hang_on=twoshot" "$spec" "$WORK/hang" --patience 12
    for tokens in 1 4; do printed hang/benchmark.tp2.sm90-loopback.csv ",$tokens,64,ONESHOT,"; done
    printed err "GPU hung .*; TWOSHOT stays without a time"
    grep -A1 '"reason": ".*GPU hung' "$WORK/hang/benchmark.tp2.sm90-loopback.json" | grep -q TWOSHOT ||
        fail "the row lacks the hang"
}
beside a_sweep_with_a_hang a_sweep_with_a_hang

# NCCL's first communicator may take longer than the patience.
a_slow_communicator() {
    sed 's/gpu-loopback/gpu/; s/{ 1, 4 }/{ 4 }/; s/"graph"/"eager"/' "$spec" >"$WORK/slow.lua"
    sweep 0 "nccl_first_s=12" "$WORK/slow.lua" "$WORK/slow" --patience 8
    printed slow/benchmark.tp2.sm90.csv ",4,64,NCCL,"
}
beside a_slow_communicator a_slow_communicator

sweep 0 "gpus=1" "$spec" "$WORK"
rows=benchmark.tp2.sm90-loopback
printed $rows.csv "floor (us),calls\$"
printed $rows.csv ",ONESHOT,NONE,allreduce,.*,graph,fp32,loopback,.*,$above_0,40\$"
# The provenance has the GPU, its throttling, its lowest clock, and the reason for NCCL without a time.
for text in '"sm": *"90"' '"throttle_seen": *"0x44"' '"least_clock_mhz": *"1200"' "duplicate GPU"; do
    printed $rows.json "$text"
done
# A TP size that needs more GPUs than there are has no rows; the others are complete.
sed 's/gpu-loopback/gpu/; s/tp = { 2 }/tp = { 2, 4 }/' "$WORK/spec.lua" >"$WORK/two.lua"
sweep 1 "gpus=2" "$WORK/two.lua" "$WORK/two"
few="the bench reports: 4 ranks need 4 GPUs, and here are 2; --loopback puts all ranks on one"
again="the next sweep tries again; --tp leaves TP sizes out"
# On a slow machine lines of progress come before it.
[ "$(grep -v '^gentables: [0-9]* %: ' "$WORK/err")" = "gentables: TP 4: $few; $again" ] ||
    fail "no message of one line about too few GPUs for a TP size"
printed two/benchmark.tp2.sm90.csv ",ONESHOT,NONE,allreduce,"
printed two/benchmark.tp4.sm90.json "unavailable: $few"
sweep 2 "gpus=1" "$spec" "$WORK" --arch sm100-loopback
printed err "this GPU is sm_90"
all_beside
