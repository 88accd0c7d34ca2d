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
# shellcheck disable=SC2086
if STAND_IN="gpus=1" LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 200 $mpirun \
    -n 2 "$BENCH-mpi" --loopback -b 256 -e 256 >"$WORK/out" 2>"$WORK/err"; then
    fail "processes that share a GPU are accepted"
fi
grep -q "gentables-bench: unavailable: shared GPU" "$WORK/err" || fail "no message about a shared GPU"

# own_gpu: like a launcher that shows each rank only its own GPU.
# shellcheck disable=SC2086
if STAND_IN="own_gpu same_gpu" LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 200 $mpirun \
    -n 2 "$BENCH-mpi" -b 256 -e 256 >"$WORK/out" 2>"$WORK/err"; then
    fail "processes that see the same GPU are accepted"
fi
grep -q "gentables-bench: unavailable: shared GPU" "$WORK/err" || fail "no message about the same GPU"

for setting in "has_fabric fabric:fabric" "has_fabric:file" ":file" "no_files:ipc" "own_gpu:file" \
    "own_gpu has_fabric fabric:fabric" "own_gpu no_files:ipc" "own_gpu no_hidden_peers:none"; do
    settings=${setting%:*} wanted=${setting#*:}
    # shellcheck disable=SC2086
    STAND_IN="gpus=3 $settings" LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 200 $mpirun \
        -n 3 "$HANDLES" >"$WORK/out" 2>"$WORK/err" || fail "$setting"
    grep -qx "$wanted" "$WORK/out" || fail "$setting"
done

# Each user can send to an abstract address.
if [ "$(id -u)" != 0 ]; then
    echo "skipped: only root can start a process of another user"
    exit 77
fi
# shellcheck disable=SC2086
STRANGER=65534 STAND_IN="gpus=3" LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 200 $mpirun \
    -n 3 "$HANDLES" >"$WORK/out" 2>"$WORK/err" || fail "messages of another user"
grep -qx file "$WORK/out" || fail "messages of another user"
