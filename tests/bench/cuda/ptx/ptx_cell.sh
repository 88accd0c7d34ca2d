#!/bin/sh
# Whole cells of the bench with the PTX that nvcc compiles, of kernels and helpers: the stand-in for the
# driver launches them with the parameters that the host code computes. BENCH, STAND_INS: see lib_stand_in.sh.
# DRIVER: the object files of the stand-in. A slow proof.
. "$(dirname "$0")/lib_ptx.sh"
sm=90
needs_nvcc $sm
render_kernels 2
"$GENTABLES" template "$SOURCE/templates/bench/cuda_helpers.cu.tmpl" --out "$WORK/helpers.cu"
# shellcheck disable=SC2046
ptx_inputs "" "$WORK/helpers.cu" "$SOURCE/tests/lib.sh" "$SOURCE/tests/bench/cuda/lib_stand_in.sh" \
    "$SOURCE"/tests/stand_ins/*.[ch]* $(find "$SOURCE/bench" -name '*.[ch]' | LC_ALL=C sort)

# compile_image NAME: NAME.o from NAME.cu.
compile_image() {
    compile_ptx $sm "$shared/$1"
    compile_translated "$shared/$1" -fPIC "-Dptx_kernels=ptx_$1"
}
# The bench requires a kernel of float32 of each strategy.
select_kernels "name ~ /_bf16_fp32_|_fp32_fp32_none_/" >"$shared/tp2.cu"
two_at_a_time compile_image helpers tp2
"$CXX" -std=c++17 -O1 -fPIC -c "$translator/in_driver.cpp" -o "$shared/in_driver.o"
parts=$(echo "$DRIVER" | tr ';' '\n' | grep -v '/\(helpers\|tp[0-9]*\)\.cpp\.o$')

WORK=$WORK/cells
. "$SOURCE/tests/bench/cuda/lib_stand_in.sh"
only nccl nvidia-ml
# shellcheck disable=SC2086
"$CXX" -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic-functions $parts "$ENGINE" "$shared/helpers.o" \
    "$shared/tp2.o" "$shared/in_driver.o" -lpthread -ldl -lm -o "$folder/libcuda.so.1"

small="-b 512 -e 512 --hidden-size 64 --samples 4 --budget 0.03 --emulate-nvfp4"
# cell STRATEGIES SETTINGS OPTION...
cell() {
    strategies=$1 settings=$2
    shift 2
    # shellcheck disable=SC2086
    all_timed "$(echo "$strategies" | tr ',' ' ')" bench "$settings" $small --strategies "$strategies" "$@"
}
of_epilogue=ONESHOT,ONESHOT_EPILOGUE,ONESHOT_UNFUSED
cell ONESHOT,TWOSHOT ""
cell $of_epilogue,TWOSHOT gpus=1 --loopback --fusion RESIDUAL_RMS_NORM_QUANT_NVFP4
cell $of_epilogue gpus=1 --streams --mode graph --fusion RESIDUAL_RMS_NORM
# A cluster for each token.
cell ONESHOT gpus=1 --loopback --fusion RESIDUAL_RMS_NORM_QUANT_FP8 -b 2048 -e 2048 --hidden-size 1024
cell TWOSHOT "" --mode cold_graph
cell ONESHOT_MULTICAST,NVLS_ONESHOT,NVLS_TWOSHOT multicast --fusion RESIDUAL_RMS_NORM
proof_holds
