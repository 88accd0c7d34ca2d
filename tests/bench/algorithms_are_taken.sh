#!/bin/sh
# The algorithm of coll/tuned that a strategy names makes all calls of that strategy, and no other one makes
# any: of every strategy and op in generator/lists.lua. Control variables are written and read by Open MPI's own
# functions as by MPI's tools interface. Nothing is timed.
. "$(dirname "$0")/lib.sh"
mpirun --version | grep -q 'Open MPI) 4\.' || exit 77 # whose functions taken.c names
$mpirun -n 1 "$CONTROL_VARIABLES" own || fail "control variables by Open MPI's own functions"
$mpirun -n 1 "$CONTROL_VARIABLES" tools || fail "control variables by MPI's tools interface"

# function_of OP NUMBER: as Open MPI 4 numbers them (coll_tuned_OP_algorithm).
function_of() {
    case "$1 $2" in
    "allreduce 1") echo allreduce_intra_basic_linear ;;
    "allreduce 2") echo allreduce_intra_nonoverlapping ;;
    "allreduce 3") echo allreduce_intra_recursivedoubling ;;
    "allreduce 4") echo allreduce_intra_ring ;;
    "allreduce 5") echo allreduce_intra_ring_segmented ;;
    "allreduce 6") echo allreduce_intra_redscat_allgather ;;
    "allgather 1") echo allgather_intra_basic_linear ;;
    "allgather 2") echo allgather_intra_bruck ;;
    "allgather 3") echo allgather_intra_recursivedoubling ;;
    "allgather 4") echo allgather_intra_ring ;;
    "reducescatter 1") echo reduce_scatter_block_basic_linear ;;
    "reducescatter 2") echo reduce_scatter_block_intra_recursivedoubling ;;
    "reducescatter 3") echo reduce_scatter_block_intra_recursivehalving ;;
    "alltoall 1") echo alltoall_intra_basic_linear ;;
    "alltoall 2") echo alltoall_intra_pairwise ;;
    "alltoall 3") echo alltoall_intra_bruck ;;
    "alltoallv 1") echo alltoallv_intra_basic_linear ;;
    "alltoallv 2") echo alltoallv_intra_pairwise ;;
    "broadcast 1") echo bcast_intra_basic_linear ;;
    "broadcast 3") echo bcast_intra_pipeline ;;
    "broadcast 6") echo bcast_intra_binomial ;;
    esac
}

cat >"$WORK/algorithms.lua" <<'END'
for _, strategy in ipairs(require("lists").strategies) do
  if strategy.ompi_algorithm then print(strategy.name, "allreduce", strategy.ompi_algorithm) end
  for op, number in pairs(strategy.ompi_algorithms or {}) do print(strategy.name, op, number) end
end
END
"$GENTABLES" lua "$WORK/algorithms.lua" | sort >"$WORK/algorithms"
[ "$(wc -l <"$WORK/algorithms")" -ge 20 ] || fail "algorithms: $(cat "$WORK/algorithms")"

# Each sample is a call; calls of the set-up, which are Open MPI's own choice, are few. Four ranks: for two
# Open MPI has algorithms of its own.
export TAKEN="$WORK/taken"
mpirun="$mpirun -x TAKEN -x LD_PRELOAD=$TAKEN_LIBRARY"
samples=20
for strategy in $(cut -f 1 "$WORK/algorithms" | uniq); do
    : >"$WORK/requests"
    : >"$WORK/expected"
    while read -r name op number; do
        [ "$name" = "$strategy" ] || continue
        splits=""
        [ "$op" != alltoallv ] || splits=" splits=2:1"
        echo "measure id=1 op=$op dtype=float32 fusion=NONE num_tokens=16 hidden_size=1024 budget_us=1e9" \
            "min_samples=$samples max_samples=$samples seed=1 mode=eager strategies=$strategy$splits" \
            >>"$WORK/requests"
        function_of "$op" "$number" >>"$WORK/expected"
    done <"$WORK/algorithms"
    [ "$(wc -l <"$WORK/expected")" = "$(wc -l <"$WORK/requests")" ] ||
        fail "$strategy: which function? $(grep "^$strategy" "$WORK/algorithms")"
    rm -f "$TAKEN"
    run 4 --serve <"$WORK/requests" >"$WORK/out" 2>&1 || fail "$strategy: $(cat "$WORK/out")"
    sort "$WORK/expected" >"$WORK/sorted"
    awk -v few=$samples '$2 >= few { print $1 }' "$TAKEN" | sort | cmp -s - "$WORK/sorted" ||
        fail "$strategy: taken were $(cat "$TAKEN"), not $(cat "$WORK/sorted"); $(cat "$WORK/out")"
done
