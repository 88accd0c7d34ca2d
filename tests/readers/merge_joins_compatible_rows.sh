#!/bin/sh
# merge joins rows of several files, and rejects files that do not belong together.
. "$(dirname -- "$0")/lib.sh"
host=$SOURCE/tables/host
a=$WORK/a
b=$WORK/b

# merges OPTION...: joins into $WORK/out.
merges() {
    rm -rf "$WORK/out"
    succeeds merge --out "$WORK/out" "$@"
}

# stays_apart PATTERN OPTION...: expects a rejection in one line; nothing is written.
stays_apart() {
    pattern=$1
    shift
    rm -rf "$WORK/out"
    rejects "$pattern" merge --out "$WORK/out" "$@"
    [ ! -e "$WORK/out" ] || die "wrote something: $pattern"
}

# split FILE A B: its rows in two files with the header.
split() {
    mkdir -p "$(dirname -- "$2")" "$(dirname -- "$3")"
    awk -v a="$2" -v b="$3" 'NR == 1 { print >a; print >b; next } { print >(NR % 2 ? a : b) }' "$1"
}

# The halves of another tool's measurement are joined to the whole; so are files of two TP sizes.
for tp in 2 4; do
    split "$SOURCE/tests/golden/sm90/benchmark.tp$tp.sm90.csv" "$a/benchmark.tp$tp.sm90.csv" \
        "$b/benchmark.tp$tp.sm90.csv"
done
merges "$a"/*.csv "$b"/*.csv
for tp in 2 4; do
    imports "$SOURCE/tests/golden/sm90/benchmark.tp$tp.sm90.csv" "$WORK/whole.csv"
    cmp "$WORK/whole.csv" "$WORK/out/benchmark.tp$tp.sm90.csv" || die "not the rows of TP $tp"
done

# The joined rows have provenance if their parts have it.
merges "$host"/benchmark.tp*.csv
for tp in 2 4; do
    cmp "$host/benchmark.tp$tp.host.csv" "$WORK/out/benchmark.tp$tp.host.csv" || die "rows of TP $tp changed"
done
cp "$host/spec.lua" "$WORK/out" # it selects the derived values of cells without a row
succeeds check --data-dir "$WORK/out" --arch host --tables "$host" --formats table,c

# Another machine, run or bench; rows of an unknown machine.
imports "$inputs/nccl_tests.txt" "$WORK/gpu.csv"
sed 's/H100/H200/; s/^\( *\)\(8\|16\|32\) \( *\)\(4\|8\|16\) /\1\200 \3\400 /' "$inputs/nccl_tests.txt" \
    >"$WORK/other.txt"
imports "$WORK/other.txt" "$WORK/other.csv"
imports "$inputs/trtllm_d.csv" "$WORK/trtllm.csv"
stays_apart 'other.csv: rows of 2 NVIDIA H200.*--across-machines joins them nevertheless' --arch sm90 \
    "$WORK/gpu.csv" "$WORK/other.csv"
stays_apart 'trtllm.csv: rows of an unknown machine, and .*gpu.csv has rows of' --arch sm90 "$WORK/gpu.csv" \
    "$WORK/trtllm.csv"
stays_apart 'trtllm_d.csv has no trtllm_d.json beside it' --arch sm90 "$WORK/gpu.csv" "$inputs/trtllm_d.csv"
merges --arch sm90 --across-machines "$WORK/gpu.csv" "$WORK/other.csv" "$inputs/trtllm_d.csv"
lines "$WORK/out/benchmark.tp2.sm90.csv" 7
grep -q '"machines": \["2 NVIDIA H100 80GB HBM3", .*H200.*, "an unknown machine"\]' \
    "$WORK/out/benchmark.tp2.sm90.json" || die "the machines are not named"
succeeds generate --data-dir "$WORK/out" --arch sm90 --formats report
has_lines "$WORK/out/report.md" '| Merged | an unknown machine |'

# Another arch; the same cell and strategy twice; rows that were edited by hand.
stays_apart 'benchmark.tp2.sm90.csv: rows of sm90, and .*host.csv is of host' --across-machines \
    "$host/benchmark.tp2.host.csv" "$a/benchmark.tp2.sm90.csv"
stays_apart 'gpu.csv:2: the same cell and strategy, NCCL, as in .*gpu.csv:2' --arch sm90 "$WORK/gpu.csv" \
    "$WORK/gpu.csv"
echo '2,bfloat16,64,1,32,NCCL,NONE,allreduce,9.5,,,,,,,,,eager,,dedicated' >>"$WORK/gpu.csv"
stays_apart 'gpu.json: is not of the rows in .*gpu.csv' --arch sm90 "$WORK/gpu.csv"
stays_apart 'is a folder; --arch names the files' "$WORK/trtllm.csv"
