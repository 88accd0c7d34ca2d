#!/bin/sh
# The ops other than allreduce on GPUs: by NCCL's calls, eager and in a graph, with even and uneven results.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml
small="-b 512 -e 512 --hidden-size 64 --samples 4 --budget 0.03 --emulate-nvfp4"

for op in allgather reducescatter alltoall alltoallv broadcast; do
    # shellcheck disable=SC2086
    bench "" $small --op $op --dtype float32 --strategies NCCL
    [ "$status" = 0 ] || fail "$op: exit code $status"
    grep -q "^  *[0-9].* float32  *[a-z]*  *NCCL  *$above_0 .* 0\$" "$WORK/out" ||
        fail "$op: NCCL has no time"
    grep -q "^# Out of bounds values : 0 OK" "$WORK/out" || fail "$op: something is wrong"
done
# shellcheck disable=SC2086
bench "" $small --op alltoall --mode graph --strategies NCCL
[ "$status" = 0 ] || fail "alltoall in a graph: exit code $status"
# With uneven results fewer data sets fit on one rank; chains have the same length on all ranks.
bench "" --workspace 64K --arena 512K -b 64K -e 64K --samples 2 --budget 0.01 --dtype float32 --op alltoallv \
    --splits 3:1 --mode graph --strategies NCCL --timeout 20
[ "$status" = 0 ] || fail "uneven results in a graph: exit code $status: $(cat "$WORK/out" "$WORK/err")"

# Ranks without a share send and receive nothing, and empty results need no memory.
for splits in 0:1 3:0; do
    for mode in eager graph; do
        # shellcheck disable=SC2086
        bench "" $small --op alltoallv --splits $splits --mode $mode --strategies NCCL
        [ "$status" = 0 ] || fail "splits $splits, $mode: exit code $status"
        grep -q "^  *[0-9].* NCCL  *$above_0 .* 0\$" "$WORK/out" || fail "splits $splits, $mode: no time"
        grep -q "^# Out of bounds values : 0 OK" "$WORK/out" || fail "splits $splits: something is wrong"
    done
done
