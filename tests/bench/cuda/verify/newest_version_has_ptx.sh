#!/bin/sh
# The embedded PTX is that of the newest SM version, in whatever order the versions are given, and the only
# one. Versions that nvcc lacks are left out, with a warning. CMAKE: the program; WORK: a folder of this
# test's own. 77: there is no nvcc.
set -eu
rm -rf "$WORK"
mkdir -p "$WORK"
"$CMAKE" -S "$SOURCE" -B "$WORK/built" -DGENTABLES_CUDA_COMPILE=OFF \
    "-DGENTABLES_CUDA_ARCHITECTURES=90;10;80" >"$WORK/out" 2>&1 || {
    echo "FAILED: not configured"
    cat "$WORK/out"
    exit 1
}
how=$WORK/built/bench/generated/cuda/how.txt
if [ ! -f "$how" ]; then
    echo "skipped: there is no nvcc here"
    exit 77
fi
codes=$(tr ';' '\n' <"$how" | sed -n 's/^arch=//p' | tr '\n' ' ')
if [ "$codes" != "compute_80,code=sm_80 compute_90,code=[compute_90,sm_90] " ]; then
    echo "FAILED: compiled for $codes"
    exit 1
fi
tr -s ' \n' ' ' <"$WORK/out" | grep -q "CUDA [0-9.]* does not compile for sm_10, which is left out" || {
    echo "FAILED: no warning about sm_10"
    exit 1
}
