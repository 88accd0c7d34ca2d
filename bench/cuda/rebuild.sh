#!/bin/sh
# Builds gentables-bench-cuda from the sources in the folder, if the program in the folder does not run here:
# sh rebuild.sh FOLDER. It needs cc and nvcc of CUDA 12.4 or later, and uses NCCL's header if there is one.
# Kernels are built for this machine's GPU, or for GENTABLES_CUDA_ARCH, such as sm_90.
set -eu
folder=${1:?usage: sh rebuild.sh FOLDER}
source=$folder/source
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc)
export TMPDIR="$folder/compiling" # a machine's own may be small
mkdir -p "$TMPDIR"

# nvcc lists where its headers are. Its own path does not show that: it may be a script that calls nvcc.
echo '#include <cuda.h>' >"$TMPDIR/includes.cu"
"$nvcc" -M -o "$TMPDIR/includes.d" "$TMPDIR/includes.cu"
include=$(tr -s ' ' '\n' <"$TMPDIR/includes.d" | sed -n 's|^\(/.*\)/cuda\.h$|\1|p')
[ -f "$include/cuda.h" ] || { echo "rebuild.sh: $nvcc finds no cuda.h" >&2; exit 1; }

# The GPUs that its messages name.
for_gpu=${GENTABLES_CUDA_ARCH:-another GPU}
sed -i -e "s/cuda_architectures\[\] = \"[^\"]*\"/cuda_architectures[] = \"$for_gpu\"/" \
    -e 's/cuda_is_compiled = false/cuda_is_compiled = true/' "$source/generated/images.c"

running=
for unit in "$source"/generated/*.cu; do
    "$nvcc" -std=c++17 -O3 -arch="${GENTABLES_CUDA_ARCH:-native}" -I "$source/bench/cuda/kernels" \
        -I "$source/bench" -fatbin \
        -o "${unit%.cu}.fatbin" "$unit" &
    running="$running $!"
done
for one in $running; do wait "$one"; done
has_nccl=no
for folder_of_headers in "$include" /usr/include; do
    if [ -f "$folder_of_headers/nccl.h" ]; then has_nccl=yes; fi
done
set -- "${CC:-cc}" -std=gnu17 -O3 -D_GNU_SOURCE '-DBUILT_KERNELS=KERNELS(portable)' \
    -DKERNELS_SYMBOL=kernels_portable -DCHECK_KERNEL=check_kernel_portable '-DKERNELS_ISA="portable"' \
    -ffp-contract=off "-Wa,-I$source/generated" \
    -I "$source/bench" -I "$source/generated" -isystem "$include"
for unit in "$source"/bench/*.c "$source"/bench/*/*.c "$source"/bench/*/*/*.c \
    "$source"/generated/*.c; do
    case $unit in
    */nccl.c | */communicator.c) [ $has_nccl = yes ] || continue ;;
    */no_nccl.c) [ $has_nccl = no ] || continue ;;
    esac
    set -- "$@" "$unit"
done
"$@" -o "$folder/built" -lm -ldl -lpthread -lrt
mv "$folder/built" "$folder/gentables-bench-cuda"
rm -rf "$TMPDIR"
