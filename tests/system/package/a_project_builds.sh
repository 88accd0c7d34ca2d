#!/bin/sh
# a_project_builds.sh package|subdirectory GENERATOR: it compiles and calls the lookup from C and C++, a
# second build does nothing, and its sources stay unchanged.
. "$(dirname -- "$0")/lib.sh"

begin "builds_$1_$2"
case $1 in
package) configure -G "$2" ;;
subdirectory) configure -G "$2" -DGENTABLES_SOURCE="$GENTABLES_SOURCE" ;;
esac
passes cmake --build "$build"
passes target help
for made in allreduce-render allreduce-check allreduce-gen render-tables check-tables gen-tables; do
    printed $made
done
if [ -x "$GENTABLES_PREFIX/bin/gentables-bench" ]; then
    printed allreduce-host-sweep
    printed refine-tables
fi
passes "$build/server"
passes "$build/planner" 2 1024 16
printed TWOSHOT

touch "$work/before"
passes cmake --build "$build"
find "$build" -newer "$work/before" \( -name '*.o' -o -name '*.stamp' -o -name '*.h' \) >"$output"
if [ -s "$output" ]; then die "the second build should do nothing"; fi
same_tables
