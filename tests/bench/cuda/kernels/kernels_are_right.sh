#!/bin/sh
# The kernels of one TP size, on the engine, have the results of the reference: sh kernels_are_right.sh TP.
# CXX and FLAGS: the compiler. A slow proof.
tp=$1
. "$(dirname "$0")/lib_planted.sh"
planted_inputs "$CXX" "$tp"
cases=-DCASES_TP=$tp
build_shared "$CXX"
build "$WORK/program" kernels "$CXX"
"$WORK/program" 0
proof_holds
