#!/bin/sh
# A driver that checks the images: it loads those of nvcc. This is a slow proof, since compiling them takes
# more than a minute of processor time. If the bench was built with GENTABLES_CUDA_COMPILE=OFF, the driver
# rejects them, and one line has the reason. `images.sh proven` needs no build, and ends with 77 if .ci/proven
# has the proof.
inputs() {
    SOURCE=${SOURCE:-.}
    mkdir -p "$WORK"
    . "$SOURCE/tests/proof.sh"
    nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc)
    proof_inputs "$SOURCE"/bench/cuda/CMakeLists.txt "$SOURCE"/bench/cuda/device/* \
        "$SOURCE"/bench/libraries/cuda_driver.* "$SOURCE"/bench/cuda/kernels/*.h "$SOURCE"/bench/fusions/*.h \
        "$SOURCE"/generator/lists/*.lua "$SOURCE"/templates/bench/cuda_*.tmpl \
        "$SOURCE"/tests/stand_ins/*.[ch]* -- "$("$nvcc" --version)"
}
if [ "${1:-}" = proven ]; then
    inputs
    exit 1
fi
if [ "$IS_COMPILED" = ON ]; then inputs; fi
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nvidia-ml
small="-b 512 -e 512 --samples 2 --budget 0.03 --loopback --strategies ONESHOT"
# shellcheck disable=SC2086
if [ "$IS_COMPILED" = ON ]; then
    all_timed ONESHOT bench "gpus=1 reads_images" $small
    proof_holds
    exit 0
fi
# shellcheck disable=SC2086
ends 2 "gpus=1 reads_images" $small
said="kernels were built for no GPU (GENTABLES_CUDA_COMPILE is OFF), and this GPU is sm_90"
printed err "^gentables-bench: $said"
