#!/bin/sh
# A provenance, the name of a workload and the arch of a table with markup in them: report.md and
# diff --format md contain it as text.
. "$(dirname "$0")/../../lib.sh"

data=$WORK/data markup='<script>alert(1)</script> [x](javascript:1) `x` \\\\ | *x*'
mkdir -p "$data"
cp "$SOURCE/tests/recorded/benchmark.tp2.host.csv" "$data"
replaced=
for word in "AMD EPYC" gcc-12.2.0 32K "fewer tokens than ranks"; do
    replaced="$replaced;s#\"$word\"#\"$markup\"#"
done
sed "$replaced" "$SOURCE/tests/recorded/benchmark.tp2.host.json" >"$data/benchmark.tp2.host.json"
named="$data/--><script>
.csv"
printf 'tokens,hidden_size,weight\n1,1024,1\n' >"$named"
succeeds generate --data-dir "$data" --arch host --out "$data" --formats report,c --workload "$named"
report=$data/report.md
text='\\|[^|]*&lt;script&gt;alert\(1\)&lt;/script&gt; \\\[x\\\]\(javascript:1\) \\`x\\` \\\\ \\\| \\\*x\\\*'
for what in CPU Caches Bench '2 \| [0-9]+ \| TWOSHOT'; do has "^\| $what $text" "$report"; done
has 'of --\?\?script\?\?.csv, by their weights' "$data/allreduce_table.h"
has '^The choices are for the shape of --\?\?script\?\?.csv' "$report"
if grep -q '<script' "$data/allreduce_table.h" "$report"; then die "markup remains"; fi

sed 's/^host,/<b>,/' "$SOURCE/tables/host/table.csv" >"$WORK/table.csv"
succeeds diff "$WORK/table.csv" "$WORK/table.csv" --format md
has '^### Tables of &lt;b&gt;:' "$stdout"
