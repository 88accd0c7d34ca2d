#!/bin/sh
# cross_compiling_runs_no_target_program.sh package|subdirectory: in a build for another processor, for which
# programs do not run here, the header is rendered by a program of this machine, or is the committed one.
. "$(dirname -- "$0")/../package/lib.sh"

begin "cross_compiling_$1"
# This machine's compiler stands in for that of the other processor.
cat >"$work/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR other64)
set(CMAKE_FIND_ROOT_PATH $work/sysroot)
foreach(what LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_\${what} ONLY)
endforeach()
END
mkdir "$work/sysroot"
cross() { # OPTION...
    configure -G Ninja -DCMAKE_TOOLCHAIN_FILE="$work/toolchain.cmake" "$@"
}
uses_the_committed_header() {
    printed "gentables: allreduce: no generator; uses the committed $project/tables/sm90/allreduce_table.h"
    passes cmake --build "$build"
    [ ! -e "$build/gentables/bin/gentables" ] || die "a generator for the other processor"
    rm -r "$build"
}
renders_the_header() {
    passes cmake --build "$build"
    passes cmp "$golden/allreduce_table.h" "$build/gentables/allreduce-include/allreduce/allreduce_table.h"
    passes target allreduce-check
    same_tables
}

case $1 in
subdirectory)
    cross -DGENTABLES_SOURCE="$GENTABLES_SOURCE" -DGENTABLES_PROGRAM=
    printed "gentables: cross-compiling, and GENTABLES_PROGRAM is not set"
    uses_the_committed_header
    cross -DGENTABLES_SOURCE="$GENTABLES_SOURCE" -DGENTABLES_PROGRAM="$GENTABLES_PREFIX/bin/gentables"
    printed "gentables: renders tables with $GENTABLES_PREFIX/bin/gentables"
    renders_the_header
    ;;
package)
    cross -DGenTables_DIR="$GENTABLES_PREFIX/lib/cmake/GenTables"
    renders_the_header
    rm -r "$build"
    # A package for the other processor.
    own_prefix
    sed -i 's/CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL ".*"/CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL "other64"/' \
        "$prefix/lib/cmake/GenTables/GenTablesConfig.cmake"
    rm "$prefix/bin/gentables"
    cross -DGenTables_DIR="$prefix/lib/cmake/GenTables"
    uses_the_committed_header
    ;;
esac
