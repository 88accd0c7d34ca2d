#!/bin/sh
# Runs the programs that read our files (Open MPI, MPICH, UCC, PyTorch's Inductor): at every measured size and
# at the borders between, each must do what the file asks for. Uses the Open MPI of this machine, and every
# program in the Debians that GENTABLES_READERS lists, separated by colons (debians.sh makes them).
. "$SOURCE/tests/readers/lib.sh"
real=$SOURCE/tests/readers/real

# Rows of 2 to 4 ranks in $WORK/KIND, with another best strategy at each size, and the plan of choices.
sizes='16 256 4096 65536 1048576'
asked_sizes=$(for size in $sizes; do echo "$size $((4 * size)) $((4 * size + 4))"; done | tr '\n' ' ')
planned() { # KIND PREFIX-OF-THE-ALGORITHM STRATEGY...: rows and a plan
    kind=$1 prefix=$2
    shift 2
    mkdir -p "$WORK/$kind"
    for ranks in 2 3 4; do
        number=$ranks
        echo "$header" >"$WORK/$kind/benchmark.tp$ranks.host.csv"
        for size in $sizes; do
            number=$(((number * 31 + 7) % 1009)) place=0
            for strategy; do
                time=5
                if [ $((number % $#)) = $place ]; then
                    time=1
                    name=$(echo "${strategy#*_}" | tr '[:upper:]' '[:lower:]')
                    echo "$ranks $size $prefix$name" >>"$WORK/$kind.plan"
                fi
                place=$((place + 1))
                echo "$ranks,float32,$size,1,$((size / 4)),$strategy,NONE,allreduce,$time"
            done
        done >>"$WORK/$kind/benchmark.tp$ranks.host.csv"
    done
}
planned ompi '' MPI_BASIC_LINEAR MPI_NONOVERLAPPING MPI_RECURSIVE_DOUBLING MPI_RING MPI_SEGMENTED_RING \
    MPI_RABENSEIFNER
planned ucc ucc_ UCC_KNOMIAL UCC_SRA_KNOMIAL UCC_DBT UCC_RING
planned mpich '' MPICH_RECURSIVE_DOUBLING MPICH_REDUCE_SCATTER_ALLGATHER
succeeds generate --data-dir "$WORK/ompi" --arch host --out "$WORK/ompi" --formats ompi,ompi-v2,ompi-json
succeeds generate --data-dir "$WORK/ucc" --arch host --out "$WORK/ucc" --formats ucc
cp "$SOURCE/tests/unit/proving/allreduces.c" "$real/sums.c" "$SOURCE/tests/readers/every_collective.c" "$WORK"

# mpirun's own files lie apart: other mpirun processes remove the shared folder when they end.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
BIND=$WORK:$TMPDIR:$SOURCE:$(dirname -- "$(dirname -- "$GENTABLES")")
UCX_LOG_LEVEL=error OMPI_MCA_mpi_yield_when_idle=1 HWLOC_COMPONENTS=-pci,-linuxio
export BIND UCX_LOG_LEVEL OMPI_MCA_mpi_yield_when_idle HWLOC_COMPONENTS

# there COMMAND...: runs it in $root, or on this machine if that is empty.
# shellcheck disable=SC2086
there() {
    if [ -n "$root" ]; then sh "$real/enter.sh" "$root" "$@"; else "$@"; fi
}
has_there() { [ -x "$root/usr/bin/$1" ]; }

# compiled NAME MPICC: $WORK/NAME of NAME.c.
compiled() { ends_with 0 there "$2" -O1 "$WORK/$1.c" -o "$WORK/$1"; }

# proves FORMAT FILE PLAN: every choice is obeyed, and a wrong one, which the ranks read after gentables read
# the file, is noticed.
# shellcheck disable=SC2086
proves() {
    format=$1 file=$2 plan=$3
    set --
    for ranks in 2 3 4; do
        enter="" && [ -z "$root" ] || enter="sh $real/enter.sh $root"
        ends_with 0 "$GENTABLES" prove --json "$file" -- $enter $run $ranks "$WORK/allreduces" $asked_sizes
        cp "$stdout" "$WORK/proof.$ranks.json"
        set -- "$@" "$WORK/proof.$ranks.json"
    done
    ends_with 0 "$GENTABLES" lua "$real/proof_counts.lua" "$plan" "$@"
    read -r asked obeyed library <"$stdout"
    counts "$format" "${library% *}, run" "${library##* }${with:+ with $with}" "$asked" "$obeyed"
    cp "$file" "$WORK/changing"
    printf '#!/bin/sh\ncp "%s/changed" "%s/changing"\nexec %s\n' "$WORK" "$WORK" \
        "$enter $run 2 $WORK/allreduces $asked_sizes" >"$WORK/changes"
    sed "$wrong" "$file" >"$WORK/changed"
    if cmp -s "$file" "$WORK/changed"; then die "no choice was changed"; fi
    ends_with 1 "$GENTABLES" prove "$WORK/changing" -- sh "$WORK/changes"
    has 'NOT OBEYED$' "$stdout"
}

# The rules that this version of Open MPI reads, and UCC by its coll/ucc.
open_mpi() {
    version=$(there "$mpirun" --version | sed -n 's/^[^ ]* (Open MPI) //p')
    wrong='0,/^0 [3-6] /s//0 2 /' with=''
    compiled allreduces "$mpicc"
    case $version in
    [45].*) proves ompi "$WORK/ompi/ompi_rules.conf" "$WORK/ompi.plan" ;;
    esac
    case $version in
    4.1.[89] | 4.1.[1-9][0-9] | 5.0.[7-9] | 5.0.[1-9][0-9])
        proves ompi-v2 "$WORK/ompi/ompi_rules_v2.conf" "$WORK/ompi.plan"
        ;;
    [6-9].*)
        wrong='0,/"alg": "[rs][a-z_]*"/s//"alg": "nonoverlapping"/'
        proves ompi-json "$WORK/ompi/ompi_rules.json" "$WORK/ompi.plan"
        ;;
    esac
    ucc=$(find "$root/usr/lib" -name 'libucc.so.1.*' | head -n 1)
    if [ -n "$ucc" ] && there ompi_info | grep -q 'MCA coll: ucc'; then
        with="UCC $(there dpkg-query -f '${Version}' -W libucc1)"
        wrong='0,/:@knomial/s//:@ring/'
        proves ucc "$WORK/ucc/ucc.conf" "$WORK/ucc.plan"
    fi
}

# MPICH does not show its algorithms. But if a file names one that is none of an allreduce, its calls abort.
# So each call must abort without its algorithm, and not without the other one.
mpich() {
    compiled sums mpicc.mpich
    compiled every_collective mpicc.mpich
    library=$(there ldd "$WORK/sums" | sed -n 's/^.*libmpich\.so[^ ]* => \([^ ]*\) .*$/\1/p')
    rm -f "$WORK/mpich/mpich_defaults.json"
    succeeds generate --data-dir "$WORK/mpich" --arch host --out "$WORK/mpich" --formats mpich \
        --mpich "$root$library"
    file=$WORK/mpich/mpich_selection.json asked=0
    for ranks in 2 3 4; do
        ends_with 0 with_selection "$file" $ranks "$WORK/every_collective"
        has '^done$' "$stdout"
    done
    for algorithm in recursive_doubling reduce_scatter_allgather; do
        ends_with 0 python3 "$real/without_algorithm.py" "$file" "MPIR_Allreduce_intra_$algorithm" \
            "$WORK/without_$algorithm.json"
    done
    while read -r ranks size planned; do
        for algorithm in recursive_doubling reduce_scatter_allgather; do
            # mpirun's exit code may be 0 after an abort
            with_selection "$WORK/without_$algorithm.json" "$ranks" "$WORK/sums" "$size" \
                >"$stdout" 2>"$stderr" || :
            if grep -q '^done$' "$stdout"; then runs=yes; else runs=no; fi
            if [ "$algorithm" = "$planned" ]; then wanted=no; else wanted=yes; fi
            [ $runs = $wanted ] || die "$ranks ranks, $size bytes without $algorithm: $runs, not $wanted"
        done
        asked=$((asked + 1))
    done <"$WORK/mpich.plan"
    version=$(there mpichversion | sed -n 's/^MPICH Version: *//p')
    counts mpich 'MPICH, run' "$version" "$asked" "$asked"
}
with_selection() { # FILE RANKS PROGRAM ARGUMENT...
    MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=$1 there timeout 100 mpirun.mpich -n "$2" "$3" ${4:+"$4"} \
        </dev/null
}

inductor() {
    python3 "$SOURCE/tests/unit/frameworks/inductor_rules.py" rows "$WORK/pytorch"
    succeeds generate --data-dir "$WORK/pytorch" --arch sm90 --out "$WORK/pytorch" --formats pytorch
    profile=$WORK/pytorch/inductor_profile.json
    ask_inductor() {
        there env PYTHONDONTWRITEBYTECODE=1 python3 "$SOURCE/tests/unit/frameworks/inductor_rules.py" \
            ask_installed "$1"
    }
    ends_with 0 ask_inductor "$profile"
    grep '^asked ' "$stdout"
    sed '0,/"dur": [0-9.]*/s//"dur": 1.5/' "$profile" >"$WORK/pytorch/wrong.json"
    ends_with 1 ask_inductor "$WORK/pytorch/wrong.json"
    has AssertionError "$stderr"
}

parts=0
root=
if command -v mpicc >"$stdout" && mpirun --version >"$stdout" 2>&1 && grep -q 'Open MPI' "$stdout"; then
    mpicc=mpicc mpirun=mpirun run="$("$GENTABLES" lua "$SOURCE/tests/mpirun.lua" transport) -n"
    open_mpi
    parts=1
fi
IFS=:
# shellcheck disable=SC2086
set -- ${GENTABLES_READERS:-}
unset IFS
for root; do
    if has_there mpirun.openmpi; then
        mpicc=mpicc.openmpi mpirun=mpirun.openmpi
        run="mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none -n"
        open_mpi
    fi
    if has_there mpirun.mpich; then mpich; fi
    if [ -d "$root/usr/lib/python3/dist-packages/torch" ] && there python3 -c \
        'import torch._inductor.fx_passes.profile_guided_estimation' >"$stdout" 2>&1; then inductor; fi
done
[ $# -gt 0 ] || skip "no GENTABLES_READERS, so Open MPI of this machine alone was asked ($parts)"
