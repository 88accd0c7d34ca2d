#!/bin/sh
# A driver that checks the images: it loads those of nvcc. If the bench was built with
# GENTABLES_CUDA_COMPILE=OFF, the driver rejects them, and one line has the reason.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nvidia-ml
bench "gpus=1 reads_images" -b 512 -e 512 --samples 2 --budget 0.03 --loopback --strategies ONESHOT
if [ "$IS_COMPILED" = ON ]; then
    all_timed "compiled kernels" ONESHOT
    exit 0
fi
[ "$status" = 2 ] || fail "kernels that were not compiled: exit code $status"
said="kernels were built for no GPU (GENTABLES_CUDA_COMPILE is OFF), and this GPU is sm_90"
grep -q "^gentables-bench: $said" "$WORK/err" || fail "kernels that were not compiled: not printed"
