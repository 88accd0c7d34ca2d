#!/bin/sh
# A toolkit of CUDA 12 builds the programs for GPUs, and they accept each driver for CUDA 12.
# GENTABLES_CUDA12: the folder of the toolkit; CMAKE: the program; NCCL: the folder of its header; WORK: a
# folder of this test's own. 77: there is no such toolkit.
. "$SOURCE/tests/lib.sh"
[ -x "${GENTABLES_CUDA12:-/nonexistent}/bin/nvcc" ] || skip "there is no CUDA 12 here"
mkdir "$WORK/nccl"
cp "$NCCL/nccl.h" "$WORK/nccl" # that folder may have the headers of another toolkit

built=$WORK/built
ends_with 0 "$CMAKE" -S "$SOURCE" -B "$built" -G Ninja -DCUDAToolkit_ROOT="$GENTABLES_CUDA12" \
    -DNCCL_INCLUDE_DIR="$WORK/nccl" -DGENTABLES_CUDA_ARCHITECTURES=90 "-DGENTABLES_CUDA_TP=2;4"
grep -q "^CUDAToolkit_NVCC_EXECUTABLE.*=$GENTABLES_CUDA12/bin/nvcc" "$built/CMakeCache.txt" ||
    die "another nvcc was chosen"
ends_with 0 "$CMAKE" --build "$built" --target gentables-bench-cuda gentables-replay gentables-workload \
    stand_in_cuda stand_in_nvidia-ml

# Their driver's version and functions are those of CUDA 12.0.
BENCH=$built/bin/gentables-bench-cuda
STAND_INS=$built/tests/bench/cuda/libraries
LEAST_DRIVER=12000
export BENCH STAND_INS LEAST_DRIVER
WORK=$WORK/driver_versions IS_COMPILED=ON sh "$(dirname "$0")/../driver_versions.sh"
