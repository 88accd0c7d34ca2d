#!/bin/sh
# If the program in the folder does not run, verify.sh builds it again, by nvcc, from the sources in the
# folder, and verifies that program. The GPU is a stand-in, which has kernels of its own: the first kernel of
# each file is compiled, and with GENTABLES_NIGHTLY=1 all of them. 77: there is no nvcc.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_rebuilt.sh"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || skip "there is no nvcc here"
only cuda nccl nvidia-ml
tests=$SOURCE/tests
. "$SOURCE/tests/proof.sh"
# The inputs do not include the program, which a script replaces, nor images.c, which has whether the build
# compiled kernels: a rebuild does.
# shellcheck disable=SC2046
proof_inputs "$tests/lib.sh" "$tests"/bench/cuda/lib_stand_in.sh "$tests"/bench/cuda/verify/lib_rebuilt.sh \
    "$tests"/stand_ins/*.[ch]* "$tests"/stand_ins/engine/* "$taken"/*.sh \
    "$SOURCE/bench/cuda/device/images.c.in" \
    $(find "$taken/source" -type f ! -name images.c | LC_ALL=C sort) -- \
    "$("$nvcc" --version | tail -n 1)" "$(cc --version | head -n 1)"

# The nvcc in PATH is a script in a folder without headers.
sanitizer_in_place
printf '#!/bin/sh\nexec "%s" "$@"\n' "$nvcc" >"$WORK/bin/nvcc"
chmod +x "$WORK/bin/nvcc"

if [ "${GENTABLES_NIGHTLY:-}" != 1 ]; then
    for unit in "$taken"/source/generated/tp*.cu; do
        awk '/^KERNEL\(/ { kernels++ } kernels < 2' "$unit" >"$WORK/unit.cu"
        mv "$WORK/unit.cu" "$unit"
    done
fi
only_prints "$other_gpu"
verify 0 PATH="$WORK/bin:$PATH" GENTABLES_CUDA_ARCH=sm_90 GENTABLES_VERIFY_SECONDS=840
grep -q "^rebuilding the bench .*: $other_gpu" "$WORK/out" || fail "was not rebuilt"
for name in rows.tp2 checked.tp2 streams eager cold cold_graph unfused one_rank; do
    grep -qx "ok      $name" "$WORK/out" || fail "$name, of the rebuilt program"
done
needs_the_system "$taken/gentables-bench-cuda"
proof_holds
