#!/bin/sh
# check-tables passes on rendered files, fails on an edit by hand, and prints the command that mends it.
. "$(dirname -- "$0")/lib.sh"

begin check
configure -G Ninja
header=$project/tables/sm90/allreduce_table.h
passes target allreduce-check
echo "/* edited */" >>"$header"
fails target check-tables
printed allreduce_table.h
printed "/* edited */"
mend=$(sed -n 's/^.*to mend it: //p' "$output" | head -n 1)
if [ -z "$mend" ]; then die "no command that mends it was printed"; fi
passes sh -c "cd '$project' && PATH='$GENTABLES_PREFIX/bin:$PATH' && $mend"
passes target allreduce-check
same_tables
