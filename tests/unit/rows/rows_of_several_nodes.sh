#!/bin/sh
# Rows of several nodes: a file for each number of nodes; in a table they are cells of their own.
. "$SOURCE/tests/lib.sh"

data=$WORK/data
one=$data/benchmark.tp4.host.csv
two=$data/benchmark.tp4.nodes2.host.csv

header=$header,mode

# measured STRATEGY TIME [NODES RANKS_PER_NODE]: a row of TP 4.
measured() {
    echo "4,bfloat16,2048,1,1024,$1,NONE,allreduce,$2,eager${3+,$3,$4}"
}

# nodes_rows FILE LINE...: a file with the columns of nodes.
nodes_rows() {
    (
        header=$header,nodes,ranks_per_node
        rows "$@"
    )
}

# refuses PATTERN LINE...: expects that a file of TP 4 on two nodes with these lines is rejected.
refuses() {
    pattern=$1
    shift
    nodes_rows "$two" "$(measured MPI 9 2 2)" "$@"
    rejects "$pattern" generate --data-dir "$data" --arch host --out "$WORK/none" --formats table
    [ ! -e "$WORK/none" ] || die "something was written"
}

# lines FILE COUNT: expects that number of lines.
lines() {
    [ "$(wc -l <"$1")" = "$2" ] || die "$1 has other than $2 lines"
}

# Each number of nodes has its own choice; that of one node is as it is without the others.
rows "$one" "$(measured ONESHOT 2)" "$(measured MPI 5)"
succeeds generate --data-dir "$data" --arch host --out "$WORK/single" --formats table
nodes_rows "$two" "$(measured ONESHOT 60 2 2)" "$(measured MPI 50 2 2)"
succeeds generate --data-dir "$data" --arch host --out "$WORK/both" --formats table
lines "$WORK/both/table.csv" 3
for choice in 'ONESHOT,2[.].*,1' 'MPI,50[.].*,2'; do
    grep -q "^host,4,NONE,bfloat16,allreduce,eager,1024,1,$choice\$" "$WORK/both/table.csv" || die "$choice"
done
head -n 2 "$WORK/both/table.csv" | sed 's/,nodes$//; s/,1$//' | cmp - "$WORK/single/table.csv" ||
    die "other bytes for one node"

# A table is read back, and cells of other nodes are other cells.
succeeds diff "$WORK/both/table.csv" "$WORK/both/table.csv"
ends_with 1 "$GENTABLES" diff "$WORK/single/table.csv" "$WORK/both/table.csv"
grep -q 'TP 4 on 2 nodes NONE bfloat16 allreduce' "$WORK/stdout" || die "diff does not name the nodes"
sed 's/,2$/,3/' "$WORK/both/table.csv" >"$WORK/three.csv"
rejects 'three.csv:3: nodes is a whole number above 0 that divides world_size' diff "$WORK/three.csv" \
    "$WORK/both/table.csv"

# merge writes a file for each number of nodes, as they were.
succeeds merge "$one" "$two" --out "$WORK/merged"
succeeds merge "$two" --out "$WORK/of_two.csv"
cmp "$WORK/of_two.csv" "$WORK/merged/benchmark.tp4.nodes2.host.csv" || die "other rows of two nodes"
head -n 1 "$WORK/merged/benchmark.tp4.nodes2.host.csv" | grep -q ',nodes,ranks_per_node$' || die "columns"
head -n 1 "$WORK/merged/benchmark.tp4.host.csv" | grep -q nodes && die "nodes in a file of one node"
succeeds generate --data-dir "$WORK/merged" --arch host --formats table
cmp "$WORK/merged/table.csv" "$WORK/both/table.csv" || die "another table of the merged rows"
rejects 'of_four.csv: the rows are of TP 4, 4 on 2 nodes; name a folder' merge "$one" "$two" \
    --out "$WORK/of_four.csv"
rejects 'benchmark.tp4.nodes4.host.csv: the rows are of TP 4 on 2 nodes' merge "$two" \
    --out "$WORK/benchmark.tp4.nodes4.host.csv"

# spec.lua selects the placements.
spec() {
    echo "return { arch = 'host', tp = { 4 }, hidden_sizes = { 1024 }, num_tokens = { 1 }, $1 }" \
        >"$data/spec.lua"
}
spec 'nodes = { 2 }, fusions = { "NONE" }, table = { mode = "eager" }'
succeeds generate --data-dir "$data" --arch host --out "$WORK/chosen" --formats table
one_line 'benchmark.tp4.host.csv: left out: spec.lua has no TP 4$'
lines "$WORK/chosen/table.csv" 2
spec 'nodes = { 1, 4 }'
rm "$one"
ends_with 2 "$GENTABLES" generate --data-dir "$data" --arch host --out "$WORK/none" --formats table
grep -q 'no rows of TP 4, 4 on 4 nodes, which spec.lua requires$' "$WORK/stderr" || die "no placements"
rm "$data/spec.lua"

# Bad input.
refuses ':3: nodes is 4, ranks_per_node 2 and world_size 4; nodes x ranks_per_node must be world_size' \
    "$(measured ONESHOT 3 4 2)"
refuses ':3: nodes is 2, ranks_per_node 0 and world_size 4' "$(measured ONESHOT 3 2 '')"
refuses ':3: nodes is 1, ranks_per_node 2 and world_size 4' "$(measured ONESHOT 3 '' 2)"
refuses ':3: nodes is "0"; it must be a whole number above 0' "$(measured ONESHOT 3 0 4)"
refuses ':3: nodes is 1 in a file of 2 nodes; move the row to benchmark.tp4.[*].csv' \
    "$(measured ONESHOT 3 1 4)"
refuses ':3: nodes is 4 in a file of 2 nodes; move the row to benchmark.tp4.nodes4.[*].csv' \
    "$(measured ONESHOT 3 4 1)"
nodes_rows "$WORK/any.csv" "$(measured MPI 9 2 2)" "$(measured MPI 9 4 1)"
rejects 'any.csv:3: nodes is 4, but 2 in line 2; put each into a file of its own' merge --arch host \
    "$WORK/any.csv" --out "$WORK/joined"
