#!/bin/sh
# Rows without a recorded grid: measured cells are chosen, cells between them are interpolated and marked,
# the others are unmeasured; the command and the artifacts contain the same numbers.
. "$SOURCE/tests/lib.sh"

# The rows of TensorRT-LLM's benchmark on 3 hidden sizes x 5 token counts: without 2048 x 16 and without
# 4096 x 256, the largest message; at 1024 x 64 only ONESHOT has no row.
data=$WORK/data
mkdir "$data"
awk -v header="$header" 'BEGIN {
    print header
    for (h = 1024; h <= 4096; h *= 2) for (t = 1; t <= 256; t *= 4) {
        if (h == 2048 && t == 16 || h == 4096 && t == 256) continue
        printf "2,bfloat16,%d,%d,%d,NCCL,NONE,allreduce,%g\n", 2 * h * t, t, h, 20 + h * t / 1e4
        printf "2,bfloat16,%d,%d,%d,TWOSHOT,NONE,allreduce,%g\n", 2 * h * t, t, h, 9 + h * t / 5e3
        if (h == 1024 && t == 64) continue
        printf "2,bfloat16,%d,%d,%d,ONESHOT,NONE,allreduce,%g\n", 2 * h * t, t, h, 4 + h * t / 1e3
    }
}' >"$data/benchmark.tp2.sm90.csv"

# agrees CELLS MEASURED INTERPOLATED UNMEASURED FOLDER: the table has these numbers of cells, and stderr and
# the artifacts contain them.
agrees() {
    said="of $1 cells $2 are measured, $3 interpolated, $4 unmeasured"
    one_line "$data: the rows of TP 2 have no recorded grid: $said; "
    [ "$(grep -c ',measured$' "$5/table.csv")" = "$2" ] || die "not $2 measured cells"
    [ "$(grep -c ',derived$' "$5/table.csv")" = "$3" ] || die "not $3 interpolated cells"
    [ "$(grep -c ',unmeasured,' "$5/table.csv")" = "$4" ] || die "not $4 unmeasured cells"
    grep -q "the rows of TP 2 have no recorded grid: $said" "$5/allreduce_table.h" || die "not in the header"
    grep -q "^The rows of TP 2 have no recorded grid: $said" "$5/report.md" || die "not in the report"
}
succeeds generate --data-dir "$data" --arch sm90 --out "$WORK/out"
agrees 15 13 1 1 "$WORK/out"
grep -q "put the spec.lua of their sweep beside them" "$stderr" || die "the message has no remedy"
grep -q '^sm90,2,.*,2048,16,[A-Z]*SHOT,.*,derived$' "$WORK/out/table.csv" || die "2048 x 16 not interpolated"
has '^sm90,2,.*,1024,64,TWOSHOT,.*,NCCL,.*,measured$' "$WORK/out/table.csv"
warns "no recorded grid" check --data-dir "$data" --arch sm90 --tables "$WORK/out"
warns "no recorded grid" report --data-dir "$data" --arch sm90 --out "$WORK/page"
grep -q "the rows of TP 2 have no recorded grid" "$WORK/page/report.html" || die "not in the page"

# TensorRT-LLM's own generator interpolates nothing.
succeeds generate --data_dir "$data" --sm_version 90 --formats trtllm,table,c,report --out "$WORK/compatible"
sed -i '/benchmark.tp[48].sm90.csv/d' "$stderr"
agrees 15 13 0 2 "$WORK/compatible"

# Rows in all cells: no message.
awk -F, '$5 != 2048 && $4 != 256' "$data/benchmark.tp2.sm90.csv" >"$WORK/whole.csv"
mv "$WORK/whole.csv" "$data/benchmark.tp2.sm90.csv"
succeeds generate --data-dir "$data" --arch sm90 --out "$WORK/whole"
[ ! -s "$stderr" ] || die "unexpected message"
! grep -q "no recorded grid" "$WORK/whole/report.md" || die "the report mentions it"

# A spec for another arch adds no cells, as an interrupted sweep of an earlier version left it.
echo 'return { arch = "sm89", tp = { 2 }, hidden_sizes = { 2048 }, num_tokens = { 1, 2, 8 } }' \
    >"$data/spec.lua"
warns "spec.lua: is for sm89, so it is not used for rows of sm90" \
    generate --data-dir "$data" --arch sm90 --out "$WORK/other"
cmp "$WORK/whole/table.csv" "$WORK/other/table.csv" || die "the spec of another arch changes the table"
sed -i 's/sm89/sm90-loopback/' "$data/spec.lua"
succeeds generate --data-dir "$data" --arch sm90 --out "$WORK/other"
! cmp -s "$WORK/whole/table.csv" "$WORK/other/table.csv" || die "the spec of the arch changes nothing"
rm "$data/spec.lua"

# The rows of an adaptive sweep by an earlier version, without its spec.lua, and then without provenance.
data=$WORK/host
mkdir "$data"
cp "$SOURCE/tables/host/benchmark.tp2.host.csv" "$data"
sed '/"keys": {/,/^    }/d; /"spec": {/{n;s/,$//}' "$SOURCE/tables/host/benchmark.tp2.host.json" \
    >"$data/benchmark.tp2.host.json"
for with in provenance nothing; do
    succeeds generate --data-dir "$data" --arch host --out "$WORK/$with"
    numbers=$(sed 's/.*grid: of//; s/unmeasured.*//; s/[a-z,]//g' "$stderr")
    # shellcheck disable=SC2086
    agrees $numbers "$WORK/$with"
    # shellcheck disable=SC2086
    set -- $numbers
    [ "$4" -lt $(($1 / 5)) ] || die "$4 of $1 cells unmeasured"
    rm -f "$data/benchmark.tp2.host.json"
done
