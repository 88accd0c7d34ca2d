#!/bin/sh
# Where the program that travels does not run, verify.sh builds it anew, by nvcc, from the sources that travel
# along, and goes on with it. The GPU is a stand-in. 77: there is no nvcc.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_rebuilt.sh"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
    echo "skipped: there is no nvcc here"
    exit 77
fi
only cuda nccl nvidia-ml
tests=$SOURCE/tests
# shellcheck source=tests/proof.sh
. "$SOURCE/tests/proof.sh"
# The program itself is not among them: a script takes its place.
# shellcheck disable=SC2046
proof_inputs "$tests"/bench/cuda/lib_stand_in.sh "$tests"/bench/cuda/verify/lib_rebuilt.sh \
    "$tests"/stand_ins/*.[ch]* "$tests"/stand_ins/engine/* "$taken"/*.sh \
    $(find "$taken/source" -type f | LC_ALL=C sort) -- \
    "$("$nvcc" --version | tail -n 1)" "$(cc --version | head -n 1)"

# The nvcc that is found is a script elsewhere, beside which there are no headers.
sanitizer_in_place
printf '#!/bin/sh\nexec "%s" "$@"\n' "$nvcc" >"$WORK/bin/nvcc"
chmod +x "$WORK/bin/nvcc"

says "$other_gpu"
verify PATH="$WORK/bin:$PATH" GENTABLES_CUDA_ARCH=sm_90 GENTABLES_VERIFY_SECONDS=840
[ "$status" = 0 ] || fail "what was built anew: exit code $status"
grep -q "^rebuilding the bench .*: $other_gpu" "$WORK/out" || fail "not built anew"
for name in rows.tp2 checked.tp2 streams eager cold cold_graph unfused one_rank; do
    grep -qx "ok      $name" "$WORK/out" || fail "$name, of what was built anew"
done
needs_the_system "$taken/gentables-bench-cuda"
proof_holds
