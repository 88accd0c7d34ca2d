#!/bin/sh
# The folder for a machine with a GPU: less than 64 MiB, with a program that needs only libraries of the
# system. If that program does not run there, verify.sh builds it again. rebuilt_by_nvcc.sh tests the build by
# nvcc. The GPU is a stand-in.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_rebuilt.sh"
only cuda nccl nvidia-ml
[ "$(du -sk "$taken" | cut -f 1)" -lt $((64 * 1024)) ] || fail "the folder has 64 MiB or more"
needs_the_system "$taken/gentables-bench-cuda"

# ---- when it is built again, by a script that takes no time; the program finds no GPU ---------------------

cat >"$taken/rebuild.sh" <<'END'
rm -f "$1/gentables-bench-cuda"
printf '#!/bin/sh\necho "gentables-bench: no CUDA driver" >&2\nexit 2\n' >"$1/gentables-bench-cuda"
chmod +x "$1/gentables-bench-cuda"
END

# is_rebuilt WHY [NAME=VALUE]
is_rebuilt() {
    verify 77 GENTABLES_VERIFY_SECONDS=60 ${2:+"$2"}
    grep -q "^rebuilding the bench .*: .*$1" "$WORK/out" || fail "was not rebuilt: $1"
}

only_prints "$other_gpu"
is_rebuilt "kernels were built for sm_80"
only_prints "gentables-bench: the CUDA driver is for 12.4, older than this program's CUDA 13.0"
is_rebuilt "older than this program"
only_prints "gentables-bench: kernels were built by CUDA 13.0; this driver, for 13.0, cannot load them (X)"
is_rebuilt "cannot load them"
only_prints "gentables-bench: loading kernels: no text (CUDA_ERROR_UNSUPPORTED_PTX_VERSION)"
is_rebuilt "UNSUPPORTED_PTX_VERSION"
never_starts
is_rebuilt "no start within 5 s" GENTABLES_VERIFY_START=5
printf '\177ELF of another machine' >"$taken/gentables-bench-cuda"
is_rebuilt "ELF.*not found" # the error of a shell that reads it as a script
chmod -x "$taken/gentables-bench-cuda"
is_rebuilt "ermission denied"
rm "$taken/gentables-bench-cuda"
is_rebuilt "No such file"
echo 'void absent(void); void absent(void) {}' | cc -shared -fPIC -x c - -o "$WORK/libabsent.so"
echo 'void absent(void); int main(void) { absent(); }' |
    cc -x c - -x none "$WORK/libabsent.so" -o "$taken/gentables-bench-cuda"
rm "$WORK/libabsent.so"
is_rebuilt "libabsent.so: cannot open shared object file"

# An error on the GPU does not start a build.
only_prints "gentables-bench: out of memory on GPU 0"
verify 1 GENTABLES_VERIFY_SECONDS=60
printed out "^FAILED  start: gentables-bench: out of memory on GPU 0"
if grep -q "^rebuilding" "$WORK/out"; then fail "rebuilt for a GPU without memory"; fi

# If the build fails, nothing else is tried, and its last lines are printed.
echo "echo 'nvcc fatal: Unsupported gpu architecture' >&2; exit 1" >"$taken/rebuild.sh"
only_prints "$other_gpu"
verify 1 GENTABLES_VERIFY_SECONDS=60
grep -q "^nvcc fatal" "$WORK/out" || fail "the report lacks the message of nvcc"
tail -n 1 "$WORK/out" | grep -q "^FAILED: the rebuild failed; see " || fail "a failed build continues"

# After a timeout the program may start all the same: the parts try it.
never_starts
verify 1 GENTABLES_VERIFY_SECONDS=60 GENTABLES_VERIFY_START=5 GENTABLES_VERIFY_PARTS=eager
printed out "^the rebuild failed; the parts try the program as it is"
tail -n 1 "$WORK/out" | grep -q "^FAILED: start eager; see " || fail "the part is not tried"
