#!/bin/sh
# The ops other than allreduce on GPUs: by NCCL's calls, eager and in a graph, with even and uneven results.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml
small="-b 512 -e 512 --hidden-size 64 --samples 4 --budget 0.03 --emulate-nvfp4"

for op in allgather reducescatter alltoall alltoallv broadcast; do
    # shellcheck disable=SC2086
    ends 0 "" $small --op $op --dtype float32 --strategies NCCL
    printed out "^  *[0-9].* float32  *[a-z]*  *NCCL  *$above_0 .* 0\$"
    printed out "^# Out of bounds values : 0 OK"
done
# shellcheck disable=SC2086
ends 0 "" $small --op alltoall --mode graph --strategies NCCL
# With uneven results fewer data sets fit on one rank; chains have the same length on all ranks.
ends 0 "" --workspace 64K --arena 512K -b 64K -e 64K --samples 2 --budget 0.01 --dtype float32 \
    --op alltoallv --splits 3:1 --mode graph --strategies NCCL --timeout 20

# Ranks without a share send and receive nothing, and empty results need no memory.
for splits in 0:1 3:0; do
    for mode in eager graph; do
        # shellcheck disable=SC2086
        ends 0 "" $small --op alltoallv --splits $splits --mode $mode --strategies NCCL
        printed out "^  *[0-9].* NCCL  *$above_0 .* 0\$"
        printed out "^# Out of bounds values : 0 OK"
    done
done
