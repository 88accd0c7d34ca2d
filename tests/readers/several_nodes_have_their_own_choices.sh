#!/bin/sh
# Of a table of several nodes each format gives each placement its own choices, or lists what it leaves out;
# those of one node are as without the others.
. "$(dirname -- "$0")/lib.sh"
needs python3

placements="1:4 2:2 2:4 4:4" # nodes:ranks

# choices ARCH: the strategies; at the i-th size of a placement the fastest is number (i + nodes + ranks) % 5.
choices() {
    case $1 in
    host) echo MPI ONESHOT TWOSHOT MPI_RING MPI_RECURSIVE_DOUBLING ;;
    host-mpich) echo MPI ONESHOT TWOSHOT MPICH_RECURSIVE_DOUBLING MPICH_REDUCE_SCATTER_ALLGATHER ;;
    *) echo NCCL ONESHOT TWOSHOT NCCL_RING_LL128_16CH NCCL_TREE_LL_8CH ;;
    esac
}

# measured ARCH FOLDER: rows of each placement at 1, 4, 16, 64 and 256 tokens. Of the others, the first is the
# fastest.
measured() {
    mkdir -p "$2"
    for placement in $placements; do
        nodes=${placement%:*} ranks=${placement#*:}
        part=
        [ "$nodes" = 1 ] || part=nodes$nodes.
        awk -v nodes="$nodes" -v ranks="$ranks" -v names="$(choices "$1")" -v header="$header" 'BEGIN {
            count = split(names, name, " ")
            print header ",mode" (nodes > 1 ? ",nodes,ranks_per_node" : "")
            for (i = 0; i < 5; i++) for (s = 0; s < count; s++) {
                time = s == (i + nodes + ranks) % count ? 10 : 20 + 2 * s
                printf "%d,bfloat16,%d,%d,1024,%s,NONE,allreduce,%d,eager", ranks, 2048 * 4 ^ i, 4 ^ i,
                    name[s + 1], time
                print (nodes > 1 ? "," nodes "," ranks / nodes : "")
            }
        }' >"$2/benchmark.tp$ranks.$part$1.csv"
    done
}

# best ARCH NODES RANKS INDEX: the strategy that is the fastest there.
best() {
    # shellcheck disable=SC2046
    set -- $((($4 + $2 + $3) % 5 + 1)) $(choices "$1")
    shift "$1"
    echo "$1"
}

# each ARCH FUNCTION: calls FUNCTION NODES RANKS INDEX TOKENS STRATEGY for each cell.
each() {
    for placement in $placements; do
        index=0
        for tokens in 1 4 16 64 256; do
            "$2" "${placement%:*}" "${placement#*:}" $index $tokens \
                "$(best "$1" "${placement%:*}" "${placement#*:}" $index)"
            index=$((index + 1))
        done
    done
}

for arch in host host-mpich sm90; do
    measured $arch "$WORK/$arch"
    mpich_defaults "$WORK/$arch"
    succeeds generate --data-dir "$WORK/$arch" --arch $arch --out "$WORK/tables/$arch"
    mkdir "$WORK/one.$arch"
    cp "$WORK/$arch/benchmark.tp4.$arch.csv" "$WORK/one.$arch"
    succeeds generate --data-dir "$WORK/one.$arch" --arch $arch --out "$WORK/one.tables/$arch"
done
host=$WORK/tables/host

# ---- table.csv, the C header and thresholds.json

in_table() { has "^host,$2,NONE,bfloat16,allreduce,eager,1024,$4,$5,.*,$1\$" "$host/table.csv"; }
each host in_table

expects() { echo "    expect($1, $2, $4, \"$5\", 1);"; }
{
    cat <<'END'
#include <stdio.h>
#include <string.h>
#include "allreduce_table.h"
static int wrong;
static void expect(int nodes, int tp, int tokens, const char *name, int measured) {
    enum gentables_host_fusion none = GENTABLES_HOST_FUSION_NONE;
    enum gentables_host_strategy choice = gentables_host_select_nodes(nodes, tp, none, 1024, tokens);
    const char *got = gentables_host_strategy_name(choice);
    int is = gentables_host_is_measured_nodes(nodes, tp, none, 1024, tokens);
    int cell = gentables_host_cell_nodes(nodes, tp, none, 1024, tokens);
    int same = nodes != 1 || (gentables_host_select(tp, none, 1024, tokens) == choice &&
                              gentables_host_cell(tp, none, 1024, tokens) == cell);
    if (strcmp(got, name) == 0 && is == measured && (cell >= 0) == measured && same) return;
    printf("%d nodes, TP %d, %d tokens: %s, not %s\n", nodes, tp, tokens, got, name);
    wrong++;
}
int main(void) {
    expect(8, 4, 1, "MPI", 0);
    expect(2, 3, 1, "MPI", 0);
    expect(0, 4, 1, "MPI", 0);
    expect(1, 2, 1, "MPI", 0);
END
    each host expects
    echo '    return wrong != 0; }'
} >"$WORK/ask.c"
for language in "c -std=c99" "c++ -std=c++11"; do
    # shellcheck disable=SC2086
    ends_with 0 "${CC:-cc}" -x $language -pedantic -Wall -Wextra -Wconversion -Werror -I "$host" \
        "$WORK/ask.c" -o "$WORK/ask"
    ends_with 0 "$WORK/ask"
done
! grep -q _nodes "$WORK/one.tables/host/allreduce_table.h" || die "nodes in the header of a table of one node"

asks() { echo "assert known.strategy($2, $4 * 2048, nodes=$1) == '$5', ($1, $2, $4)"; }
{
    echo "from gentables_thresholds import Thresholds"
    echo "known = Thresholds.load('$host/thresholds.json')"
    echo "assert (known.world_sizes(), known.world_sizes(2), known.world_sizes(3)) == ([4], [2, 4], [])"
    echo "assert known.strategy(2, 2048) == known.strategy(4, 2048, nodes=8) == known.fallback"
    each host asks
} >"$WORK/ask.py"
PYTHONPATH=$SOURCE/python ends_with 0 python3 "$WORK/ask.py"

# regret calls these lookups itself; by its rows no choice of theirs loses time.
set --
for rows_file in "$WORK"/host/benchmark.*.csv; do set -- "$@" --rows "$rows_file"; done
for artifact in allreduce_table.h thresholds.json table.csv; do
    succeeds regret --table "$host/$artifact" --json "$@"
    has '"unmeasured": 0' "$WORK/stdout"
    has '"unanswered": 0' "$WORK/stdout"
    ! grep -q '"worst": *[0-9.]*[1-9]' "$WORK/stdout" || die "$artifact loses time: $(cat "$WORK/stdout")"
done

# ---- formats of one MPI or NCCL: the best that they can name is the first if the fastest is another's

algorithm_of() {
    case $1 in
    MPI_RING) echo 4 ;;
    MPI_RECURSIVE_DOUBLING) echo 3 ;;
    *) echo 0 ;;
    esac
}

# The algorithm for a size in a file of rules: the last rule of its communicator size that is not above it.
in_rules() {
    file=$host/ompi_rules.nodes$1.conf
    [ "$1" = 1 ] && file=$host/ompi_rules.conf
    found=$(awk -v ranks="$2" -v size=$(($4 * 2048)) '/# ranks/ { here = $1 == ranks }
        here && $5 == "#" && $1 + 0 <= size { found = $2 } END { print found }' "$file")
    [ "$found" = "$(algorithm_of "$5")" ] || die "$file: TP $2, $4 tokens: $found, not $5"
}
each host in_rules

cat >"$WORK/rules.py" <<END
import json

ALGORITHMS = {"0": "ignore", "3": "recursive_doubling", "4": "ring"}

def find(nodes, file_nodes, ranks, size):
    """The algorithm for a communicator of a job: the first entry and rule that fit."""
    part = "" if file_nodes == 1 else ".nodes%d" % file_nodes
    rules = json.load(open("$host/ompi_rules%s.json" % part))["collectives"]["allreduce"]
    kind = "single-node" if nodes == 1 else "one-per-node" if nodes == ranks else "other"
    for entry in rules:
        fits = entry["comm_size_min"] <= ranks <= entry["comm_size_max"]
        if fits and entry["comm_rank_distribution"] in ("any", kind):
            return next(rule["alg"] for rule in entry["rules"]
                        if rule["msg_size_max"] == "inf" or size <= rule["msg_size_max"])

def check(nodes, ranks, size, algorithm):
    files = [1, 2, 4] if nodes in (1, ranks) else [nodes]
    for file_nodes in files:
        found = find(nodes, file_nodes, ranks, size)
        assert found == ALGORITHMS[algorithm], (nodes, file_nodes, ranks, size, found)

END
asks_rules() { echo "check($1, $2, $4 * 2048, '$(algorithm_of "$5")')"; }
each host asks_rules >>"$WORK/rules.py"
ends_with 0 python3 "$WORK/rules.py"

cat >"$WORK/mpich.py" <<END
import json

def fits(key, ranks, per_node, size):
    name, _, value = key.partition("<=")
    if value == "pow2" or not value:
        return not value and not key.endswith("=no") and not key.startswith("count")
    return {"comm_size": ranks, "comm_avg_ppn": per_node, "avg_msg_size": size}[name] <= int(value)

def check(nodes, ranks, size, algorithm):
    tree = json.load(open("$WORK/tables/host-mpich/mpich_selection.json"))
    tree = tree["collective=allreduce"]["comm_type=intra"]
    while tree:
        key = next(key for key in tree if fits(key, ranks, ranks // nodes, size))
        tree = tree[key]
    assert key == "algorithm=MPIR_Allreduce_intra_" + algorithm, (nodes, ranks, size, key)

check(2, 8, 2048, "recursive_doubling")
check(1, 2, 1 << 20, "recursive_doubling")
END
asks_mpich() {
    case $5 in
    MPICH_REDUCE_SCATTER_ALLGATHER) algorithm=reduce_scatter_allgather ;;
    *) algorithm=recursive_doubling ;; # the first that it can name
    esac
    echo "check($1, $2, $4 * 2048, '$algorithm')"
}
each host-mpich asks_mpich >>"$WORK/mpich.py"
ends_with 0 python3 "$WORK/mpich.py"

in_tuner() {
    case $5 in
    NCCL_TREE_LL_8CH) words=tree,ll,8 ;;
    *) words=ring,ll128,16 ;; # the first that it can name
    esac
    found=$(awk -F, -v nodes="$1" -v ranks="$2" -v size=$(($4 * 2048)) '
        !/^#/ && $7 == nodes && $8 == ranks && size >= $2 + 0 && size <= $3 + 0 {
            print $4 "," $5 "," $6
            exit
        }' "$WORK/tables/sm90/nccl_tuner.csv")
    [ "$found" = $words ] || die "nccl_tuner.csv: $1 nodes, TP $2, $4 tokens: $found, not $words"
}
each sm90 in_tuner
! grep '^allreduce' "$WORK/one.tables/sm90/nccl_tuner.csv" | grep -qv ',-1,4$' || die "nodes of one node"

# The tuner's file is read back as a table with these nodes.
succeeds import "$WORK/tables/sm90/nccl_tuner.csv" --arch sm90 --hidden-size 1024 --out "$WORK/tuner.csv"
read_back() {
    case $5 in
    NCCL_TREE_LL_8CH) name=$5 ;;
    *) name=NCCL_RING_LL128_16CH ;;
    esac
    [ "$3" != 0 ] || has "^sm90,$2,NONE,bfloat16,allreduce,unknown,1024,1,$name,.*,$1\$" "$WORK/tuner.csv"
}
each sm90 read_back

# TensorRT-LLM's table has one node.
cmp "$WORK/one.tables/sm90/generated_lookup_table.cpp" "$WORK/tables/sm90/generated_lookup_table.cpp" ||
    die "TensorRT-LLM's table has choices of several nodes"
has '^  - TP 4 on 2 nodes bfloat16 allreduce eager: it has only one node$' "$WORK/tables/sm90/report.md"
has '^  - its rules distinguish communicators by size only; a job on M nodes' "$host/report.md"
has '^### TP 4 on 4 nodes, NONE$' "$host/report.md"

# The report names the network that the provenance of rows of several nodes records.
cat >"$WORK/network.lua" <<'END'
local provenance, file = require "rows.provenance", require "core.file"
local record = { world_size = 4, arch = "host", machine = { cpu = "a CPU", cores = 2, mpi = "MPI" },
  bench = { compiler = "cc", isa = "none", protocol = 1 }, fingerprint = "f", no_time = {} }
for _, name in ipairs { "tp4", "tp4.nodes2" } do
  local path = ("%s/benchmark.%s.host.csv"):format(arg[1], name)
  assert(provenance.write(path, assert(file.read(path)), record))
  record.nodes = 2
  record.network = provenance.of_network({ { interface = "eth0", mbit_per_s = 1000 } }, { "a", "b" })
end
END
succeeds lua "$WORK/network.lua" "$WORK/host"
succeeds generate --data-dir "$WORK/host" --arch host --out "$WORK/named"
has '^[|] Network of the nodes [|] eth0, 1000 Mbit/s [|]$' "$WORK/named/report.md"
! grep -q Network "$host/report.md" || die "a network of rows without provenance"

# Files of numbers of nodes without rows are named and removed.
rm "$WORK"/host/benchmark.tp4.nodes4.host.csv
ends_with 1 "$GENTABLES" check --data-dir "$WORK/host" --arch host --tables "$host"
grep -q 'ompi_rules.nodes4.conf' "$WORK/stdout" "$WORK/stderr" || die "check is silent about 4 nodes"
rm "$WORK"/sm90/benchmark.tp4.sm90.csv
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/sm90" --arch sm90 --out "$WORK/none" --formats trtllm
grep -q 'no row is of one node' "$WORK/stderr" || die "TensorRT-LLM's table without rows of one node"
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/sm90" --arch all --out "$WORK/none"
has 'no row for customAllReduceUtils.h: its tables are of ranks on one node' "$WORK/stderr"
