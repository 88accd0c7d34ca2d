#!/bin/sh
# Plug-ins on GPUs: the examples pass their trial and are timed beside NCCL and our kernels, with a GPU for
# each rank and with all ranks on one; with an epilogue fused, separate and without; in place; and by hand.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_plugins.sh"
only cuda nccl nvidia-ml

copies=$PLUGINS/peer_copies.so
quiet "" --op allgather,broadcast --sizes 4K --plugin "$copies"
has PEER_COPIES PEER_COPIES_256K NCCL
quiet "gpus=1" --op allgather --sizes 4K --plugin "$copies" --loopback --default PEER_COPIES
has PEER_COPIES PEER_COPIES_256K
tuned "gpus=1 memory_mib=100" --op allgather --sizes 4K,256K --plugin "$copies" --loopback \
    --default PEER_COPIES
has PEER_COPIES PEER_COPIES_256K
quiet "" --op allreduce --sizes 4K --plugin "$PLUGINS/nccl_allreduce.so" \
    --strategies WRAPPED_NCCL,NCCL,ONESHOT
has WRAPPED_NCCL NCCL ONESHOT

# With an epilogue: fused if a kernel does that, after the sum as a kernel of its own, and the sum alone; the
# rows have the gain of the fusion.
quiet "" --op allreduce --sizes 4K --fusion RESIDUAL_RMS_NORM --hidden-size 64 --launches 2 \
    --out "$WORK/fused" --plugin "$PLUGINS/nccl_allreduce.so" --strategies WRAPPED_NCCL,NCCL,ONESHOT
# way STRATEGY EPILOGUE
way() {
    grep -A 1 "\"strategy\": \"$1\"" "$WORK/out" | grep -q "\"epilogue\": \"$2\"" ||
        fail "$1 has no time $2"
}
for strategy in WRAPPED_NCCL NCCL ONESHOT; do
    way "$strategy" separate
    way "$strategy" alone
done
way ONESHOT fused
printed out '"fusion_gain": [0-9]'
number='[0-9][0-9.]*'
rows=$WORK/fused/benchmark.tp2.sm90.csv
head -n 1 "$rows" | grep -q ',separate (us),alone (us)' || fail "no columns of the ways"
grep -q "^2,bfloat16,4096,32,64,ONESHOT,RESIDUAL_RMS_NORM,.*,$number,$number\$" "$rows" ||
    fail "a fused row lacks the times of the others"
for strategy in PLUGIN_WRAPPED_NCCL NCCL; do
    grep -q "^2,bfloat16,4096,32,64,$strategy,RESIDUAL_RMS_NORM,.*,,$number\$" "$rows" ||
        fail "no row of $strategy with the epilogue behind it"
    grep -q "^2,bfloat16,4096,32,64,$strategy,NONE," "$rows" || fail "no row of $strategy alone"
done

# A library with a fused call of its own: all three ways have a time; a wrong fused result leaves out that
# way.
# fused PLUGIN
fused() {
    tuned "" --op allreduce --sizes 4K --fusion RESIDUAL_RMS_NORM --hidden-size 64 \
        --plugin "$PLUGINS/$1.so" --strategies NOTED,NCCL
    way NCCL separate
}
fused fused
[ ! -s "$WORK/err" ] || fail "a library with its own fusion: unexpected message"
for each in fused separate alone; do way NOTED $each; done
fused fused_weight
printed err "NOTED: wrong result: out"
[ "$(wc -l <"$WORK/err")" = 1 ] || fail "forgotten weights: not one line"
fused fused_beyond
printed err "NOTED: .*touched memory beyond a buffer\|NOTED: writes beyond a buffer"

# A candidate that works only in place is called in place, as NCCL defines it for each op, and the rows have
# it; a pair's sum likewise. A candidate that supports both is timed out of place.
quiet "" --op allreduce,reducescatter --sizes 1K,4K --plugin "$PLUGINS/in_place.so" \
    --strategies PLACED,NCCL
[ "$(grep -c '"place": "in"' "$WORK/out")" = 4 ] || fail "no rows in place"
quiet "" --op allgather,broadcast --sizes 1K,4K --plugin "$PLUGINS/bad_placed.so"
[ "$(grep -c '"place": "in"' "$WORK/out")" = 4 ] || fail "no gathered rows in place"
[ "$(grep -c '"place": "out"' "$WORK/out")" = 4 ] || fail "no gathered rows out of place"
tuned "" --op allreduce --sizes 4K --fusion RESIDUAL_RMS_NORM --hidden-size 64 \
    --plugin "$PLUGINS/in_place.so" --strategies PLACED,NCCL
way PLACED separate
way PLACED alone
for op in allreduce reducescatter; do
    bench "" --plugin "$PLUGINS/in_place.so" --op "$op" -b 512 -e 512 --mode graph --samples 3 \
        --strategies PLACED,NCCL
    printed out "PLACED  *$above_0 .* 0\$"
done
bench "" --plugin "$PLUGINS/in_place.so" -b 512 -e 512 -n 3 --strategies PLACED,NCCL
printed out "PLACED .*works only in place, and back-to-back calls"

# By hand, too; a line reports calls that cannot be captured.
graph="-b 512 -e 512 --mode graph --samples 3"
# shellcheck disable=SC2086
bench "" --plugin "$PLUGINS/nccl_allreduce.so" $graph --strategies WRAPPED_NCCL,NCCL
printed out "WRAPPED_NCCL  *$above_0 .* 0\$"
# shellcheck disable=SC2086
bench "" --plugin "$copies" --op allgather $graph --strategies PEER_COPIES,NCCL
printed out "PEER_COPIES .*cannot be captured into a graph"

tuned "" --op allreduce --sizes 4K --plugin "$HOST_PLUGIN"
printed err "none of its candidates works on memory of GPUs; it is left out"
has NCCL ONESHOT
