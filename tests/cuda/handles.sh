#!/bin/sh
# Ranks that are processes share memory by fabric handles, where these work; else by file descriptors; else
# by CUDA IPC.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda
for setting in "has_fabric fabric:fabric" "has_fabric:file" ":file" "no_files:ipc"; do
    settings=${setting%:*} wanted=${setting#*:}
    root=$([ "$(id -u)" != 0 ] || echo --allow-run-as-root)
    # shellcheck disable=SC2086
    STAND_IN="gpus=3 $settings" LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} timeout 60 mpirun $root \
        --oversubscribe --bind-to none -n 3 "$HANDLES" >"$WORK/out" 2>"$WORK/err" || fail "$setting"
    grep -qx "$wanted" "$WORK/out" || fail "$setting"
done
