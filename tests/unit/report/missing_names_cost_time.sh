#!/bin/sh
# A table for a consumer without a name for the best strategy has the best one that the consumer has, and the
# report has the cost: over all cells, and where it is the largest.
. "$SOURCE/tests/lib.sh"

data=$WORK/data out=$WORK/out
# cell TOKENS ONESHOT_US MULTICAST_US: rows of a token count at TP 8 (nil: no row).
cell() {
    for row in "ONESHOT $2" "ONESHOT_MULTICAST $3"; do
        [ "${row#* }" = nil ] ||
            echo "8,bfloat16,$(($1 * 2048)),$1,1024,${row% *},NONE,allreduce,${row#* }"
    done
}
# generated ROW...: tables of these rows, by the times at each cell alone.
generated() {
    rm -rf "$data" "$out"
    rows "$data/benchmark.tp8.sm90.csv" "$@"
    succeeds generate --data-dir "$data" --arch sm90 --out "$out" --choose corner
}
# costs PATTERN: the report's line about the table of TensorRT-LLM.
costs() { has "^  - in $1" "$out/report.md"; }

# shellcheck disable=SC2046
generated $(cell 1 4 5) $(cell 2 6 4) $(cell 4 9 8)
costs '2 of 3 cells it has no name for the best strategy, and has the best that it can name; mean cost'
costs '.*: 20\.83 %; at most 2\.00 us \(50\.0 %\) at hidden size 1024, 2 tokens of TP 8, NONE$'
has 'ONESHOT_MULTICAST' "$out/allreduce_table.h"
[ "$(grep -c 'it has no name for the best' "$out/report.md")" = 1 ] || die "the cost of the C header"
# Only ONESHOT (4) and, where nothing was measured, NCCL_SYMMETRIC (8).
others=$(grep '^ *{[0-9,]*}' "$out/generated_lookup_table.cpp" | grep -o '[0-9]' | grep -cv '[48]' || true)
[ "$others" = 0 ] || die "other strategies than 4 and 8"
grep -q '[{,]4,4,4,' "$out/generated_lookup_table.cpp" || die "ONESHOT is not in its place"

# Cells in which no strategy has a name there.
# shellcheck disable=SC2046
generated $(cell 1 4 5) $(cell 2 6 4) $(cell 4 nil 8)
costs '1 of 2 cells .*; 1 more has no choice, as no strategy that it can name has a time$'

# shellcheck disable=SC2046
generated $(cell 1 4 5) $(cell 2 4 5)
if grep 'no name for the best' "$out/report.md"; then die "a cost where there is none"; fi
