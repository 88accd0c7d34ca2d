#!/bin/sh
# The kernels of one TP size, on the engine, compute what the reference does: sh kernels_are_right.sh TP.
# KERNELS: the program. A slow proof.
tp=$1
. "$(dirname "$0")/lib_planted.sh"
planted_inputs "$CXX" "$tp"
"$KERNELS" 0 " tp$tp"
proof_holds
