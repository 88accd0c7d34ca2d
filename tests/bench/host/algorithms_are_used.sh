#!/bin/sh
# All calls of a strategy use the algorithm of coll/tuned that its name promises, and no calls of other
# strategies use it: for every strategy and op in generator/lists/lists.lua. Open MPI's own functions write
# and read the control variables of MPI's tools interface. Nothing is timed.
. "$(dirname "$0")/lib.sh"
mpirun --version | grep -q 'Open MPI) 4\.' || exit 77 # taken.c has the functions of this version
$mpirun -n 1 "$CONTROL_VARIABLES" own || fail "control variables differ by Open MPI's own functions"
$mpirun -n 1 "$CONTROL_VARIABLES" tools || fail "control variables differ by MPI's tools interface"

# function_of STRATEGY OP: the function of Open MPI 4 for this strategy.
function_of() {
    case "$2 $1" in
    "allreduce MPI_BASIC_LINEAR") echo allreduce_intra_basic_linear ;;
    "allreduce MPI_NONOVERLAPPING") echo allreduce_intra_nonoverlapping ;;
    "allreduce MPI_RECURSIVE_DOUBLING") echo allreduce_intra_recursivedoubling ;;
    "allreduce MPI_RING") echo allreduce_intra_ring ;;
    "allreduce MPI_SEGMENTED_RING") echo allreduce_intra_ring_segmented ;;
    "allreduce MPI_RABENSEIFNER") echo allreduce_intra_redscat_allgather ;;
    "allgather MPI_BASIC_LINEAR") echo allgather_intra_basic_linear ;;
    "allgather MPI_BRUCK") echo allgather_intra_bruck ;;
    "allgather MPI_RECURSIVE_DOUBLING") echo allgather_intra_recursivedoubling ;;
    "allgather MPI_RING") echo allgather_intra_ring ;;
    "reducescatter MPI_BASIC_LINEAR") echo reduce_scatter_block_basic_linear ;;
    "reducescatter MPI_RECURSIVE_DOUBLING") echo reduce_scatter_block_intra_recursivedoubling ;;
    "reducescatter MPI_RECURSIVE_HALVING") echo reduce_scatter_block_intra_recursivehalving ;;
    "alltoall MPI_BASIC_LINEAR") echo alltoall_intra_basic_linear ;;
    "alltoall MPI_PAIRWISE") echo alltoall_intra_pairwise ;;
    "alltoall MPI_BRUCK") echo alltoall_intra_bruck ;;
    "alltoallv MPI_BASIC_LINEAR") echo alltoallv_intra_basic_linear ;;
    "alltoallv MPI_PAIRWISE") echo alltoallv_intra_pairwise ;;
    "broadcast MPI_BASIC_LINEAR") echo bcast_intra_basic_linear ;;
    "broadcast MPI_PIPELINE") echo bcast_intra_pipeline ;;
    "broadcast MPI_BINOMIAL") echo bcast_intra_binomial ;;
    esac
}

cat >"$WORK/algorithms.lua" <<'END'
for _, strategy in ipairs(require("lists.lists").strategies) do
  if strategy.ompi_algorithm then print(strategy.name, "allreduce") end
  for op in pairs(strategy.ompi_algorithms or {}) do print(strategy.name, op) end
end
END
"$GENTABLES" lua "$WORK/algorithms.lua" | sort >"$WORK/algorithms"
[ "$(wc -l <"$WORK/algorithms")" -ge 20 ] || fail "algorithms: $(cat "$WORK/algorithms")"

# Each sample is a call; the set-up makes few calls, by Open MPI's own choice. Four ranks: with two, Open MPI
# uses other algorithms.
export TAKEN="$WORK/taken"
mpirun="$mpirun -x TAKEN -x LD_PRELOAD=$TAKEN_LIBRARY"
samples=20
for strategy in $(cut -f 1 "$WORK/algorithms" | uniq); do
    : >"$WORK/requests"
    : >"$WORK/expected"
    while read -r name op; do
        [ "$name" = "$strategy" ] || continue
        splits=""
        [ "$op" != alltoallv ] || splits=" splits=2:1"
        echo "measure id=1 op=$op dtype=float32 fusion=NONE num_tokens=16 hidden_size=1024 budget_us=1e9" \
            "min_samples=$samples max_samples=$samples seed=1 mode=eager strategies=$strategy$splits" \
            >>"$WORK/requests"
        function_of "$strategy" "$op" >>"$WORK/expected"
    done <"$WORK/algorithms"
    [ "$(wc -l <"$WORK/expected")" = "$(wc -l <"$WORK/requests")" ] ||
        fail "$strategy: which function? $(grep "^$strategy" "$WORK/algorithms")"
    rm -f "$TAKEN"
    run 4 --serve <"$WORK/requests" >"$WORK/out" 2>&1 || fail "$strategy: $(cat "$WORK/out")"
    sort "$WORK/expected" >"$WORK/sorted"
    sed -n 's/^ompi_coll_base_//p' "$TAKEN" | awk -v few=$samples '$2 >= few { print $1 }' | sort |
        cmp -s - "$WORK/sorted" ||
        fail "$strategy: taken were $(cat "$TAKEN"), not $(cat "$WORK/sorted"); $(cat "$WORK/out")"
done

# A table by hand prepares only its strategies: MPI has a communicator of its own, ONESHOT has none.
for strategy in MPI ONESHOT; do
    rm -f "$TAKEN"
    run 2 -b 256 -e 256 --strategies $strategy --budget 0.01 >"$WORK/out" 2>&1 || fail "$(cat "$WORK/out")"
    case $strategy in MPI) expected=1 ;; *) expected= ;; esac
    [ "$(sed -n 's/^MPI_Comm_dup //p' "$TAKEN")" = "$expected" ] ||
        fail "$strategy alone: $(cat "$TAKEN")"
done
