#!/bin/sh
# The kernels of one TP size, in the PTX that nvcc compiles for an SM version, have the results of the
# reference, in launches of one rank and of all: sh ptx_kernels_are_right.sh TP SM [FLAG...]. A slow proof.
tp=$1 sm=$2
shift 2
. "$(dirname "$0")/lib_ptx.sh"
needs_nvcc "$sm"
render_kernels "$tp"
ptx_inputs "${tp}_sm$sm"
build_ptx_shared "-DCASES_TP=$tp" "$@"

# Every second kernel, in a process of its own.
is_right() {
    select_kernels "number % 2 == $1" >"$WORK/part.cu"
    compile_ptx "$sm" "$WORK/part"
    build_ptx "$WORK/part" plain
    "$WORK/part" 0
}
two_at_a_time is_right 0 1
proof_holds
