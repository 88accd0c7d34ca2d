#!/bin/sh
# Choices that are predicted for more nodes than were measured have a mark in each format, and in reports and
# diffs; other formats have none of them. Tables of the same rows without predictions are the
# same without these cells.
. "$(dirname -- "$0")/lib.sh"
needs python3

counts="2 3 4"

# laws ARCH: STRATEGY:LAW of each strategy; R a ring, D recursive doubling, H recursive halving.
laws() {
    case $1 in
    host) echo MPI:D MPI_RECURSIVE_DOUBLING:D MPI_RING:R MPI_HAN:R ;;
    host-mpich) echo MPI:D MPICH_RECURSIVE_DOUBLING:D MPICH_REDUCE_SCATTER_ALLGATHER:H ;;
    *) echo NCCL_SYMMETRIC:D NCCL_RING_LL128_16CH:R ;;
    esac
}

# measured ARCH FOLDER: rows by Hockney's model, of two ranks on each node, and their spec.
measured() {
    mkdir -p "$2"
    for nodes in $counts; do
        awk -v nodes="$nodes" -v laws="$(laws "$1")" -v header="$header" 'BEGIN {
            count = split(laws, law, " ")
            print header ",low (us),high (us),mode,nodes,ranks_per_node"
            doublings = nodes == 4 ? 2 : 1
            steps["D"] = volume["D"] = doublings
            steps["R"] = 2 * (2 * nodes - 1); volume["R"] = steps["R"] / (2 * nodes)
            steps["H"] = 2 * doublings; volume["H"] = 2 * (1 - 1 / 2 ^ doublings)
            for (i = 0; i < 6; i++) for (s = 1; s <= count; s++) {
                split(law[s], part, ":")
                time = 20 * steps[part[2]] + 2048 * 4 ^ i / 100 * volume[part[2]]
                printf "%d,bfloat16,%d,%d,1024,%s,NONE,allreduce,%.4f,%.4f,%.4f,eager,%d,2\n", 2 * nodes,
                    2048 * 4 ^ i, 4 ^ i, part[1], time, 0.99 * time, 1.01 * time, nodes
            }
        }' >"$2/benchmark.tp$((2 * nodes)).nodes$nodes.$1.csv"
    done
    strategies=$(laws "$1" | sed 's/\([A-Z0-9_]*\):[A-Z]/"\1",/g')
    cat >"$2/spec.lua" <<END
return { arch = "$1", tp = { 4, 6, 8 }, nodes = { 2, 3, 4 }, ranks_per_node = 2, $3
  fusions = { "NONE" }, hidden_sizes = { 1024 }, num_tokens = { 1, 4, 16, 64, 256, 1024 },
  strategies = { $strategies } }
END
}

for arch in host host-mpich sm90; do
    measured $arch "$WORK/$arch" 'predict = { 8 },'
    measured $arch "$WORK/plain.$arch" ''
    mpich_defaults "$WORK/$arch"
    succeeds generate --data-dir "$WORK/$arch" --arch $arch --out "$WORK/tables/$arch"
    has '^gentables: .*: TP 16 on 8 nodes bfloat16 NONE: 6 of 6 shapes predicted' "$WORK/stderr"
    has '^gentables: .*: Held out: TP 8 on 4 nodes predicted from 2, 3 nodes: mean regret' "$WORK/stderr"
    mpich_defaults "$WORK/plain.$arch"
    succeeds generate --data-dir "$WORK/plain.$arch" --arch $arch --out "$WORK/plain.tables/$arch"
    ! grep -rq predicted "$WORK/plain.tables/$arch" || die "predictions without the key in the spec"
    succeeds check --data-dir "$WORK/$arch" --arch $arch --tables "$WORK/tables/$arch"
done
host=$WORK/tables/host plain=$WORK/plain.tables/host

# ---- table.csv: a basis and an interval; the measured cells are as without predictions

[ "$(grep -c ',predicted,8,[0-9.]*,[0-9.]*$' "$host/table.csv")" = 6 ] || die "not 6 predicted cells"
[ "$(grep -c '^host,16,.*,uncertain,.*,predicted,8,' "$host/table.csv")" = 6 ] || die "not all are uncertain"
sed 's/,,$//; /predicted/d; s/,low (us),high (us)$//' "$host/table.csv" >"$WORK/measured.csv"
cmp "$plain/table.csv" "$WORK/measured.csv"
awk -F, '/predicted/ { if (!($19 < $10 + 0 && $10 + 0 < $20)) exit 1 }' "$host/table.csv" ||
    die "a time is not within its interval"
has '^host,16,NONE,bfloat16,allreduce,eager,1024,1,MPI,' "$host/table.csv"
has '^host,16,NONE,bfloat16,allreduce,eager,1024,1024,MPI_RING,' "$host/table.csv"

# A table is read back with its marks; its changes are no evidence.
ends_with 1 "$GENTABLES" diff "$plain/table.csv" "$host/table.csv"
has 'TP 16 on 8 nodes .*, 1024 tokens: unmeasured -> MPI_RING \(predicted\)' "$WORK/stdout"
sed 's/1024,1024,MPI_RING,/1024,1024,MPI,/' "$host/table.csv" >"$WORK/other.csv"
ends_with 1 "$GENTABLES" diff "$WORK/other.csv" "$host/table.csv"
has 'MPI \(predicted\) -> MPI_RING \(predicted\): no times of both' "$WORK/stdout"
ends_with 1 "$GENTABLES" diff --format json "$WORK/other.csv" "$host/table.csv"
has '"new_predicted": true' "$WORK/stdout"

# ---- the C header and thresholds.json

cat >"$WORK/ask.c" <<'END'
#include <stdio.h>
#include <string.h>
#include "allreduce_table.h"
static int wrong;
static void expect(int nodes, int tp, const char *name, int measured, int predicted) {
    enum gentables_host_fusion none = GENTABLES_HOST_FUSION_NONE;
    const char *got = gentables_host_strategy_name(gentables_host_select_nodes(nodes, tp, none, 1024, 1024));
    if (strcmp(got, name) == 0 &&
        gentables_host_is_measured_nodes(nodes, tp, none, 1024, 1024) == measured &&
        gentables_host_is_predicted_nodes(nodes, tp, none, 1024, 1024) == predicted)
        return;
    printf("%d nodes, TP %d: %s, not %s\n", nodes, tp, got, name);
    wrong++;
}
int main(void) {
    expect(4, 8, "MPI_RING", 1, 0);
    expect(8, 16, "MPI_RING", 0, 1);
    expect(8, 8, "MPI", 0, 0);
    expect(16, 32, "MPI", 0, 0);
    return wrong != 0;
}
END
for language in "c -std=c99" "c++ -std=c++11"; do
    # shellcheck disable=SC2086
    ends_with 0 "${CC:-cc}" -x $language -pedantic -Wall -Wextra -Wconversion -Werror -I "$host" \
        "$WORK/ask.c" -o "$WORK/ask"
    ends_with 0 "$WORK/ask"
done
has '/\* 1024: .*MPI_RING .* predicted \*/' "$host/allreduce_table.h"
! grep -q is_predicted "$plain/allreduce_table.h" || die "is_predicted in a header without predictions"

# A strategy with thresholds.
measured host "$WORK/custom" 'predict = { 8 },'
sed -i 's/MPI_HAN/TWOLEVEL/' "$WORK"/custom/*
succeeds generate --data-dir "$WORK/custom" --arch host --out "$WORK/tables/custom"
cat >"$WORK/ask.py" <<END
from gentables_thresholds import Thresholds
known = Thresholds.load("$WORK/tables/custom/thresholds.json")
assert known.is_predicted(16, nodes=8) and not known.is_predicted(8, nodes=4)
assert known.strategy(16, 2 << 20, nodes=8) != known.fallback
END
PYTHONPATH=$SOURCE/python ends_with 0 python3 "$WORK/ask.py"
has '"predicted_bytes": \[2048, 2097152\]' "$WORK/tables/custom/thresholds.json"

# ---- formats of one MPI or NCCL

for file in ompi_rules ompi_rules_v2 ompi_han; do
    has '^16 # ranks: predicted from fewer nodes$' "$host/$file.nodes8.conf"
    ! grep -q predicted "$host/$file.nodes4.conf" || die "a mark of measured rules"
done
has '^[0-9]* 4 0 0 # ring$' "$host/ompi_rules.nodes8.conf"
[ ! -e "$host/ompi_rules.nodes8.json" ] || die "predicted rules without a mark"
cmp "$plain/ompi_rules.nodes4.json" "$host/ompi_rules.nodes4.json"
cmp "$WORK/plain.tables/host-mpich/mpich_selection.json" "$WORK/tables/host-mpich/mpich_selection.json"
has '^- mpich_selection.json has no predicted choices: there is no room for a mark' \
    "$WORK/tables/host-mpich/report.md"

# A call without a line gets one channel, so a file cannot leave it to NCCL.
cmp "$WORK/plain.tables/sm90/nccl_tuner.csv" "$WORK/tables/sm90/nccl_tuner.csv"
has '^- nccl_tuner.csv has no predicted choices: a file cannot leave a call' "$WORK/tables/sm90/report.md"
has '^sm90,16,.*,NCCL_RING_LL128_16CH,.*,predicted,8,' "$WORK/tables/sm90/table.csv"

# ---- reports

has '^18 of 24 cells were measured, 6 predicted from fewer nodes\.' "$host/report.md"
has '^- TP 16 on 8 nodes bfloat16 NONE: 6 of 6 shapes predicted' "$host/report.md"
has '^- Held out: TP 8 on 4 nodes' "$host/report.md"
has 'MPI_RING\^\?|RING.*\^\?' "$host/report.md"
has 'TP 16 on 8 nodes \(predicted\)' "$host/best_strategy.svg"
succeeds report --data-dir "$WORK/host" --arch host --out "$WORK/pages" --xlsx
has 'TP 16 on 8 nodes, NONE, .*; predicted from fewer nodes' "$WORK/pages/report.html"
has 'Held out: TP 8 on 4 nodes' "$WORK/pages/report.html"
cat >"$WORK/workbook.py" <<END
import zipfile
book = zipfile.ZipFile("$WORK/pages/report.host.xlsx")
sheets = [book.read(name).decode() for name in book.namelist() if "sheets/" in name]
assert sum(sheet.count(">predicted<") for sheet in sheets) == 6
assert any(">basis<" in sheet and ">low (\u00b5s)<" in sheet for sheet in sheets)
END
ends_with 0 python3 "$WORK/workbook.py"
