#!/bin/sh
# mpich_selection.json is the selection that MPICH has built in, with our choices for an allreduce. An
# algorithm that supports only MPI's own operations has that condition, and unmeasured sizes keep MPICH's
# choices. MPICH, if installed, does collectives of every kind with the file.
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
made=$WORK/mpich_selection.json

# Without MPICH's own selection there is no file, because MPICH would end programs at other collectives.
rejects 'no .*/data/mpich_defaults.json: MPICH ends programs at .*; generate --mpich LIBRARY keeps' \
    generate --data-dir "$WORK/data" --arch host --out "$WORK" --formats mpich
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/all"
[ ! -e "$WORK/all/mpich_selection.json" ] || die "a selection without other collectives"

# A library has several trees, of which one is for all devices.
mpich_defaults "$WORK"
{
    printf 'ELF\0{"collective=bcast":{"algorithm=MPIDI_POSIX_mpi_bcast":{}}}\0\1{"collective=\0'
    tr -d '\n' <"$WORK/mpich_defaults.json"
    printf '\0\377'
} >"$WORK/libmpich.so"
generates() { succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK" --formats mpich "$@"; }
rejects '"none" is not one of trtllm' generate --data-dir "$WORK/data" --arch host --out "$WORK" \
    --formats none --mpich "$WORK/libmpich.so"
[ ! -e "$WORK/data/mpich_defaults.json" ] || die "an error changed a file"
generates --mpich "$WORK/libmpich.so"
cmp "$WORK/mpich_defaults.json" "$WORK/data/mpich_defaults.json" || die "another tree of the library"
cp "$made" "$WORK/of_library.json"
sed 's/[{,]/&\n   /g' "$WORK/mpich_defaults.json" >"$WORK/generic.json"
generates --mpich "$WORK/generic.json"
cmp "$made" "$WORK/of_library.json" || die "another tree of a JSON file"
generates
succeeds check --data-dir "$WORK/data" --arch host --tables "$WORK" --formats mpich
has '"comm_size<=3": \{"algorithm=MPIR_Allreduce_intra_recursive_doubling"' "$made"
has '"is_op_built_in=yes": \{"algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather"' "$made"
if command -v python3 >"$stdout"; then
    ends_with 0 python3 -c 'import json, sys
tree, default = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
assert list(tree) == list(default) == ["collective=bcast", "collective=allreduce", "collective=barrier"], tree
sizes = tree["collective=allreduce"].pop("comm_type=intra")
leaf = default["collective=allreduce"].pop("comm_type=intra")
assert tree == default, tree
assert list(sizes) == ["comm_size<=1", "comm_size<=2", "comm_size<=3", "comm_size<=4", "comm_size=any"], sizes
assert sizes["comm_size<=1"] == sizes["comm_size<=3"] == sizes["comm_size=any"] == leaf, sizes
assert list(sizes["comm_size<=2"]) == ["avg_msg_size<=4096", "avg_msg_size=any"], sizes' \
        "$made" "$WORK/data/mpich_defaults.json"
fi

# No selection, one without an allreduce, and one that is cut off.
given() { # PATTERN TEXT
    printf '%s' "$2" >"$WORK/bad"
    rejects "bad: $1" generate --data-dir "$WORK/data" --arch host --out "$WORK" --mpich "$WORK/bad"
}
given 'holds no selection' ''
given 'holds no selection' '{"collective=bcast":{"algorithm=MPIR_Bcast_intra_binomial":{}}}'
given 'holds no selection' "$(head -c 200 "$WORK/mpich_defaults.json")"
head -c 200 "$WORK/mpich_defaults.json" >"$WORK/data/mpich_defaults.json"
rejects 'mpich_defaults.json: no selection of MPICH, or cut off' \
    generate --data-dir "$WORK/data" --arch host --out "$WORK" --formats mpich
rm "$WORK/data/mpich_defaults.json"

grep -v MPICH "$WORK/data/benchmark.tp2.host.csv" >"$WORK/none.csv"
cp "$WORK"/data/*.csv "$WORK/all"
rm "$WORK"/data/*
mv "$WORK/none.csv" "$WORK/data/benchmark.tp2.host.csv"
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/data" --arch host --out "$WORK" --formats mpich
one_line 'mpich_selection.json: no row measured under MPICH; build the bench with it'


if command -v mpicc.mpich >"$stdout" && command -v mpirun.mpich >"$stdout"; then
    ends_with 0 mpicc.mpich "$SOURCE/tests/unit/formats/calls_of_rank.c" -o "$WORK/calls"
    ends_with 0 mpicc.mpich "$SOURCE/tests/readers/every_collective.c" -o "$WORK/every_collective"
    library=$(ldd "$WORK/calls" | sed -n 's/^.*libmpich\.so[^ ]* => \([^ ]*\) .*$/\1/p')
    succeeds generate --data-dir "$WORK/all" --arch host --out "$WORK" --formats mpich --mpich "$library"
    MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=$made
    export MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE
    ends_with 0 timeout 200 mpirun.mpich -n 2 "$WORK/calls" 256 65536
    has '^65536 1 16384$' "$stdout" # an operation of its own: by recursive doubling
    for ranks in 2 3 4; do
        ends_with 0 timeout 200 mpirun.mpich -n $ranks "$WORK/every_collective"
        has '^done$' "$stdout"
    done
    # A wrong choice shows that MPICH obeys the file.
    ours='"is_op_built_in=yes": {"algorithm='
    sed "s/${ours}[A-Za-z_]*/${ours}MPIR_Bcast_intra_binomial/" "$made" >"$WORK/wrong.json"
    MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=$WORK/wrong.json
    if timeout 200 mpirun.mpich -n 2 "$WORK/every_collective" >"$stdout" 2>&1; then die "not obeyed"; fi
fi
