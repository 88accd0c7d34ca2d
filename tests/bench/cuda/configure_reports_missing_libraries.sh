#!/bin/sh
# Without CUDA or NCCL configuring succeeds, and prints one line about it. CMAKE: the program; NCCL, CUBLASLT:
# the folders of their headers, as found; WORK: a folder of this test's own.
. "$SOURCE/tests/lib.sh"

# absent NAME PATTERN LINE OPTION...: expects LINE among the lines with PATTERN.
absent() {
    name=$1 pattern=$2 line=$3
    shift 3
    "$CMAKE" -S "$SOURCE" -B "$WORK/$name" "$@" >"$WORK/out" 2>&1 || die "without $name: not configured"
    said=$(grep "^-- gentables: .*$pattern" "$WORK/out" || :)
    [ "$said" = "-- gentables: $line" ] || die "without $name, not just $line, but: $said"
}
absent CUDA "\(CUDA\|NCCL\|nccl\|cuBLAS\|cuDNN\|CUPTI\|GPU\)" \
    "no CUDA 12.4 or later, so nothing is measured on GPUs" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
[ -d "$NCCL" ] || skip "there is no nccl.h here"
absent NCCL "\(NCCL\|nccl\)" "no nccl.h, so NCCL is not measured, nor are workloads on GPUs" \
    "-DCMAKE_IGNORE_PATH=$NCCL;$(readlink -f "$NCCL")" "-DCUBLASLT_INCLUDE_DIR=$CUBLASLT"
