#!/bin/sh
# Drivers and GPUs of other versions than those of the build: a driver without the functions that are newer
# than CUDA 12.0, one that cannot load the kernels, and one that compiles them at load, from PTX.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nvidia-ml
some="-b 512 -e 512 --hidden-size 64 --samples 2 --budget 0.03 --strategies ONESHOT,NVLS_ONESHOT"

# without_nvls REASON: NVLS_ONESHOT has no time, for this reason.
without_nvls() {
    printed out "^# .* NVLS_ONESHOT  .*$1"
}

# ---- an older driver -------------------------------------------------------------------------------------

# The least version that the program accepts: that of its toolkit's major version.
only
bench ""
major=$(sed -n 's/.*no CUDA driver .*; version \([0-9]*\)\.0 or later is required$/\1/p' "$WORK/err")
[ "${LEAST_DRIVER:-${major}000}" = "${major}000" ] || fail "the least driver is not $LEAST_DRIVER"
only cuda nvidia-ml
ends 2 "driver=$((major - 1))090"
printed err "^gentables-bench: the CUDA driver is for $((major - 1)).9, older than this program's CUDA $major"

# shellcheck disable=SC2086
all_timed "ONESHOT NVLS_ONESHOT" bench "multicast" $some # a driver with all functions
# The names of what drivers of CUDA 12.0 lack (cudaTypedefs.h has the version of each function).
sed 's/cuMulticast/cuMissing__/g; s/cuEventElapsedTime_v2/cuEventMissingTime_v2/g' "$folder/libcuda.so.1" \
    >"$WORK/patched"
mv "$WORK/patched" "$folder/libcuda.so.1"
# shellcheck disable=SC2086
all_timed ONESHOT bench "driver=${major}000 multicast" $some
without_nvls "the driver has no multicast; 12.1 or later has it"
sed 's/cuStreamCreate/cuStreamAbsent/g' "$folder/libcuda.so.1" >"$WORK/patched"
mv "$WORK/patched" "$folder/libcuda.so.1"
ends 2 ""
printed err "^gentables-bench: the CUDA driver has no cuStreamCreate; a newer driver is required"

# ---- kernels that the driver does not load, or compiles ---------------------------------------------------

only cuda nvidia-ml
ends 2 "old_ptx"
[ "$(grep -c . "$WORK/err")" = 1 ] || fail "PTX of a later compiler: more than one line"
if [ "$IS_COMPILED" = ON ]; then
    printed err "^gentables-bench: kernels were built by CUDA [0-9.]*; this driver, for [0-9.]*, cannot load \
them (CUDA_ERROR 222); -DGENTABLES_CUDA_ARCHITECTURES=90 builds code"
fi

# compiled SETTINGS PTX: a warning for all ranks, and a line in the provenance of each.
compiled() {
    # shellcheck disable=SC2086
    bench "multicast $1" $some
    [ "$(grep -c . "$WORK/err")" = 1 ] || fail "$1: not one line of all ranks"
    printed err "^gentables-bench: warning: the driver compiled the kernels at load, from PTX $2"
    serves "$1"
    [ "$(grep -c "^device .* kernels=ptx_$2_compiled_at_load " "$WORK/hello")" = 2 ] ||
        fail "$1: no line about the kernels"
}
all_timed ONESHOT compiled "ptx=80" 8.0
without_nvls "PTX before 9.0 has no multicast"
all_timed "ONESHOT NVLS_ONESHOT" compiled "sm=120 ptx=90" 9.0

# Code is not compiled at load: that of the GPU's own version, or of another one with the same major version.
for code in "sm=90" "sm=103 binary=100"; do
    serves "$code"
    [ ! -s "$WORK/err" ] || fail "$code: a warning"
    [ "$(grep -c "^device .* kernels=sm_${code##*=} " "$WORK/hello")" = 2 ] || fail "$code: not in the lines"
done
