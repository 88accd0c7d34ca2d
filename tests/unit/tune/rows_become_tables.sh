#!/bin/sh
# Rows of several launches make tables: ops of any kind by bytes, splits and candidates of plug-ins in
# table.csv, in the report and in the C header, with the choices of table.csv; the row has the gain of a
# fusion.
. "$(dirname "$0")/lib.sh"
here=$(dirname "$0")

tuned --op allreduce,allgather,alltoallv,broadcast --splits 3:1 --sizes 2K:32K:4 --dtype float32 \
    --launches 2 --strategies CHUNKED_8192,CHUNKED_65536,DIRECT --plugin "$PLUGINS/chunked.so" \
    --out "$WORK/rows"
rows=$WORK/rows/benchmark.tp2.host
grep -q ",PLUGIN_CHUNKED_8192,NONE,allreduce," "$rows.csv" || fail "no row of the plug-in"
grep -q '"strategy": *"PLUGIN_CHUNKED_8192"' "$rows.json" || fail "the strategy is not recorded"

gentables generate --data-dir "$WORK/rows" --arch host
[ -f "$WORK/rows/allreduce_table.h" ] || fail "no C header: $(cat "$WORK/out")"
grep -q "alltoallv 3:1, by bytes" "$WORK/rows/report.md" || fail "no alltoallv in the report"
grep -q "4294967295" "$WORK/rows/report.md" && fail "a size alone has a hidden size in the report"
gentables check --data-dir "$WORK/rows" --arch host --tables "$WORK/rows"

# The header's choices, in C and in C++.
"$GENTABLES" lua "$here/header_lookups.lua" "$WORK/rows/table.csv" >"$WORK/asks.c"
grep -q "PLUGIN_" "$WORK/asks.c" || fail "no candidate of a plug-in stands in table.csv"
cp "$WORK/asks.c" "$WORK/asks.cpp"
${CC:-cc} -std=c99 -Wall -Wextra -Wconversion -Werror -I "$WORK/rows" "$WORK/asks.c" -o "$WORK/asks" ||
    fail "the header is no C99"
"$WORK/asks" || fail "the header answers otherwise than table.csv"
${CXX:-c++} -std=c++11 -Wall -Wextra -Werror -I "$WORK/rows" "$WORK/asks.cpp" -o "$WORK/asks" ||
    fail "the header is no C++11"
"$WORK/asks" || fail "the header answers otherwise in C++"

tuned --op allreduce --fusion RESIDUAL_RMS_NORM --hidden-size 1024 --sizes 8K --dtype float32 --launches 2 \
    --strategies MPI,ONESHOT,CHUNKED_8192 --plugin "$PLUGINS/chunked.so" --out "$WORK/fused"
"$GENTABLES" lua "$here/fusion_rows.lua" "$WORK/fused/benchmark.tp2.host.csv" ||
    fail "the rows of a fusion are wrong"
gentables merge "$WORK/fused/benchmark.tp2.host.csv" --out "$WORK/again.csv"
cmp -s "$WORK/fused/benchmark.tp2.host.csv" "$WORK/again.csv" || fail "merge changes what fusion gains"
