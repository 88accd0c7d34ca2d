#!/bin/sh
# The options of a choice: all shapes of a bin or its corner, a workload, one numerics class, the incumbent
# that hardly loses. And gentables regret, which calls the artifact's own lookup.
. "$(dirname -- "$0")/lib.sh"
columns="$header,low (us),high (us),launches (us),bits"
prints() {
    grep -Fq -- "$1" "$stdout" || die "stdout lacks: $1"
}
# time_of TOKENS STRATEGY TIME LOW HIGH LAUNCHES BITS
time_of() {
    echo "2,bfloat16,$(($1 * 2048)),$1,1024,$2,NONE,allreduce,$3,$4,$5,$6,$7" >>"$data/benchmark.tp2.host.csv"
}
# winner TOKENS: the table's choice
winner() {
    awk -F, -v tokens="$1" '$8 == tokens { print $9 }' "$data/table.csv"
}
wins() { # TOKENS STRATEGY
    [ "$(winner "$1")" = "$2" ] || die "$1 tokens: $(winner "$1"), not $2"
}

# At 1 token ONESHOT is 5 % better, but nearly all of that bin's shapes lie where TWOSHOT is twice as good.
begin
time_of 1 ONESHOT 10 9.9 10.1 "" "0a"
time_of 1 TWOSHOT 10.5 10.4 10.6 "" "0b"
time_of 16 ONESHOT 40 39 41 "" "0a"
time_of 16 TWOSHOT 20 19 21 "" "0b"
makes 1 TWOSHOT
grep -q 'least expected loss over all shapes that a lookup sends' "$data/report.md" || die "not the rule"
makes 1 ONESHOT --choose corner
grep -q "shortest time at the cell's own shape" "$data/report.md" || die "the report has the rule of bins"

# A workload that never leaves the corner chooses for the corner.
printf 'tokens,hidden_size,weight\n1,1024,0.9\n16,1024,0.1\n' >"$WORK/workload.csv"
makes 1 ONESHOT --workload "$WORK/workload.csv"
printf 'tokens,hidden_size,weight\n1,1024,1\n3,1024,9\n' >"$WORK/workload.csv"
makes 1 TWOSHOT --workload "$WORK/workload.csv"
# Files mention the workload, with a hash of its content, if their format has comments and the choice uses it.
made_for='for the 2 shapes of workload.csv, by their weights (hash '
grep -q "^ \* chosen $made_for" "$data/allreduce_table.h" || die "the header does not name the workload"
grep -q "choices are $made_for" "$data/report.md" || die "the report does not name the workload"
if grep -q "workload" "$data/thresholds.json"; then die "thresholds by bytes are not made for a workload"; fi
cp "$data/allreduce_table.h" "$WORK/before.h"
printf 'tokens,hidden_size,weight\n1,1024,1\n3,1024,10\n' >"$WORK/workload.csv"
generate --workload "$WORK/workload.csv"
if cmp -s "$data/allreduce_table.h" "$WORK/before.h"; then
    die "the header is the same for another workload"
fi
generate
if grep -q "workload" "$data/allreduce_table.h" "$data/report.md"; then
    die "a workload is mentioned without one"
fi
generate --workload "$WORK/workload.csv"

# Weights too large for a sum, and weights near zero, work like others.
for weights in 1.2e307,1.08e308 5e-324,4.5e-323; do
    printf 'tokens,hidden_size,weight\n1,1024,%s\n3,1024,%s\n3,1024,%s\n' \
        "${weights%,*}" "${weights#*,}" "${weights#*,}" >"$WORK/workload.csv"
    makes 1 TWOSHOT --workload "$WORK/workload.csv"
    printf 'tokens,hidden_size,weight\n1,1024,%s\n1,1024,%s\n3,1024,%s\n' \
        "${weights#*,}" "${weights#*,}" "${weights%,*}" >"$WORK/workload.csv"
    makes 1 ONESHOT --workload "$WORK/workload.csv"
done

# Numerics: only those with the bits of ONESHOT.
class_of() { # STRATEGIES SHAPES MEAN WORST: expects this class in the report
    grep -Fq "| NONE | $1 | $2 | $3 % | $4 % |" "$data/report.md" || die "no such class: $*"
}
makes 16 ONESHOT --numerics same-as=ONESHOT
grep -q 'only choices with the bits of ONESHOT' "$data/report.md" || die "the report lacks it"
if grep -q TWOSHOT "$data/thresholds.json"; then die "thresholds have other bits"; fi
makes 16 TWOSHOT --numerics any
grep -q TWOSHOT "$data/thresholds.json" || die "thresholds lack what is best"
class_of ONESHOT "2 of 2" 50.0 100.0
class_of TWOSHOT "2 of 2" 2.5 5.0
# Strategies that have equal bits at all sizes known of both are one class, which then costs nothing; with
# different bits at one size there are two.
begin
time_of 1 ONESHOT 10 9.9 10.1 "" "0a"
time_of 1 TWOSHOT 20 19 21 "" "0a"
time_of 16 ONESHOT 40 39 41 "" "0b"
time_of 16 TWOSHOT 20 19 21 "" ""
generate --against none
class_of "ONESHOT, TWOSHOT" "2 of 2" 0.0 0.0
sed -i 's/^\(.*TWOSHOT.*,19,21,,\)$/\10c/' "$data/benchmark.tp2.host.csv"
generate --against none
class_of ONESHOT "2 of 2" 50.0 100.0

# The incumbent stays if it hardly loses; without it the least expected loss wins.
begin
time_of 1 ONESHOT 10 9 11 "10;9;11;10;10" ""
time_of 1 TWOSHOT 10.01 9 11 "10.01;9.02;11;10.02;9.99" ""
makes 1 ONESHOT --against none
sed 's/,ONESHOT,10.0000,TWOSHOT/,TWOSHOT,10.0100,ONESHOT/' "$data/table.csv" >"$WORK/incumbent.csv"
makes 1 TWOSHOT --against "$WORK/incumbent.csv"
makes 1 TWOSHOT # the existing table is the incumbent
succeeds check --data-dir "$data" --arch host
begin
time_of 1 ONESHOT 10 9 11 "10;9;11;10;10" ""
time_of 1 TWOSHOT 10.9 9 12 "10.9;9.8;12;10.9;10.9" ""
makes 1 ONESHOT --against "$WORK/incumbent.csv"

# Regret calls the header's own lookup: no loss on the rows that it was made from, some on others.
succeeds regret --table "$data/allreduce_table.h" --rows "$data/benchmark.tp2.host.csv" --json
prints '"worst": []'
begin
time_of 1 ONESHOT 30 29 31 "" ""
time_of 1 TWOSHOT 10 9.9 10 "" ""
cp "$data/benchmark.tp2.host.csv" "$WORK/benchmark.tp2.host.csv"
begin
time_of 1 ONESHOT 10 9 11 "" ""
time_of 1 TWOSHOT 20 19 21 "" ""
generate
succeeds regret --table "$data/allreduce_table.h" --rows "$WORK/benchmark.tp2.host.csv"
prints "outside the rows' intervals"
prints "190.00 %" # 29 against 10
prints "200.00 %" # 30 against 10
ends_with 1 "$GENTABLES" regret --table "$data/table.csv" --rows "$WORK/benchmark.tp2.host.csv" --most 0.01

# Fewer thresholds within a given regret: TWOSHOT is 3 % better only at 16 tokens.
begin
for tokens in 1 256; do
    time_of $tokens ONESHOT 10 9.99 10.01 "" ""
    time_of $tokens TWOSHOT 12 11.99 12.01 "" ""
done
time_of 16 ONESHOT 10.3 10.29 10.31 "" ""
time_of 16 TWOSHOT 10 9.99 10.01 "" ""
makes 16 TWOSHOT --choose corner --against none
makes 16 TWOSHOT --choose corner --against none --regret 0.02
generate --choose corner --against none --regret 0.05
grep -q 'or loses at most 5 % for fewer borders' "$data/report.md" || die "not the regret"
wins 16 ONESHOT
grep -q '{[0-9]*}}, .* 1024: ONESHOT' "$data/allreduce_table.h" || die "the header has more than one strategy"
echo 'return { arch = "host", tp = { 2 }, dtypes = { "bfloat16" }, hidden_sizes = { 1024 },
  num_tokens = { 1, 16, 256 }, fusions = { "NONE" },
  choice = { at = "corner", regret = 0.05 } }' >"$data/spec.lua"
generate --against none
[ "$(winner 16 | grep -v unmeasured)" = ONESHOT ] || die "a spec" # its mode has no row
rm "$data/spec.lua"

# Invalid input: one line each, and nothing is guessed.
refused() { # PATTERN OPTION...
    pattern=$1
    shift
    rejects "$pattern" generate --data-dir "$data" --arch host "$@"
}
refused "nonsense is no class" --numerics nonsense
refused "regret: -1 is no share of time" --regret -1
refused "regret: much is no share of time" --regret much
refused "valid: bin, corner" --choose middle
printf 'tokens,hidden_size,weight\n1,1024,-1\n' >"$WORK/workload.csv"
refused "workload.csv:2: a weight of -1" --workload "$WORK/workload.csv"
printf 'tokens,hidden_size,weight\n1,99999,1\n' >"$WORK/workload.csv"
refused "workload.csv:2: 1 tokens of hidden size 99999 lie outside" --workload "$WORK/workload.csv"
printf 'tokens,weight\n' >"$WORK/workload.csv"
refused "workload.csv:1: tokens,weight; a workload begins with tokens,hidden_size,weight" \
    --workload "$WORK/workload.csv"
refused "absent.csv" --against "$WORK/absent.csv"
rejects "is none of allreduce_table.h" regret --table "$WORK/workload.csv" \
    --rows "$WORK/benchmark.tp2.host.csv"
