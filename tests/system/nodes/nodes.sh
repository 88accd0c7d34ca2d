#!/bin/sh
# Several nodes on one machine, for tests.
#
#   sh nodes.sh [slurm] COUNT RATE COMMAND...
#
# runs COMMAND on a head node, `head`, beside nodes node1 to nodeCOUNT. Each node has processes, a host name,
# /dev/shm and a folder of temporary files of its own, and a link to a common bridge: an Ethernet of RATE
# (such as 100mbit) both ways, or unlimited (-). All share the file system and the processors. The environment
# of COMMAND has
#
#   NODES_AGENT   a program that runs `NODES_AGENT NODE COMMAND...`, as ssh does; Open MPI's mpirun uses it
#   NODES_FOLDER  NODE.pid: process 1 of a node, which ends the node if it is killed; hosts: a host file for
#                 mpirun; NODE.log: messages of a node
#   TMPDIR        a folder that is empty and another one on each node
#
# and with `slurm` there is a partition of all nodes, for sbatch, salloc and srun --mpi=pmix.
#
# All of it lives in namespaces of processes, mounts and networks below the first process of this script. The
# kernel ends them with it, however it ends. Nothing outside is changed.
#
# Exit code 77: such nodes cannot exist here; it prints the reason as `skipped: REASON`.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
network=10.77.0

skip() {
    echo "skipped: no nodes on this machine: $1"
    exit 77
}

# Skips the test unless the programs exist and namespaces are allowed.
check() {
    for program in ip tc unshare nsenter; do
        command -v "$program" >/dev/null || skip "it has no $program"
    done
    if [ "$1" = slurm ]; then
        for program in munged slurmctld slurmd srun; do
            command -v "$program" >/dev/null || skip "it has no Slurm"
        done
    fi
    unshare --mount --net --pid --fork --mount-proc ip link add nodes type bridge 2>/dev/null ||
        skip "network namespaces are not allowed"
}

# add_node NUMBER RATE: starts a node and links it to the bridge.
add_node() {
    node=node$1
    mkfifo "$NODES_FOLDER/$node.ready"
    unshare --mount --net --uts --ipc --pid --fork --mount-proc --kill-child \
        sh "$here/node.sh" "$node" >"$NODES_FOLDER/$node.ready" 2>"$NODES_FOLDER/$node.log" &
    if ! read -r _ <"$NODES_FOLDER/$node.ready"; then
        echo "nodes.sh: $node does not start: $(cat "$NODES_FOLDER/$node.log")" >&2
        exit 1
    fi
    pid=$(tr -d ' ' <"/proc/$!/task/$!/children")
    echo "$pid" >"$NODES_FOLDER/$node.pid"
    ip link add "$node" type veth peer name eth0 netns "$pid"
    ip link set "$node" master nodes up
    "$NODES_AGENT" "$node" ip addr add "$network.$1/24" dev eth0
    "$NODES_AGENT" "$node" ip link set eth0 up
    if [ "$2" != - ]; then
        tc qdisc add dev "$node" root tbf rate "$2" burst 32k latency 50ms
        "$NODES_AGENT" "$node" tc qdisc add dev eth0 root tbf rate "$2" burst 32k latency 50ms
    fi
    echo "$network.$1 $node" >>"$NODES_FOLDER/etc_hosts"
    echo "$node slots=2" >>"$NODES_FOLDER/hosts"
}

# Mounts of the head node, which all nodes begin with: its own interfaces without any control groups, a /run
# of their own, and the names of the nodes.
mount_own_files() {
    mount --make-rprivate /
    mount -t sysfs none /sys
    mount -t tmpfs none /run
    mkdir -p "$NODES_FOLDER" "$TMPDIR"
    printf '127.0.0.1 localhost\n%s.254 head\n' "$network" >"$NODES_FOLDER/etc_hosts"
    mount --bind "$NODES_FOLDER/etc_hosts" /etc/hosts
    hostname head
}

if [ "${1:-}" != inside ]; then
    slurm=none
    if [ "$1" = slurm ]; then slurm=slurm; shift; fi
    check "$slurm"
    exec unshare --mount --net --uts --ipc --pid --fork --mount-proc --kill-child \
        sh "$0" inside "$slurm" "$@"
fi

slurm=$2 count=$3 rate=$4
shift 4
export NODES_FOLDER=/run/nodes NODES_AGENT="$here/agent.sh" TMPDIR=/run/nodes/tmp
mount_own_files
ip link set lo up
ip link add nodes type bridge
ip addr add "$network.254/24" dev nodes
ip link set nodes up
number=1
while [ "$number" -le "$count" ]; do
    add_node "$number" "$rate"
    number=$((number + 1))
done
export OMPI_MCA_plm_rsh_agent="$NODES_AGENT"
# The nodes have the same processors; ranks of two nodes must not be bound to one of them.
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
if [ "$slurm" = slurm ]; then
    . "$here/slurm.sh"
    start_slurm "$count"
fi
code=0
"$@" || code=$?
exit "$code"
