# Shared by tests of ranks that are processes, one for each GPU, with stand-ins that really share memory.
# Sourced, after lib_stand_in.sh; STAND_INS_PROCESSES: the folder of an NCCL for processes.
# shellcheck shell=sh disable=SC2034,SC2154

# place: makes a folder of libraries in WORK, by which the test's processes are found. mpirun's files in /tmp
# and /dev/shm lie apart: other mpirun processes remove the shared folder when they end. The bench has no
# files there.
place() {
    only cuda nvidia-ml
    cp "$STAND_INS_PROCESSES"/libnccl.so.2 "$folder"
    TMPDIR=$(mktemp -d)
    export TMPDIR
    trap 'rm -rf "$TMPDIR"' EXIT
    export OMPI_MCA_btl_vader_backing_directory="$WORK/shm"
    mkdir -p "$WORK/shm"
}
place
# in_place COMMAND...: runs it in a place of its own, for commands that run beside others.
in_place() {
    place
    "$@"
}
. "$SOURCE/tests/mpirun.sh"
mpirun="$mpirun -n"

# processes COUNT SETTINGS OPTION...: the bench's output in $WORK/out and $WORK/err, its exit code in $status.
processes() {
    count=$1 settings=$2
    shift 2
    status=0
    # shellcheck disable=SC2086
    STAND_IN=$settings LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 200 \
        $mpirun "$count" "$BENCH-mpi" --workspace 64K --arena 1M -b 512 -e 512 --hidden-size 64 --samples 2 \
        --budget 0.03 "$@" \
        >"$WORK/out" 2>"$WORK/err" || status=$?
}

# reason STRATEGY TEXT: expects this reason in place of a time.
reason() {
    grep "^# .* $1  *" "$WORK/out" | grep -qF "$2" || fail "$1: not printed: $2"
}

# ended CODE TEXT COUNT SETTINGS OPTION...: runs processes; expects this exit code and one line, and that no
# process is left.
ended() {
    wanted_status=$1 wanted=$2
    shift 2
    processes "$@"
    [ "$status" = "$wanted_status" ] || fail "$*: exit code $status"
    [ "$(grep -c "^gentables-bench: " "$WORK/err")" = 1 ] || fail "$*: not one line"
    printed err "^gentables-bench: $wanted"
    nothing_is_left "$*"
}

# Processes of this program with this test's folder of libraries.
nothing_is_left() {
    for process in /proc/[0-9]*; do
        if tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qF "LD_LIBRARY_PATH=$folder" &&
            [ "$(readlink "$process/exe")" = "$BENCH-mpi" ]; then
            fail "$1: process ${process#/proc/} is left"
        fi
    done
    for file in "$WORK"/shm/*; do
        if [ -e "$file" ]; then fail "$1: shared memory is left: $file"; fi
    done
}

own="ONESHOT TWOSHOT ONESHOT_NATIVE TWOSHOT_NATIVE"
switch="ONESHOT_MULTICAST NVLS_ONESHOT NVLS_TWOSHOT"
nccl="NCCL NCCL_SYMMETRIC"
