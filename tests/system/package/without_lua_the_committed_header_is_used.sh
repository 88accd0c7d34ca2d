#!/bin/sh
# without_lua_the_committed_header_is_used.sh package|subdirectory: if the generator was not built, a project
# still builds, with the committed header, and a message reports that.
. "$(dirname -- "$0")/lib.sh"

begin "without_lua_$1"
case $1 in
package)
    prefix=$work/prefix
    passes cmake -S "$GENTABLES_SOURCE" -B "$work/package" -G Ninja -DCMAKE_DISABLE_FIND_PACKAGE_Lua=ON
    printed "gentables: no Lua 5.4"
    passes cmake --install "$work/package" --prefix "$prefix"
    configure -G Ninja
    ;;
subdirectory)
    configure -G Ninja -DGENTABLES_SOURCE="$GENTABLES_SOURCE" -DCMAKE_DISABLE_FIND_PACKAGE_Lua=ON
    printed "gentables: no Lua 5.4"
    ;;
esac
printed "gentables: allreduce: no generator; uses the committed $project/tables/sm90/allreduce_table.h"
passes cmake --build "$build"
passes "$build/server"
fails target render-tables
same_tables
