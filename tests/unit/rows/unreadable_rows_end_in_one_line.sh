#!/bin/sh
# An unreadable rows file ends in one line, exit code 2, and nothing written.
. "$SOURCE/tests/lib.sh"

csv=$WORK/data/benchmark.tp2.sm90.csv
rows "$csv" "$row"
skip_unless_unprivileged_reads "$csv"
chmod 777 "$WORK"
ends_with 0 unprivileged "$GENTABLES" generate --data-dir "$WORK/data" --arch sm90 --out "$WORK/readable"
chmod 000 "$csv"
ends_with 2 unprivileged "$GENTABLES" generate --data-dir "$WORK/data" --arch sm90 --out "$WORK/out"
one_line 'benchmark.tp2.sm90.csv: cannot be read: Permission denied'
[ ! -e "$WORK/out" ] || die "something was written"
