#!/bin/sh
# With the flags of TensorRT-LLM's generator: its file in its place, byte for byte if its answer is right,
# ours if it is wrong; if nothing can be measured, one line.
. "$SOURCE/tests/readers/lib.sh"
needs python3
table=gen_heuristic_code/generated_lookup_table.cpp
data=$WORK/data

# drop_in OPTION...: on the CSVs in $data.
drop_in() {
    succeeds generate --data_dir "$data" --sm_version 90 "$@"
}

python3 "$SOURCE/tests/perf/make_rows.py" "$data" small
cp -r "$data" "$WORK/oracle"
python3 "$SOURCE/tests/unit/formats/heuristic.py" "$WORK/oracle" 90
drop_in --save_csv_dir "$WORK/unused"
cmp "$data/$table" "$WORK/oracle/$table" || die "another table"
[ ! -e "$WORK/unused" ] || die "swept although there was data"
[ "$(ls "$data")" = "$(ls "$WORK/oracle")" ] || die "more than its table was written"

# AUTO never wins; its cost is printed.
for tp in 2 4 8; do
    sed -n 's/,ONESHOT,\(.*,\)[^,]*$/,AUTO,\10.0001/p' "$data/benchmark.tp$tp.sm90.csv" >"$WORK/auto"
    cat "$WORK/auto" >>"$data/benchmark.tp$tp.sm90.csv"
done
drop_in --enable_auto
cmp "$data/$table" "$WORK/oracle/$table" || die "AUTO changed the table"
has "^AUTO, the call through the incumbent's lookup, took 0.00 times .* mean of 1260 cells" "$stdout"

# Rows of other operations do not compete, and a winner without a number leaves the runner-up.
for tp in 2 4 8; do
    sed -n 's/,NCCL,\(.*\),allreduce,[^,]*$/,NCCL,\1,gemm_allreduce,0.0001/p
        s/,TWOSHOT,\(.*,\)[^,]*$/,SYMM_MEM,\10.0001/p' "$data/benchmark.tp$tp.sm90.csv" >"$WORK/others"
    cat "$WORK/others" >>"$data/benchmark.tp$tp.sm90.csv"
done
drop_in
cmp "$data/$table" "$WORK/oracle/$table" || die "others' rows changed the table"

# A TP size without rows is reported, and the others still have a table.
rm "$data/benchmark.tp8.sm90.csv"
drop_in
one_line 'no .*/benchmark.tp8.sm90.csv: its cells are 8'
python3 "$SOURCE/tests/unit/formats/fragment.py" "$data" 90 >"$WORK/expected"
cmp "$WORK/expected" "$data/$table" || die "another table of TP 2 and 4"

# Options that exclude each other: one line.
rejects 'both name the arch' generate --data_dir "$data" --sm_version 90 --arch sm90
rejects 'a number such as 89 is required' generate --data_dir "$data" --sm_version Hopper
rejects 'requires --sm_version' generate --data_dir "$data" --arch sm90 --enable_auto
