#!/bin/sh
# node.sh NODE: process 1 of a node of nodes.sh, in namespaces of its own. It prints a line when it is
# ready. Then it only waits for processes that have lost their parent.
set -eu
hostname "$1"
mount --make-rprivate /
mount -t sysfs none /sys
mount -t tmpfs none /dev/shm
mount -t tmpfs none "$TMPDIR"
ip link set lo up
echo ready
sleep infinity >/dev/null &
exec >/dev/null
wait
