# shellcheck shell=sh
# Shared by the tests of gentables prove; sourced. Needs Open MPI 4. Makes $rules and other files in
# $WORK/tables and $WORK/installed, and $WORK/allreduces.
. "$SOURCE/tests/readers/lib.sh"
needs mpicc mpirun pgrep
mpirun --version >"$stdout" 2>&1 || skip "mpirun does not run"
grep -q 'Open MPI) 4\.' "$stdout" || skip "no Open MPI 4" # the classic rules, and names of parameters

mkdir -p "$WORK/data"
best_of() { # SIZE: the fastest strategy in the rows below
    case $1 in 256) echo MPI_BASIC_LINEAR ;; 4096) echo MPI ;; 65536) echo MPI_RING ;; esac
}
for tp in 2 4; do
    {
        echo "$header"
        for size in 256 4096 65536; do
            for strategy in MPI MPI_BASIC_LINEAR MPI_RING MPI_RECURSIVE_DOUBLING; do
                time=5
                [ "$strategy" != "$(best_of $size)" ] || time=1
                echo "$tp,float32,$size,1,$((size / 4)),$strategy,NONE,allreduce,$time"
            done
        done
    } >"$WORK/data/benchmark.tp$tp.host.csv"
done
{
    echo "world_size,library,setting,strategy,size,time (us),low (us),high (us),launches"
    for size in 256 65536; do
        echo "2,4.1.4,default,MPI,$size,10,9,11,3"
        for strategy in MPI MPI_RECURSIVE_DOUBLING; do
            echo "2,4.1.4,btl_vader_eager_limit=12345,$strategy,$size,$((7 - ${#strategy} / 4)),1,9,3"
        done
    done
} >"$WORK/data/transport.tp2.host.csv"
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/tables" --install-prefix "$WORK/installed"
mpicc -O1 "$SOURCE/tests/unit/proving/allreduces.c" -o "$WORK/allreduces" >"$stdout" 2>"$stderr" ||
    die "no compiler"
# shellcheck disable=SC2034 # for the scripts that source this
rules=$WORK/tables/ompi_rules.conf
cd "$WORK"
# mpirun's own files lie apart: other mpirun processes remove the shared folder when they end.
TMPDIR=$(mktemp -d)
# a rank that waits would keep a core from the others
OMPI_MCA_mpi_yield_when_idle=1
export TMPDIR OMPI_MCA_mpi_yield_when_idle
trap 'rm -rf "$TMPDIR"' EXIT
run="$("$GENTABLES" lua "$SOURCE/tests/mpirun.lua" transport) -n" # and Open MPI's own decisions

# proves CODE FILE RANKS ARGUMENT...: the exit code of prove with the program and these arguments.
# shellcheck disable=SC2086
proves() {
    code=$1 file=$2 ranks=$3
    shift 3
    ends_with "$code" "$GENTABLES" prove "$file" -- $run "$ranks" "$WORK/allreduces" "$@"
}
# row RANKS BYTES ASKED RAN WORD: the output has this row of one call.
row() { has "^ *$1 +$2 +1 +$3 +$4 *$5\$" "$stdout"; }

