#!/bin/sh
# The embedded PTX is that of the newest SM version, in whatever order the versions are given, and the only
# one. CMAKE: the program; WORK: a folder of this test's own. 77: there is no nvcc.
set -eu
rm -rf "$WORK"
mkdir -p "$WORK"
"$CMAKE" -S "$SOURCE" -B "$WORK/built" -DGENTABLES_CUDA_COMPILE=OFF \
    "-DGENTABLES_CUDA_ARCHITECTURES=100;80;90" >"$WORK/out" 2>&1 || {
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
wanted="compute_80,code=sm_80 compute_90,code=sm_90 compute_100,code=[compute_100,sm_100] "
[ "$codes" = "$wanted" ] && exit 0
echo "FAILED: compiled for $codes"
exit 1
