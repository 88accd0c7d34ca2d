#!/bin/sh
# The embedded PTX is that of the newest SM version, in whatever order the versions are given, and the only
# one. Versions that nvcc lacks are left out, with a warning. CMAKE: the program; WORK: a folder of this
# test's own. 77: there is no nvcc.
. "$SOURCE/tests/lib.sh"
"$CMAKE" -S "$SOURCE" -B "$WORK/built" -DGENTABLES_CUDA_COMPILE=OFF \
    "-DGENTABLES_CUDA_ARCHITECTURES=90;10;80" >"$WORK/out" 2>&1 || die "not configured"
how=$WORK/built/bench/generated/cuda/how.txt
[ -f "$how" ] || skip "there is no nvcc here"
codes=$(tr ';' '\n' <"$how" | sed -n 's/^arch=//p' | tr '\n' ' ')
[ "$codes" = "compute_80,code=sm_80 compute_90,code=[compute_90,sm_90] " ] || die "compiled for $codes"
tr -s ' \n' ' ' <"$WORK/out" | grep -q "CUDA [0-9.]* does not compile for sm_10, which is left out" ||
    die "no warning about sm_10"
