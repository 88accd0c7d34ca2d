#!/bin/sh
# A table of one numerics class: no cell, derived ones and those at the edge included, has other bits, and
# every file that can mentions the class.
. "$(dirname -- "$0")/lib.sh"
columns="$header,low (us),high (us),bits"
# time_of FUSION TOKENS STRATEGY TIME BITS [FILE]
time_of() {
    echo "2,bfloat16,$(($2 * 2048)),$2,1024,$3,$1,allreduce,$4,$4,$4,$5" \
        >>"$data/${6:-benchmark.tp2.host.csv}"
}
# winners FUSION: the choices of the table, in the order of the token counts
winners() {
    awk -F, -v fusion="$1" '$3 == fusion { printf "%s%s", sep, $9; sep = " " }' "$data/table.csv"
}
wins() { # FUSION STRATEGIES
    [ "$(winners "$1")" = "$2" ] || die "$1: $(winners "$1"), not $2"
}
generate() { # OPTION...
    succeeds generate --data-dir "$data" --arch host --against none "$@"
}
has() { # FILE TEXT
    grep -Fq -- "$2" "$data/$1" || die "$1 lacks: $2"
}
lacks() { # FILE TEXT
    if grep -Fq -- "$2" "$data/$1"; then die "$1 has: $2"; fi
}
class_of() { # FUSION STRATEGIES: expects this class in the report
    has report.md "| $1 | $2 |"
}

# Bits that differ only off the table's grid count, too: the report's classes are the table's.
begin
echo 'return { arch = "host", tp = { 2 }, dtypes = { "bfloat16" }, hidden_sizes = { 1024 },
  num_tokens = { 1, 16 }, fusions = { "NONE" },
  table = { dtype = "bfloat16", op = "allreduce", mode = "eager" } }' >"$data/spec.lua"
sed -i '1s/$/,mode/' "$data/benchmark.tp2.host.csv"
for tokens in 1 4 16; do
    time_of NONE $tokens ONESHOT 20 "0a,eager"
    time_of NONE $tokens TWOSHOT 10 "$([ $tokens = 4 ] && echo 0b || echo 0a),eager"
done
makes NONE "ONESHOT ONESHOT" --numerics same-as=ONESHOT
class_of NONE ONESHOT
class_of NONE TWOSHOT
makes NONE "TWOSHOT TWOSHOT"
sed -i 's/,0b,/,0a,/' "$data/benchmark.tp2.host.csv"
makes NONE "TWOSHOT TWOSHOT" --numerics same-as=ONESHOT
class_of NONE "ONESHOT, TWOSHOT"

# Strategies with varying bits are in no class; unknown bits (rows of another tool) are no evidence.
begin
for tokens in 1 16; do time_of NONE $tokens ONESHOT 20 0a; done
time_of NONE 1 TWOSHOT 10 0a
time_of NONE 16 TWOSHOT 10 varies
makes NONE "ONESHOT ONESHOT" --numerics same-as=ONESHOT
has report.md "TP 2, NONE: bits that are not the same each time, no class: TWOSHOT."
lacks report.md "| NONE | TWOSHOT |"
makes NONE "TWOSHOT TWOSHOT" --numerics same-as=TWOSHOT # the requested strategy, whatever its bits
sed -i 's/,varies$/,/' "$data/benchmark.tp2.host.csv"
makes NONE "TWOSHOT TWOSHOT" --numerics same-as=ONESHOT
lacks report.md "not the same each time"

# If nothing of the class was measured, programs get the requested strategy, not MPI.
begin
for tokens in 1 16; do
    time_of NONE $tokens ONESHOT 20 0a
    time_of NONE $tokens MPI 10 0c
    time_of RESIDUAL_RMS_NORM $tokens MPI 10 0c
done
generate
cp -R "$data" "$WORK/any"
lacks allreduce_table.h numerics
lacks thresholds.json numerics
has thresholds.json '"fallback": "MPI"'
makes RESIDUAL_RMS_NORM "unmeasured unmeasured" --numerics same-as=ONESHOT
has allreduce_table.h "numerics same-as=ONESHOT: only strategies with the bits of ONESHOT"
has allreduce_table.h "FALLBACK = 0, /* ONESHOT */"
lacks allreduce_table.h MPI
has thresholds.json '"numerics": "same-as=ONESHOT"'
has thresholds.json '"fallback": "ONESHOT"'
lacks thresholds.json MPI
has report.md "numerics same-as=ONESHOT"
has report.md "an unmeasured TP size, fusion or cell gets ONESHOT"
has best_strategy.svg "numerics same-as=ONESHOT"
generate --numerics any
for file in "$WORK/any"/*; do
    cmp -s "$file" "$data/${file##*/}" || die "${file##*/}: other bytes once nothing is restricted"
done

# A format with a reader that has a rule of its own reports that.
begin
mv "$data/benchmark.tp2.host.csv" "$data/benchmark.tp2.sm90.csv"
time_of NONE 1 ONESHOT 20 0a benchmark.tp2.sm90.csv
time_of NONE 1 NCCL 10 0c benchmark.tp2.sm90.csv
for arch in sm90 all; do
    succeeds generate --data-dir "$data" --arch $arch --against none --numerics same-as=ONESHOT
done
has customAllReduceUtils.h "may have other bits"
has report.md "always use NCCL; these choices may have other bits than ONESHOT"
has report.md "generated_lookup_table.cpp, table.csv have no line about this"
has allreduce_table.h "FALLBACK = 0, /* ONESHOT */"

# Quantisers hide differences: strategies that differ before them differ after them.
begin
for tokens in 1 16; do
    for fusion in RESIDUAL_RMS_NORM RESIDUAL_RMS_NORM_QUANT_NVFP4; do
        time_of $fusion $tokens ONESHOT 20 0a
        time_of $fusion $tokens MPI 15 0a
        time_of $fusion $tokens TWOSHOT 10 "$([ $fusion = RESIDUAL_RMS_NORM ] && echo 0b || echo 0a)"
    done
    time_of RESIDUAL_RMS_NORM_QUANT_FP8 $tokens ONESHOT 20 0a
    time_of RESIDUAL_RMS_NORM_QUANT_FP8 $tokens SYMM_MEM 10 0a
done
makes RESIDUAL_RMS_NORM "MPI MPI" --numerics same-as=ONESHOT
wins RESIDUAL_RMS_NORM_QUANT_NVFP4 "MPI MPI"
class_of RESIDUAL_RMS_NORM_QUANT_NVFP4 TWOSHOT
wins RESIDUAL_RMS_NORM_QUANT_FP8 "SYMM_MEM SYMM_MEM" # its plain sums were not measured

rejects "same-as=AUTO is no class" generate --data-dir "$data" --arch host --numerics same-as=AUTO
