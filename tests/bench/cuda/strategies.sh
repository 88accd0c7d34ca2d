#!/bin/sh
# Every strategy and epilogue of a GPU bench is verified and timed, with kernels that run on a CPU: with a GPU
# for each rank, and with all ranks on one GPU, in one launch or in a launch for each rank; eager, cold, in
# chains of a graph and back to back.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml
arena=256K # enough for chains of several calls; chains.sh has the longest

small="-b 512 -e 512 --hidden-size 64 --samples 4 --budget 0.03 --emulate-nvfp4"
own="ONESHOT TWOSHOT ONESHOT_NATIVE TWOSHOT_NATIVE"
bench "" --candidates
fusions=$(sed -n 's/^fusion name=//p' "$WORK/out")
for fusion in $fusions; do
    separate=$([ "$fusion" = NONE ] || echo NCCL_UNFUSED)
    # shellcheck disable=SC2086
    all_timed "$own NCCL NCCL_SYMMETRIC $separate" bench "" $small --fusion "$fusion"
done
# shellcheck disable=SC2086
{
    all_timed "$own" bench "gpus=1 module_loading=EAGER" $small --loopback --fusion RESIDUAL_RMS_NORM
    all_timed "$own" bench "gpus=1" $small --streams
    all_timed "$own NCCL NCCL_UNFUSED" bench "" $small --mode graph --fusion RESIDUAL_RMS_NORM_QUANT_FP8
    all_timed "$own" bench "gpus=1" $small --mode graph --loopback
    # A launch for each rank, with as many blocks as fit: blocks of all ranks, twice, because the next launch
    # starts before the previous one has ended. If a GPU holds fewer blocks than it reports, there is an
    # error.
    many="-b 4096 -e 4096 --hidden-size 64 --samples 4 --budget 0.03 --fusion RESIDUAL_RMS_NORM"
    all_timed "$own" bench "gpus=1" $many --streams --mode graph
    for strategy in ONESHOT TWOSHOT; do
        ends 1 "gpus=1 boasts" $many --streams --mode graph --strategies $strategy
        printed err "^stand-in: 32 blocks wait for each other on a GPU that holds 16 at once"
    done
    # Grids are equal on all ranks, though one GPU could hold more blocks than the other.
    all_timed "$own" bench "multiprocessors=8,4" $many
    all_timed "$own" bench "clusters=4,0" $many --hidden-size 1024 -b 4096 -e 4096 --fusion RESIDUAL_RMS_NORM
    # Blocks of a cluster share a token, if two for each occupy at most half of the multiprocessors, and the
    # kernels were compiled for GPUs with clusters.
    token="-b 2048 -e 2048 --hidden-size 1024 --samples 4 --budget 0.03 --emulate-nvfp4"
    for fusion in $fusions; do
        all_timed "ONESHOT ONESHOT_NATIVE" bench "gpus=1" $token --loopback --fusion $fusion
    done
    ends 1 "no_clusters" $token --fusion RESIDUAL_RMS_NORM --strategies ONESHOT
    all_timed ONESHOT bench "no_clusters" $token --strategies ONESHOT
    all_timed ONESHOT bench "no_clusters ptx=80" $token --fusion RESIDUAL_RMS_NORM --strategies ONESHOT
    all_timed "$own NCCL" bench "" $small --mode cold --dtype float32
    all_timed "$own NCCL" bench "" $small --mode cold_graph
    all_timed "$own" bench "gpus=1" $small --mode cold_graph --loopback
    for fusion in $fusions; do
        [ "$fusion" != NONE ] || continue
        all_timed "ONESHOT ONESHOT_EPILOGUE ONESHOT_UNFUSED" bench "gpus=1" $small --loopback --mode graph \
            --fusion $fusion --strategies ONESHOT,ONESHOT_EPILOGUE,ONESHOT_UNFUSED
    done
    # With a GPU for each rank, epilogues are programmatic launches as well.
    ends 1 "no_programmatic" $small --fusion RESIDUAL_RMS_NORM --strategies NCCL_UNFUSED
    all_timed "NCCL_RING_LL_4CH NCCL_TREE_SIMPLE" bench "" $small \
        --strategies NCCL_RING_LL_4CH,NCCL_TREE_SIMPLE
    multicast="ONESHOT_MULTICAST NVLS_ONESHOT NVLS_TWOSHOT"
    all_timed "$multicast" bench "multicast" $small --fusion RESIDUAL_RMS_NORM \
        --strategies "$(echo "$multicast" | tr ' ' ',')"
    all_timed "ONESHOT NCCL" bench "" $small -n 3 # calls in a row
    all_timed "ONESHOT NCCL" bench "" $small -n 3 -w 1 -c 1 -G 1 -J "$WORK/graph.json"
    grep -q "nGpus 1 .* graph: 1\$" "$WORK/out" || fail "the table lacks the mode graph"
    grep -q '"nccl_version":"[0-9.]*".*"ngpus":1,.*"graph":1,.*"device_info":"stand-in GPU"' \
        "$WORK/graph.json" || fail "the JSON lacks the mode: $(head -c 800 "$WORK/graph.json")"
    all_timed "NCCL NCCL_SYMMETRIC" bench "gpus=1" --ranks 1 $small
    # Data sets then begin at any address, which our own kernels do not support.
    all_timed NCCL bench "" $small --hidden-size 100 -b 400 -e 400
    printed out "ONESHOT .*hidden size x element size is no multiple of 16 bytes"
    all_timed NCCL bench "" $small --hidden-size 1 -b 2 -e 2 # an element
}
