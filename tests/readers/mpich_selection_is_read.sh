#!/bin/sh
# mpich_selection.json: an algorithm that supports only MPI's own operations has that condition, unmeasured
# sizes get the default; MPICH, if installed, accepts the file.
. "$(dirname -- "$0")/lib.sh"
mkdir -p "$WORK/data"
for tp in 2 4; do
    {
        echo "$header"
        for size in 256 65536; do
            for strategy in MPICH_RECURSIVE_DOUBLING MPICH_REDUCE_SCATTER_ALLGATHER MPI; do
                case $size$strategy in
                256*DOUBLING | 65536*ALLGATHER) time=2 ;;
                *) time=5 ;;
                esac
                echo "$tp,float32,$size,1,$((size / 4)),$strategy,NONE,allreduce,$time"
            done
        done
    } >"$WORK/data/benchmark.tp$tp.host.csv"
done
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK" --formats mpich
made=$WORK/mpich_selection.json
has '"comm_size<=3": \{"algorithm=MPIR_Allreduce_intra_recursive_doubling"' "$made"
has '"is_op_built_in=yes": \{"algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather"' "$made"
if command -v python3 >"$stdout"; then
    ends_with 0 python3 -c 'import json, sys
sizes = json.load(open(sys.argv[1]))["collective=allreduce"]["comm_type=intra"]
assert list(sizes) == ["comm_size<=1", "comm_size<=2", "comm_size<=3", "comm_size<=4", "comm_size=any"], sizes
assert list(sizes["comm_size<=2"]) == ["avg_msg_size<=4096", "avg_msg_size=any"], sizes' "$made"
fi
grep -v MPICH "$WORK/data/benchmark.tp2.host.csv" >"$WORK/none.csv"
rm "$WORK"/data/*
mv "$WORK/none.csv" "$WORK/data/benchmark.tp2.host.csv"
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/data" --arch host --out "$WORK" --formats mpich
one_line 'mpich_selection.json: no row measured under MPICH; build the bench with it'

if command -v mpicc.mpich >"$stdout" && command -v mpirun.mpich >"$stdout"; then
    ends_with 0 mpicc.mpich "$SOURCE/tests/unit/formats/calls_of_rank.c" -o "$WORK/calls"
    MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=$made
    export MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE
    ends_with 0 timeout 200 mpirun.mpich -n 2 "$WORK/calls" 256 65536
    has '^65536 1 16384$' "$stdout" # an operation of its own: by recursive doubling
fi
