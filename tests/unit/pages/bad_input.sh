#!/bin/sh
# Wrong use of report and compare ends in one line that says what is valid, and leaves no page behind.
. "$SOURCE/tests/lib.sh"

host=$SOURCE/tables/host
rows "$WORK/rows/benchmark.tp2.sm90.csv" "$row"

ends_with 2 "$GENTABLES" report --data-dir "$WORK/nowhere" --arch host --out "$WORK/out"
one_line 'nowhere'
ends_with 2 "$GENTABLES" report --data-dir "$WORK/rows" --arch host --out "$WORK/out"
one_line 'no benchmark.tp\{N\}.host.csv'
ends_with 2 "$GENTABLES" report --data-dir "$WORK/rows" --data-dir "$host" --arch host --out "$WORK/out"
one_line '2 --data-dir and 1 --arch'
ends_with 2 "$GENTABLES" report --data-dir "$WORK/rows" --arch sm90 --against "$host/table.csv" \
    --out "$WORK/out"
one_line 'a table for host; the rows are of sm90'
ends_with 2 "$GENTABLES" report --data-dir "$host" --arch host --against "$host/spec.lua" --out "$WORK/out"
one_line 'spec.lua'
ends_with 2 "$GENTABLES" report --data-dir "$host" --arch host --against "$WORK/no.csv" --out "$WORK/out"
one_line 'no.csv'
[ ! -e "$WORK/out" ] || die "a refused report left something"

# A folder that cannot be made, or not be written to.
ends_with 1 "$GENTABLES" report --data-dir "$host" --arch host --out "$host/spec.lua/deeper"
one_line 'spec.lua'
mkdir "$WORK/locked"
chmod 555 "$WORK/locked"
if unprivileged test -x "$GENTABLES" && ! unprivileged test -w "$WORK/locked"; then
    ends_with 1 unprivileged "$GENTABLES" report --data-dir "$host" --arch host --out "$WORK/locked"
    one_line 'locked/report.html'
    [ -z "$(ls "$WORK/locked")" ] || die "a failed report left something"
fi

# The same input gives the same bytes.
ends_with 0 "$GENTABLES" report --data-dir "$host" --arch host --out "$WORK/a"
ends_with 0 "$GENTABLES" report --data-dir "$host" --arch host --out "$WORK/b"
cmp -s "$WORK/a/report.html" "$WORK/b/report.html" || die "two reports of the same rows differ"

# compare: two folders at least, labels for all or none, an arch where a folder has several.
cp "$host"/benchmark.* "$WORK/rows"
ends_with 2 "$GENTABLES" compare "$host" --out "$WORK/compare.html"
one_line 'compare takes DIR DIR'
ends_with 2 "$GENTABLES" compare "$host" "$host"
one_line 'compare needs --out FILE'
ends_with 2 "$GENTABLES" compare "$host" "$host" --label one --out "$WORK/compare.html"
one_line '2 folders and 1 --label'
ends_with 2 "$GENTABLES" compare "$host" "$WORK/rows" --out "$WORK/compare.html"
one_line 'rows of host, sm90; --arch'
ends_with 2 "$GENTABLES" compare "$host" "$WORK/nowhere" --out "$WORK/compare.html"
one_line 'nowhere'
ends_with 2 "$GENTABLES" compare "$host" "$SOURCE/cmake" --out "$WORK/compare.html"
one_line 'cmake: no benchmark'
ends_with 1 "$GENTABLES" compare "$host" "$host" --out "$WORK/no/such/folder/compare.html"
one_line 'no/such/folder'
[ ! -e "$WORK/compare.html" ] || die "a refused comparison left something"
ends_with 0 "$GENTABLES" compare "$host" "$WORK/rows" --arch host --out "$WORK/compare.html"
[ -s "$WORK/compare.html" ] || die "no page"
