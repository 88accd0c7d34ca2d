#!/bin/sh
# A folder of tables that cannot be written: render-tables ends in one clear line, and every file stays
# unchanged. A read-only mount in a namespace of its own keeps root out; 77 if none may be made.
. "$(dirname -- "$0")/lib.sh"

begin read_only
configure -G Ninja
echo "/* edited */" >>"$project/tables/sm90/allreduce_table.h"
cp -R "$project/tables" "$work/before"
if [ "$(id -u)" -ne 0 ]; then
    chmod a-w "$project/tables/sm90"
    fails target allreduce-render
    chmod u+w "$project/tables/sm90"
elif unshare --mount true 2>/dev/null; then
    fails unshare --mount sh -c 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 0
        exec cmake --build "$2" --target allreduce-render' - "$project/tables/sm90" "$build"
else
    skip "root needs a read-only mount here, and may not make one"
fi
printed "gentables: "
if [ "$(grep -c '^gentables: ' "$output")" -ne 1 ]; then die "not one line"; fi
diff -r "$work/before" "$project/tables" || die "the tables should be as they were"
