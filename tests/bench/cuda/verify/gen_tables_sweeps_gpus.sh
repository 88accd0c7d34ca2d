#!/bin/sh
# gen_tables_sweeps_gpus.sh STAND_INS: with SWEEP_GPUS, gen-tables measures on GPUs (stand-ins for their
# driver) and renders; without a GPU it fails with the reason, and without SWEEP_GPUS it measures
# nothing. 77 where the package has no bench for GPUs.
. "$(dirname -- "$0")/../../../system/package/lib.sh"

begin gen_tables_gpus
[ -x "$GENTABLES_PREFIX/bin/gentables-bench-cuda" ] ||
    skip "the package has no bench for GPUs (no CUDA 12.4 or later)"
tables=$project/tables/sm90-loopback
mkdir -p "$tables" "$work/none" "$work/gpu"
for absent in libcuda.so.1 libnccl.so.2 libnvidia-ml.so.1; do
    : >"$work/none/$absent"
    : >"$work/gpu/$absent"
done
cp "$1"/libcuda.so.1 "$work/gpu"
cat >"$tables/spec.lua" <<'END'
return { arch = "sm90-loopback", tp = { 2 }, hidden_sizes = { 64 }, num_tokens = { 1, 4 },
  fusions = { "NONE" }, strategies = { "ONESHOT", "TWOSHOT" },
  limits = { min_samples = 3, max_samples = 4, cell_us = 1000, message_bytes = 65536, launches = 1 },
  table = { mode = "graph" } }
END
sweeps() {
    passes sed -i "s/^gentables_add(NAME gpus.*//" "$project/CMakeLists.txt"
    echo "gentables_add(NAME gpus ARCH sm90-loopback DATA_DIR tables/sm90-loopback FORMATS c table $1)" \
        >>"$project/CMakeLists.txt"
    configure -G Ninja
}

sweeps SWEEP_GPUS
fails env LD_LIBRARY_PATH="$work/none" cmake --build "$build" --target gpus-gen
printed 'no CUDA driver'
passes env LD_LIBRARY_PATH="$work/gpu" STAND_IN="gpus=1" cmake --build "$build" --target gpus-gen
for file in benchmark.tp2.sm90-loopback.csv benchmark.tp2.sm90-loopback.json table.csv allreduce_table.h; do
    if [ ! -s "$tables/$file" ]; then die "gpus-gen should have written $file"; fi
done
passes grep -q "^2,.*,ONESHOT," "$tables/benchmark.tp2.sm90-loopback.csv"

sweeps ""
rm "$tables"/benchmark.*
fails env LD_LIBRARY_PATH="$work/gpu" STAND_IN="gpus=1" cmake --build "$build" --target gpus-gen
if [ -e "$tables/benchmark.tp2.sm90-loopback.csv" ]; then die "without SWEEP_GPUS nothing is measured"; fi
