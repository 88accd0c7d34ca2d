#!/bin/sh
# Rows of two machines do not make one table, and are not compared, unless they were merged on purpose.
. "$SOURCE/tests/lib.sh"

host=$SOURCE/tables/host
data=$WORK/data
mkdir -p "$data"
cp "$host/spec.lua" "$host"/benchmark.tp*.host.* "$data"
sed 's/"cpu": "[^"]*"/"cpu": "another CPU"/' "$host/benchmark.tp4.host.json" >"$data/benchmark.tp4.host.json"
! cmp -s "$host/benchmark.tp4.host.json" "$data/benchmark.tp4.host.json" || die "the provenance is the same"

# refused COMMAND...: expects one line that names the file and both machines.
refused() {
    rejects "tp4.host.json: is of another machine \(another CPU, .*\) than $data/benchmark.tp2.host.json" "$@"
    one_line "or gentables merge --across-machines"
}
rows="--rows $data/benchmark.tp2.host.csv --rows $data/benchmark.tp4.host.csv"
refused generate --data-dir "$data" --arch host --out "$WORK/out"
[ ! -e "$WORK/out" ] || die "wrote something"
refused check --data-dir "$data" --arch host --tables "$host"
# shellcheck disable=SC2086
refused regret --table "$host/table.csv" $rows
awk -F, -v OFS=, 'NR == 2 { kept = $9; $9 = $11; $11 = kept } { print }' "$host/table.csv" \
    >"$WORK/changed.csv"
# shellcheck disable=SC2086
refused diff "$host/table.csv" "$WORK/changed.csv" $rows

# On purpose.
rejects "--across-machines joins them nevertheless" merge "$data"/benchmark.tp*.csv --out "$WORK/merged"
succeeds merge --across-machines "$data"/benchmark.tp*.csv --out "$WORK/merged"
cp "$host/spec.lua" "$WORK/merged"
succeeds generate --data-dir "$WORK/merged" --arch host --out "$WORK/out" --formats table
