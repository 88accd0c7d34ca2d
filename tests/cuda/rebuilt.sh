#!/bin/sh
# What travels to a machine with a GPU: less than 64 MiB, of a program that needs the system's own libraries
# alone; and where that program does not run there, verify.sh builds it anew, by nvcc, from the sources that
# travel along, and goes on with it. The GPU is a stand-in. 77: there is no nvcc.
. "$(dirname "$0")/lib_stand_in.sh"
if ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
    echo "skipped: there is no nvcc here"
    exit 77
fi
only cuda nccl nvidia-ml
taken=$WORK/taken
cp -r "$VERIFY" "$taken"

# needs_the_system PROGRAM: no other library is loaded as it starts.
needs_the_system() {
    readelf -d "$1" >"$WORK/out" || fail "$1 is no program"
    others=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$WORK/out" |
        grep -vE '^(lib(c|m|dl|rt|pthread)|ld-linux[-a-z0-9_]*)\.so\.[0-9]+$' || true)
    [ -z "$others" ] || fail "$1 needs $others"
}

[ "$(du -sk "$taken" | cut -f 1)" -lt $((64 * 1024)) ] || fail "what travels has 64 MiB or more"
needs_the_system "$taken/gentables-bench-cuda"

# verify NAME=VALUE...: its exit code in $status.
verify() {
    status=0
    env "$@" STAND_IN="gpus=1" LD_LIBRARY_PATH="$folder" GENTABLES_VERIFY_TP=2 GENTABLES_VERIFY_HIDDEN=160 \
        GENTABLES_VERIFY_MOST_TOKENS=8 GENTABLES_VERIFY_ROWS=1 GENTABLES_VERIFY_SAMPLES=2 \
        GENTABLES_VERIFY_TOKENS=1 GENTABLES_VERIFY_CHECK_TOKENS=3 GENTABLES_VERIFY_KERNELS_TOKENS=2 \
        GENTABLES_VERIFY_WORKSPACE=256K GENTABLES_VERIFY_PATIENCE=500 GENTABLES_VERIFY_DEADLINE=60 \
        timeout 900 sh "$taken/verify.sh" "$taken" "$WORK/verified" >"$WORK/out" 2>"$WORK/err" || status=$?
}

# says LINE: the program is a script that can only say this.
says() {
    printf '#!/bin/sh\necho "%s" >&2\nexit 2\n' "$1" >"$taken/gentables-bench-cuda"
    chmod +x "$taken/gentables-bench-cuda"
}

# ---- when it is built anew, by what takes no time and finds no GPU ------------------------------------

mv "$taken/rebuild.sh" "$WORK/rebuild.sh"
cat >"$taken/rebuild.sh" <<'END'
rm -f "$1/gentables-bench-cuda"
printf '#!/bin/sh\necho "gentables-bench: no CUDA driver" >&2\nexit 2\n' >"$1/gentables-bench-cuda"
chmod +x "$1/gentables-bench-cuda"
END

# is_built_anew WHY
is_built_anew() {
    verify GENTABLES_VERIFY_SECONDS=60
    [ "$status" = 77 ] || fail "$1: exit code $status"
    grep -q "^built anew, for: .*$1" "$WORK/out" || fail "not built anew: $1"
}

other_gpu="gentables-bench: kernels were built for sm_80, and this GPU is sm_90"
says "$other_gpu"
is_built_anew "kernels were built for sm_80"
says "gentables-bench: the CUDA driver is for 12.4, older than this program's CUDA 13.0"
is_built_anew "older than this program"
printf '\177ELF of another machine' >"$taken/gentables-bench-cuda"
is_built_anew "ELF.*not found" # as a shell takes it for a script
chmod -x "$taken/gentables-bench-cuda"
is_built_anew "ermission denied"
rm "$taken/gentables-bench-cuda"
is_built_anew "No such file"
echo 'void absent(void); void absent(void) {}' | cc -shared -fPIC -x c - -o "$WORK/libabsent.so"
echo 'void absent(void); int main(void) { absent(); }' |
    cc -x c - -x none "$WORK/libabsent.so" -o "$taken/gentables-bench-cuda"
rm "$WORK/libabsent.so"
is_built_anew "libabsent.so: cannot open shared object file"

# What goes wrong on the GPU goes wrong again.
says "gentables-bench: out of memory on GPU 0"
verify GENTABLES_VERIFY_SECONDS=60
[ "$status" = 1 ] || fail "a GPU without memory: exit code $status"
grep -q "^FAILED  start: gentables-bench: out of memory on GPU 0" "$WORK/out" || fail "its start is not told"
if grep -q "^built anew" "$WORK/out"; then fail "built anew for a GPU without memory"; fi

# Where that cannot be done, nothing else is tried, and its last words are there.
echo "echo 'nvcc fatal: Unsupported gpu architecture' >&2; exit 1" >"$taken/rebuild.sh"
says "$other_gpu"
verify GENTABLES_VERIFY_SECONDS=60
[ "$status" = 1 ] || fail "what cannot be built: exit code $status"
grep -q "^nvcc fatal" "$WORK/out" || fail "why it cannot be built is not told"
tail -n 1 "$WORK/out" | grep -q "^FAILED: it could not be built; see " || fail "what cannot be built goes on"

# ---- and what nvcc builds then --------------------------------------------------------------------

# The nvcc that is found is a script elsewhere, beside which there are no headers.
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
sanitizer_in_place
printf '#!/bin/sh\nexec "%s" "$@"\n' "$nvcc" >"$WORK/bin/nvcc"
chmod +x "$WORK/bin/nvcc"

mv "$WORK/rebuild.sh" "$taken/rebuild.sh"
says "$other_gpu"
verify PATH="$WORK/bin:$PATH" GENTABLES_CUDA_ARCH=sm_90 GENTABLES_VERIFY_SECONDS=840
[ "$status" = 0 ] || fail "what was built anew: exit code $status"
grep -q "^built anew, for: $other_gpu" "$WORK/out" || fail "not built anew"
for name in rows.tp2 checked.tp2 streams eager cold cold_graph unfused one_rank; do
    grep -qx "ok      $name" "$WORK/out" || fail "$name, of what was built anew"
done
needs_the_system "$taken/gentables-bench-cuda"
