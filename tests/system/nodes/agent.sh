#!/bin/sh
# agent.sh NODE COMMAND...: runs a command on a node of nodes.sh, as a remote shell does.
set -eu
node=$1
shift
if ! pid=$(cat "$NODES_FOLDER/$node.pid" 2>/dev/null) || ! [ -d "/proc/$pid" ]; then
    echo "agent.sh: connect to host $node: No route to host" >&2
    exit 255
fi
exec nsenter --target "$pid" --mount --net --uts --ipc --pid -- sh -c "$*"
