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

# Nor do a search of Open MPI's parameters of one machine and rows of another. Without the search, the files
# that were made of it are removed.
mixed=$WORK/mixed
cp -R "$host" "$mixed"
succeeds check --data-dir "$mixed" --arch host
for file in transport.tp4.host.json benchmark.tp4.host.json; do
    cp "$host"/*.json "$mixed"
    sed 's/"cpu": "[^"]*"/"cpu": "another CPU"/' "$host/$file" >"$mixed/$file"
    for verb in check generate; do
        rejects "tp4.host.json: is of another machine \(.*differences: CPU" $verb --data-dir "$mixed" \
            --arch host
    done
done
cp "$host"/*.json "$mixed"
rm "$mixed"/transport.tp4.*
ends_with 1 "$GENTABLES" check --data-dir "$mixed" --arch host
has 'ompi_tp4.conf: has no rows here; remove it' "$stdout"
# Files of another arch stay, and others of which only a later line has the mark.
sed '1s/\.host\./.host-b./' "$mixed/ompi_tp4.conf" >"$mixed/ompi_tp8.conf"
sed '1s/^/# mine\n/' "$mixed/ompi_tp4.conf" >"$mixed/ompi_tp9.conf"
succeeds generate --data-dir "$mixed" --arch host
has 'ompi_tp9.conf: has no rows here; remove it' "$stderr"
if grep -q ompi_tp8 "$stderr" "$stdout"; then die "a file of another arch is stale"; fi
rm "$mixed/ompi_tp8.conf" "$mixed/ompi_tp9.conf"
has '^removed   .*/ompi_tp4.conf ' "$stdout"
[ "$(cd "$mixed" && echo ompi_tp*)" = "ompi_tp2.conf ompi_tp2_rules.conf" ] || die "others: $(ls "$mixed")"
succeeds check --data-dir "$mixed" --arch host
