#!/bin/sh
# Wrong use of report and compare ends in one line with the valid values, and leaves no page.
. "$SOURCE/tests/lib.sh"

tables=$SOURCE/tables/host
host=$WORK/host # one TP size
mkdir "$host"
cp "$tables"/benchmark.tp2.* "$host"
rows "$WORK/rows/benchmark.tp2.sm90.csv" "$row"

rejects 'nowhere' report --data-dir "$WORK/nowhere" --arch host --out "$WORK/out"
rejects 'no benchmark.tp\{N\}.host.csv' report --data-dir "$WORK/rows" --arch host --out "$WORK/out"
ends_with 2 "$GENTABLES" report --data-dir "$WORK/rows" --data-dir "$host" --arch host --out "$WORK/out"
one_line '2 --data-dir and 1 --arch'
rejects 'a table for host; the rows are of sm90' report --data-dir "$WORK/rows" --arch sm90 --against \
    "$tables/table.csv" --out "$WORK/out"
rejects 'spec.lua' report --data-dir "$host" --arch host --against "$tables/spec.lua" --out "$WORK/out"
rejects 'no.csv' report --data-dir "$host" --arch host --against "$WORK/no.csv" --out "$WORK/out"
[ ! -e "$WORK/out" ] || die "a refused report left something"

# A folder that cannot be made, or not be written to.
failed 'spec.lua' report --data-dir "$host" --arch host --out "$tables/spec.lua/deeper"
mkdir "$WORK/locked"
chmod 555 "$WORK/locked"
if unprivileged test -x "$GENTABLES" && ! unprivileged test -w "$WORK/locked"; then
    ends_with 1 unprivileged "$GENTABLES" report --data-dir "$host" --arch host --out "$WORK/locked"
    one_line 'locked/report.html'
    [ -z "$(ls "$WORK/locked")" ] || die "a failed report left something"
fi

# The same input gives the same bytes.
succeeds report --data-dir "$host" --arch host --out "$WORK/a"
succeeds report --data-dir "$host" --arch host --out "$WORK/b"
cmp -s "$WORK/a/report.html" "$WORK/b/report.html" || die "two reports of the same rows differ"

# compare: at least two folders, labels for all or none, an arch if a folder has several.
cp "$host"/benchmark.* "$WORK/rows"
rejects 'compare takes DIR DIR' compare "$host" --out "$WORK/compare.html"
rejects 'compare needs --out FILE' compare "$host" "$host"
rejects '2 folders and 1 --label' compare "$host" "$host" --label one --out "$WORK/compare.html"
rejects 'rows of host, sm90; --arch' compare "$host" "$WORK/rows" --out "$WORK/compare.html"
rejects 'nowhere' compare "$host" "$WORK/nowhere" --out "$WORK/compare.html"
rejects 'cmake: no benchmark' compare "$host" "$SOURCE/cmake" --out "$WORK/compare.html"
failed 'no/such/folder' compare "$host" "$host" --out "$WORK/no/such/folder/compare.html"
[ ! -e "$WORK/compare.html" ] || die "a refused comparison left something"
succeeds compare "$host" "$WORK/rows" --arch host --out "$WORK/compare.html"
[ -s "$WORK/compare.html" ] || die "no page"
