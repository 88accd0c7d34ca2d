#!/bin/sh
# New rows join those of a folder: other cells stay, the same cells are replaced, and both are reported. Rows
# that another bench or a sweep measured on this machine may stay; rows of another machine, or without
# provenance, are rejected before anything is measured.
. "$(dirname "$0")/lib.sh"

rows=$WORK/rows/benchmark.tp2.host
into() {
    tuned --dtype float32 --launches 2 --out "$WORK/rows" "$@"
}
into --op allgather --sizes 1K,4K --strategies MPI,DIRECT
[ ! -s "$WORK/err" ] || fail "a new folder: unexpected message: $(cat "$WORK/err")"
[ "$(wc -l <"$rows.csv")" = 5 ] || fail "rows: $(cat "$rows.csv")"
grep ,allgather, "$rows.csv" >"$WORK/gathers"

into --op broadcast --sizes 1K --strategies MPI,DIRECT
printed err "0 rows of cells that were measured now are replaced by 2; 4 others stay"
grep ,allgather, "$rows.csv" | cmp -s - "$WORK/gathers" || fail "rows of another op are lost or others"
[ "$(grep -c ,broadcast, "$rows.csv")" = 2 ] || fail "no broadcast: $(cat "$rows.csv")"

# A whole cell is replaced: times of two launches are not compared.
into --op allgather --sizes 4K --strategies DIRECT --fresh
printed err "2 rows of cells that were measured now are replaced by 1; 4 others stay"
[ "$(grep -c '^2,float32,4096,.*,allgather,' "$rows.csv")" = 1 ] || fail "of the cell: $(cat "$rows.csv")"
[ "$(grep -c '^2,float32,1024,.*,allgather,' "$rows.csv")" = 2 ] || fail "another cell: $(cat "$rows.csv")"

# Rows with shapes, of a sweep, stay unchanged; the provenance reports that several programs measured them.
cat >"$WORK/spec.lua" <<'END'
return { arch = "host", tp = { 2 }, dtypes = { "float32" }, fusions = { "NONE" }, hidden_sizes = { 128 },
  num_tokens = { 1, 2 }, strategies = { "MPI", "ONESHOT" },
  limits = { launches = 1, min_samples = 3, max_samples = 5 } }
END
gentables sweep "$WORK/spec.lua" --bench "$BENCH" --out "$WORK/swept" --exhaustive
grep ,allreduce, "$WORK/swept/benchmark.tp2.host.csv" | cut -d, -f1-10 >"$WORK/sums"
tuned --dtype float32 --launches 2 --op allgather --sizes 1K --strategies MPI --out "$WORK/swept"
grep ,allreduce, "$WORK/swept/benchmark.tp2.host.csv" | cut -d, -f1-10 | cmp -s - "$WORK/sums" ||
    fail "a sweep's rows are lost or others"
grep -q '"merged"' "$WORK/swept/benchmark.tp2.host.json" || fail "the provenance lacks the merge"
gentables generate --data-dir "$WORK/swept" --arch host
grep -q ",allgather," "$WORK/swept/table.csv" || fail "table.csv has no allgather"
grep -q ",allreduce," "$WORK/swept/table.csv" || fail "table.csv has no allreduce"
tuned --dtype float32 --launches 2 --op broadcast --sizes 1K --strategies MPI --out "$WORK/swept"

# So do those of a sweep with derived times.
sed 's/^{/{"derived": 1, /' "$WORK/swept/benchmark.tp2.host.json" >"$WORK/derived.json"
cp "$WORK/derived.json" "$WORK/swept/benchmark.tp2.host.json"
sed 's/num_tokens = { 1, 2 }/num_tokens = { 1, 2, 4 }/' "$WORK/spec.lua" >"$WORK/swept/spec.lua"
gentables generate --data-dir "$WORK/swept" --arch host

# refused PATTERN: expects exit code 2 before anything is launched, and that all files stay.
refused() {
    cp "$rows.csv" "$WORK/before"
    tune --dtype float32 --launches 2 --out "$WORK/rows" --op reducescatter --sizes 1K \
        --launcher "false {ranks}"
    [ "$status" = 2 ] || fail "$1: ended with $status: $(cat "$WORK/err")"
    printed err "$1"
    cmp -s "$rows.csv" "$WORK/before" || fail "$1: rows are others"
}
cp "$rows.json" "$WORK/kept.json"
sed 's/"cpu": *"[^"]*"/"cpu": "Another 9000"/' "$WORK/kept.json" >"$rows.json"
refused "rows of Another 9000.*another --out is required"
sed 's/"hash": *"[^"]*"/"hash": "0123456789abcdef"/' "$WORK/kept.json" >"$rows.json"
refused "is not of the rows in"
rm "$rows.json"
refused "the machine of its rows is unknown"
