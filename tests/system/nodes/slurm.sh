#!/bin/sh
# Slurm on the nodes of nodes.sh, which sources this file: munge and the controller on the head node, a slurmd
# on each node. Its configuration, keys and states are below /run, which belongs to the nodes.
# shellcheck shell=sh

SLURM_CONF=$NODES_FOLDER/slurm.conf
export SLURM_CONF

# write_configuration COUNT: any number of processors per node, whatever the machine has, because nodes share
# them. Slurm's way to follow processes needs no control groups; slurmd needs their file system.
write_configuration() {
    cat >"$SLURM_CONF" <<END
ClusterName=nodes
SlurmctldHost=head
SlurmUser=root
AuthType=auth/munge
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldPidFile=$NODES_FOLDER/slurmctld.pid
SlurmdPidFile=$NODES_FOLDER/%n.slurmd.pid
SlurmdSpoolDir=$NODES_FOLDER/spool/%n
StateSaveLocation=$NODES_FOLDER/state
TmpFS=$TMPDIR
KillWait=1
NodeName=node[1-$1] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=node[1-$1] Default=YES MaxTime=INFINITE State=UP
END
    echo "CgroupPlugin=cgroup/v1" >"$NODES_FOLDER/cgroup.conf"
}

start_munge() {
    mkdir -p /run/munge "$NODES_FOLDER/munge"
    chmod 755 /run/munge
    head -c 1024 /dev/urandom >"$NODES_FOLDER/munge/key"
    chmod 600 "$NODES_FOLDER/munge/key"
    munged --force --key-file="$NODES_FOLDER/munge/key" --seed-file="$NODES_FOLDER/munge/seed" \
        --pid-file="$NODES_FOLDER/munge/pid" --log-file="$NODES_FOLDER/munge/log"
}

# start_slurm COUNT: returns when all nodes may be allocated.
start_slurm() {
    mkdir -p "$NODES_FOLDER/spool" "$NODES_FOLDER/state"
    write_configuration "$1"
    start_munge
    slurmctld -D >"$NODES_FOLDER/head.log" 2>&1 &
    for pid in "$NODES_FOLDER"/node*.pid; do
        node=$(basename "$pid" .pid)
        "$NODES_AGENT" "$node" "mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/freezer &&
            exec slurmd -D -N $node" >>"$NODES_FOLDER/$node.log" 2>&1 &
    done
    tries=0
    until [ "$(sinfo --noheader --states=idle --format=%D 2>/dev/null)" = "$1" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ]; then
            echo "slurm.sh: the nodes are not idle; the messages of Slurm:" >&2
            cat "$NODES_FOLDER"/*.log >&2
            return 1
        fi
        sleep 0.1
    done
}
