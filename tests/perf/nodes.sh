#!/bin/sh
# An allreduce between nodes: how close the best strategy comes to the bound of a link, and how much faster it
# and TWOLEVEL are than Open MPI's default and coll/han, as ratios of times of one run.
#
# usage: tests/perf/nodes.sh BUILD [NODES] [RANKS_PER_NODE] [RATE]      default: 4 2 100mbit
#   Nodes are namespaces of this machine with links of RATE (tests/system/nodes/nodes.sh): all share its
#   processors, so for small messages and fast links the processors are measured, not the links.
#   The bound is the time in which two nodes send 2 (nodes - 1) / nodes times the message to each other at
#   once, the minimum of an allreduce (link.c). A size that fits in the burst of the link, 32 KiB, has none.
#   FROM, TO, FACTOR and BUDGET (seconds per size) are those of the bench. No time makes it fail.
set -eu
build=$(cd "${1:?usage: nodes.sh BUILD [NODES] [RANKS_PER_NODE] [RATE]}" && pwd)
nodes=${2:-4}
ranks_per_node=${3:-2}
rate=${4:-100mbit}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

if [ -z "${NODES_FOLDER:-}" ]; then
    exec sh "$here/../system/nodes/nodes.sh" "$nodes" "$rate" sh "$here/nodes.sh" "$build" "$nodes" \
        "$ranks_per_node" "$rate"
fi

# mpirun_on NODES RANKS_PER_NODE: the command line of mpirun.
mpirun_on() {
    cat >"$TMPDIR/command.lua" <<'END'
local nodes, ranks_per_node, hostfile = tonumber(arg[1]), tonumber(arg[2]), arg[3]
print(table.concat(require("conversation.launcher").command(nodes * ranks_per_node, 1, nil,
  { nodes = nodes, ranks_per_node = ranks_per_node, hostfile = hostfile }), " "))
END
    "$build/bin/gentables" lua "$TMPDIR/command.lua" "$1" "$2" "$NODES_FOLDER/hosts"
}

export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
folder=$(mktemp -d -p /tmp) # which all nodes have
trap 'rm -rf "$folder"' EXIT
mpicc -O2 "$here/link.c" -o "$folder/link"
from=${FROM:-4096} to=${TO:-16777216} factor=${FACTOR:-4}
sizes="" bytes=""
size=$from
while [ "$size" -le "$to" ]; do
    sizes="$sizes $size"
    bytes="$bytes $((2 * (nodes - 1) * size / nodes))"
    size=$((size * factor))
done
# The host file has all nodes; the ranks of the link are on the first two.
head -n 2 "$NODES_FOLDER/hosts" >"$NODES_FOLDER/two"
# shellcheck disable=SC2086
link=$($(mpirun_on 2 1 | sed "s|$NODES_FOLDER/hosts|$NODES_FOLDER/two|") "$folder/link" $bytes |
    awk '{ printf "%s ", $2 }')
strategies=MPI,MPI_HAN,TWOLEVEL,TWOLEVEL_SHARDED,MPI_RECURSIVE_DOUBLING,MPI_RING,MPI_SEGMENTED_RING
strategies=$strategies,MPI_RABENSEIFNER

$(mpirun_on "$nodes" "$ranks_per_node") "$build/bin/gentables-bench" -d float32 -b "$from" -e "$to" \
    -f "$factor" --budget "${BUDGET:-4}" --timeout 120 --strategies "$strategies" |
    awk -v rate="$rate" -v sizes="$sizes" -v link="$link" '
    /^#/ { if (NR == 1) print $0 ", links of " rate; next }
    {
        size = $1; name = $5; time = $6
        times[size, name] = time
        if (!(size in best) || time < best[size]) { best[size] = time; who[size] = name }
        if (name ~ /^TWOLEVEL/ && (!(size in ours) || time < ours[size])) ours[size] = time
    }
    END {
        count = split(sizes, of, " ")
        split(link, bound, " ")
        printf "%10s %11s %11s %11s %11s %-22s %10s %8s %10s %8s\n", "size (B)", "bound (us)", "MPI (us)", \
            "MPI_HAN", "best", "", "bound/best", "MPI/best", "MPI/2level", "HAN/2level"
        for (i = 1; i <= count; i++) {
            s = of[i]
            printf "%10d %11.1f %11.1f %11.1f %11.1f %-22s %10.2f %8.2f %10.2f %8.2f\n", s, bound[i], \
                times[s, "MPI"], times[s, "MPI_HAN"], best[s], who[s], bound[i] / best[s], \
                times[s, "MPI"] / best[s], times[s, "MPI"] / ours[s], times[s, "MPI_HAN"] / ours[s]
        }
    }'
