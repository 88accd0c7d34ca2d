#!/bin/sh
# Ranks that are processes share memory by fabric handles if these work, else by file descriptors, else by
# CUDA IPC. They cannot share a GPU.
. "$(dirname "$0")/../lib_stand_in.sh"
only cuda
# mpirun's own files lie apart: other mpirun processes remove the shared folder when they end.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
. "$SOURCE/tests/mpirun.sh"
# started SETTINGS COUNT COMMAND...: starts so many ranks.
started() {
    settings=$1 count=$2
    shift 2
    # shellcheck disable=SC2086
    STAND_IN=$settings LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 200 $mpirun -n "$count" "$@" \
        >"$WORK/out" 2>"$WORK/err"
}
# own_gpu: like a launcher that shows each rank only its own GPU.
for settings in gpus=1 "own_gpu same_gpu"; do
    if started "$settings" 2 "$BENCH-mpi" --loopback -b 256 -e 256; then fail "$settings: it is accepted"; fi
    printed err "gentables-bench: unavailable: shared GPU"
done

for setting in "has_fabric fabric:fabric" "has_fabric:file" ":file" "no_files:ipc" "own_gpu:file" \
    "own_gpu has_fabric fabric:fabric" "own_gpu no_files:ipc" "own_gpu no_hidden_peers:none"; do
    started "gpus=3 ${setting%:*}" 3 "$HANDLES" || fail "$setting"
    grep -qx "${setting#*:}" "$WORK/out" || fail "$setting"
done

# Each user can send to an abstract address.
[ "$(id -u)" = 0 ] || skip "only root can start a process of another user"
export STRANGER=65534
started gpus=3 3 "$HANDLES" || fail "messages of another user"
printed out '^file$'
