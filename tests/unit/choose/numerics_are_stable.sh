#!/bin/sh
# --numerics stable: the choices along a row of token counts have equal bits, those of the earlier table where
# there is one; the report has the cost.
. "$(dirname -- "$0")/lib.sh"
columns="$header,low (us),high (us),bits"
# at HIDDEN TOKENS ONESHOT TWOSHOT MPI: their times, 0: none. ONESHOT and MPI have equal bits.
at() {
    hidden_size=$1 num_tokens=$2
    add ONESHOT "$3" 0a
    add TWOSHOT "$4" 0b
    add MPI "$5" 0a
}
add() { # STRATEGY TIME BITS
    [ "$2" != 0 ] || return 0
    shape=$((hidden_size * num_tokens * 2)),$num_tokens,$hidden_size
    echo "2,bfloat16,$shape,$1,NONE,allreduce,$2,$2,$2,$3" >>"$data/benchmark.tp2.host.csv"
}
wins() { # HIDDEN STRATEGIES: expects these choices, in the order of the token counts
    found=$(awk -F, -v hidden="$1" '$7 == hidden { printf "%s%s", sep, $9; sep = " " }' "$data/table.csv")
    [ "$found" = "$2" ] || die "hidden size $1: $found, not $2"
}
by_bytes() { # STRATEGIES: expects these rules in thresholds.json
    found=$(sed -n 's/.*max_bytes.*"strategy": "\([^"]*\)".*/\1/p' "$data/thresholds.json" | paste -sd' ' -)
    [ "$found" = "$1" ] || die "by bytes: $found, not $1"
}

# Each hidden size has the class that loses least over its row, and the best of that class in each cell.
begin
at 1024 1 10 20 11
at 1024 16 30 10 25
at 1024 256 40 20 35
at 65536 1 10 60 11
at 65536 16 60 45 55
at 65536 256 90 60 70
makes 1024 "ONESHOT TWOSHOT TWOSHOT" --against none --numerics any
wins 65536 "ONESHOT MPI TWOSHOT"
makes 1024 "TWOSHOT TWOSHOT TWOSHOT" --against none --numerics stable
wins 65536 "ONESHOT MPI MPI"
for file in allreduce_table.h report.md; do
    has "numerics stable: only strategies with equal bits in each row of token counts" "$data/$file"
done
has '"numerics": "stable"' "$data/thresholds.json"
has "^2 of 6 choices differ from those of --numerics any; mean cost over all cells: [0-9.]* %; at most " \
    "$data/report.md"
has "^\| 2 \| bfloat16 \| allreduce \| unknown \| NONE \| 6 \| 2 \| [0-9.]+ % \| [0-9.]+ us" "$data/report.md"

# From other rows the earlier table's classes stay, in formats by bytes too, until no table is there.
cp "$data/table.csv" "$WORK/earlier.csv"
begin
at 1024 1 10 40 8
at 1024 16 60 40 20
at 1024 256 90 80 70
at 65536 1 30 10 25
at 65536 16 30 10 25
at 65536 256 60 30 50
cp "$WORK/earlier.csv" "$data/table.csv"
makes 1024 "TWOSHOT TWOSHOT TWOSHOT" --numerics stable
wins 65536 "MPI MPI MPI"
by_bytes MPI # the first in the list of two classes with three cells each
succeeds check --data-dir "$data" --arch host --numerics stable
makes 1024 "MPI MPI MPI" --against none --numerics stable
wins 65536 "TWOSHOT TWOSHOT TWOSHOT"

# If an earlier row has several classes, that of the most choices stays.
sed '/,65536,256,/s/,MPI,/,TWOSHOT,/' "$WORK/earlier.csv" >"$WORK/mixed.csv"
makes 65536 "MPI MPI MPI" --against "$WORK/mixed.csv" --numerics stable
sed '/,1024,1,/s/,TWOSHOT,/,MPI,/' "$WORK/earlier.csv" >"$WORK/mixed.csv"
makes 1024 "TWOSHOT TWOSHOT TWOSHOT" --against "$WORK/mixed.csv" --numerics stable

# Formats with another lookup, or with fewer strategies, have the classes of table.csv.
sed 's/,MPI,/,TWOSHOT,/; s/,ONESHOT,/,TWOSHOT,/' "$WORK/earlier.csv" >"$WORK/other.csv"
generate --against "$WORK/other.csv" --numerics stable
by_bytes TWOSHOT
sed 's/,MPI,/,NCCL,/' "$data/benchmark.tp2.host.csv" >"$data/benchmark.tp2.sm90.csv"
sed 's/^host,/sm90,/' "$WORK/other.csv" >"$WORK/sm90.csv"
for numerics in stable same-as=TWOSHOT any; do
    succeeds generate --data-dir "$data" --arch sm90 --against "$WORK/sm90.csv" \
        --numerics $numerics --formats trtllm
    grep -v '// numerics' "$data/generated_lookup_table.cpp" >"$WORK/$numerics.cpp"
done
cmp "$WORK/stable.cpp" "$WORK/same-as=TWOSHOT.cpp" || die "another class by powers of two"
if cmp -s "$WORK/stable.cpp" "$WORK/any.cpp"; then die "any numerics give the same table"; fi

# A class with a time in each cell comes before a faster one that has none in some.
begin
at 1024 1 10 0 0
at 1024 16 30 10 0
at 1024 256 60 10 0
makes 1024 "ONESHOT ONESHOT ONESHOT" --against none --numerics stable
by_bytes ONESHOT

# The same by bytes, where a format can name no strategy of the class of the table by shape.
begin
at 1024 1 1 0 0
at 1024 16 1 0 0
at 1024 256 1 0 0
hidden_size=1024
for num_tokens in 1 16 256; do
    add MPI_RECURSIVE_DOUBLING "$((num_tokens == 1 ? 10 : 30))" 0c
    add MPI_RING "$((num_tokens == 1 ? 0 : 10))" 0d
done
generate --against none --numerics stable
has "^0 3 0 0 # recursive_doubling" "$data/ompi_rules.conf"
if grep -q "# ring" "$data/ompi_rules.conf"; then die "ompi_rules.conf switches bits"; fi

# A strategy with varying or unknown bits is a class of its own.
for bits in varies ''; do
    begin
    at 1024 1 20 0 10
    at 1024 16 20 0 30
    at 1024 256 20 0 30
    sed -i "/,MPI,/s/0a\$/$bits/" "$data/benchmark.tp2.host.csv"
    makes 1024 "MPI ONESHOT ONESHOT" --against none --numerics any
    makes 1024 "ONESHOT ONESHOT ONESHOT" --against none --numerics stable
done

# Strategies that equal a third one, and differ from each other, are not in one class.
begin
at 1024 1 20 30 10
at 1024 16 20 30 0
at 1024 256 20 10 0
sed -i '/,1,1024,TWOSHOT,/s/0b$/0a/' "$data/benchmark.tp2.host.csv"
makes 1024 "MPI ONESHOT ONESHOT" --against none --numerics stable

# A named class; and the spec.
generate --against none --numerics stable=TWOSHOT
cp -R "$data" "$WORK/named"
generate --against none --numerics same-as=TWOSHOT
diff -r "$data" "$WORK/named" || die "stable=TWOSHOT is not same-as=TWOSHOT"
generate --against none
if grep -q numerics "$data/thresholds.json"; then die "numerics are restricted without an option"; fi
echo 'return { arch = "host", tp = { 2 }, hidden_sizes = { 1024 }, num_tokens = { 1, 16, 256 },
  choice = { numerics = "stable" }, table = { dtype = "bfloat16", op = "allreduce" } }' >"$data/spec.lua"
generate --against none
has '"numerics": "stable"' "$data/thresholds.json"
by_bytes "MPI ONESHOT"
succeeds report --data-dir "$data" --arch host --out "$WORK/page"
has "choices? differs? from those of --numerics any" "$WORK/page/report.html"
rejects "stable=AUTO is no class" generate --data-dir "$data" --arch host --numerics stable=AUTO
