#!/bin/sh
# edited_inputs_render_again.sh GENERATOR: after an edit of a row, of a template, and with one more rows file,
# the next build renders and compiles again. Runs on a copy of the installed package, which may be moved.
. "$(dirname -- "$0")/lib.sh"

begin "edited_$1"
own_prefix
configure -G "$1"
passes cmake --build "$build"
passes "$build/planner" 2 1024 16
printed TWOSHOT

# An input with a new date but the same content is rendered once, and nothing is compiled.
rows=$project/tables/sm90/benchmark.tp2.sm90.csv
touch "$work/before"
touch "$rows"
passes cmake --build "$build"
find "$build" -newer "$work/before" -name '*.stamp' >"$output"
printed allreduce.stamp
find "$build" -newer "$work/before" -name '*.o' >"$output"
if [ -s "$output" ]; then die "nothing should be compiled"; fi
touch "$work/before"
passes cmake --build "$build"
find "$build" -newer "$work/before" -name '*.stamp' >"$output"
if [ -s "$output" ]; then die "it should be rendered once"; fi

sed '/TWOSHOT/s/,7\.0$/,9.9/' "$rows" >"$work/edited" && cp "$work/edited" "$rows"
passes cmake --build "$build"
passes "$build/planner" 2 1024 16
printed ONESHOT

sed '/ONESHOT/d; s/^2,/8,/' "$rows" >"$project/tables/sm90/benchmark.tp8.sm90.csv"
passes cmake --build "$build"
passes "$build/planner" 8 1024 1
printed TWOSHOT

rm "$project/tables/sm90/benchmark.tp8.sm90.csv"
passes cmake --build "$build"
passes "$build/planner" 8 1024 1
printed NCCL_SYMMETRIC

template=$(grep -l include "$prefix"/share/gentables/templates/tables/*allreduce_table*)
echo "/* a line more */" >>"$template"
passes cmake --build "$build"
passes grep "a line more" "$build/gentables/allreduce-include/allreduce/allreduce_table.h"
