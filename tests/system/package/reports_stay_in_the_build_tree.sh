#!/bin/sh
# The target NAME-report makes page, workbook and pictures in the build tree, and leaves the project's folders
# unchanged.
. "$(dirname -- "$0")/lib.sh"
command -v gnuplot >/dev/null || skip "there is no gnuplot here"

begin reports
configure -DCMAKE_BUILD_TYPE=Release
passes target allreduce-report
made=$build/gentables/allreduce-report
printed 'pictures in'
[ -s "$made/report.html" ] || die "no page"
[ -s "$made/viz/NONE/benchmark.tp2.sm90_best_strategy.png" ] || die "no picture"
if [ -e "$GENTABLES_PREFIX/lib/gentables/core/xlsx.so" ]; then
    [ -s "$made/report.sm90.xlsx" ] || die "no workbook"
fi
same_tables
