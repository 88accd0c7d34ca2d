#!/bin/sh
# The documented commands without flags: generate and plot find ./data, else the current folder; generate
# takes the SM version of the rows, of several that of this machine's GPUs, and all TP files. Without rows and
# GPUs it prints how to measure.
. "$SOURCE/tests/lib.sh"
. "$SOURCE/tests/unit/surroundings/lib.sh"
program_with "$WORK/program/bin"
table=gen_heuristic_code/generated_lookup_table.cpp
mkdir "$WORK/here"
cd "$WORK/here"

# Neither rows nor GPUs.
rejects 'no --data-dir DIR, no benchmark.* in ./data or the current folder, and no GPU to measure' generate
rejects 'plot needs --data-dir DIR, or KIND FILE; no benchmark' plot
rejects 'no rows of sm90 in ./data' generate --arch sm90
[ -z "$(ls)" ] || die "something was written"

# ./data
mkdir data
cp "$golden"/benchmark.tp*.csv data
ends_with 0 "$GENTABLES" generate --sm_version 90 --data_dir data
mv "data/$table" expected
rm -r data/gen_heuristic_code
succeeds generate
has '^rows      data: sm90, TP 2, 4$' "$stdout"
cmp "data/$table" expected || die "another table without flags"
rm -r data/gen_heuristic_code
succeeds generate --data_dir data
cmp "data/$table" expected || die "another table with --data_dir alone"
rejects 'no GPU to measure' generate --save_csv_dir rows

# Rows of a second SM version: the machine's, or an option, decides.
for tp in 2 4; do cp "data/benchmark.tp$tp.sm90.csv" "data/benchmark.tp$tp.sm100.csv"; done
rejects 'data: has rows of sm100, sm90; --arch with one' generate
gpus 8 100
succeeds generate
has '^rows      data: sm100, TP 2, 4$' "$stdout"
has 'AllReduceBestStrategyTableSM100' "data/$table"
succeeds generate --sm_version 90
cmp "data/$table" expected || die "another table with --sm_version alone"

# The current folder. A folder ./data without rows is not in the way.
cd data
mkdir data
rm -r gen_heuristic_code
succeeds generate --sm_version 90
has '^rows      \.: sm90, TP 2, 4$' "$stdout"
cmp "$table" ../expected || die "another table in the current folder"

# CPU ranks: the usual tables, beside the rows.
mkdir ../host
cd ../host
cp "$SOURCE/tables/host/benchmark.tp2.host.csv" "$SOURCE/tables/host/benchmark.tp2.host.json" .
succeeds generate --formats c
has '^written   ./allreduce_table.h' "$stdout"
rejects '--enable_auto requires --sm_version' generate --enable_auto

# Pictures of all archs, where the documented tool draws them.
command -v gnuplot >/dev/null || skip "no gnuplot"
cd ..
succeeds plot
for sm in 90 100; do
    for kind in heatmap best_strategy strategy_difference_heatmap; do
        [ -s "data/viz/NONE/benchmark.tp2.sm${sm}_$kind.png" ] || die "no $kind of sm$sm"
    done
done
