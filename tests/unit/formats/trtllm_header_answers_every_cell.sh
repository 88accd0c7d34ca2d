#!/bin/sh
# customAllReduceUtils.h, over several SM versions with odd sizes and holes: it compiles with TensorRT-LLM's
# includes, returns the strategy of every cell of table.csv, and the documented one for all other shapes.
. "$SOURCE/tests/readers/lib.sh"
here=$SOURCE/tests/unit/formats
tables=$WORK/tables

# Rows of all kinds: tp, hidden, tokens; winners by a rule of their own; one cell in seven is missing.
make_rows() { # SM TP HIDDEN... : a file
    sm=$1 tp=$2
    shift 2
    mkdir -p "$tables/sm$sm"
    echo "$header" >"$tables/sm$sm/benchmark.tp$tp.sm$sm.csv"
    for hidden; do
        for tokens in 1 2 8 64 100 4096; do
            for fusion in NONE RESIDUAL_RMS_NORM RESIDUAL_RMS_NORM_QUANT_NVFP4; do
                number=$((sm + 3 * tp + hidden + 5 * tokens + ${#fusion}))
                [ $((number % 7)) = 0 ] && continue
                for strategy in NCCL ONESHOT TWOSHOT NCCL_SYMMETRIC; do
                    number=$(((number * 31 + 7) % 1009))
                    bytes=$((2 * hidden * tokens))
                    echo "$tp,bfloat16,$bytes,$tokens,$hidden,$strategy,$fusion,allreduce,$number.5"
                done
            done
        done
    done >>"$tables/sm$sm/benchmark.tp$tp.sm$sm.csv"
}
make_rows 89 2 128 4096
make_rows 90 2 1024 2880 8192
make_rows 90 3 2880
make_rows 90 8 128
make_rows 100 4 1024
make_rows 120 2 7168
mkdir "$tables/host" "$tables/sm90-loopback"
cp "$tables/sm90/benchmark.tp2.sm90.csv" "$tables/host/benchmark.tp2.host.csv"
cp "$tables/sm90/benchmark.tp2.sm90.csv" "$tables/sm90-loopback/benchmark.tp2.sm90-loopback.csv"

succeeds generate --data-dir "$tables" --arch all --out "$WORK/include/tensorrt_llm/common" --choose corner
for sm in 89 90 100 120; do
    succeeds generate --data-dir "$tables/sm$sm" --arch sm$sm --out "$WORK/sm$sm" \
        --formats table --choose corner
done
made=$WORK/include/tensorrt_llm/common/customAllReduceUtils.h
has 'for SM 89, 90, 100, 120\.' "$made"
if grep -qi 'host\b.*allreduce\|loopback' "$made"; then
    die "the header has a table of the host or of loopback"
fi

# The expected answers: of the cells, then of shapes outside, which get NCCL, 0.
awk -F, 'BEGIN { number["NCCL"] = 0; number["ONESHOT"] = 4; number["TWOSHOT"] = 5
                 number["NCCL_SYMMETRIC"] = 8; number["unmeasured"] = 0; fusion["NONE"] = 0
                 fusion["RESIDUAL_RMS_NORM"] = 1
                 fusion["RESIDUAL_RMS_NORM_QUANT_NVFP4"] = 5 }
         FNR > 1 { print substr($1, 3), $2, fusion[$3], $7, $8 >questions; print number[$9] >answers }' \
    questions="$WORK/questions" answers="$WORK/answers" "$WORK"/sm*/table.csv
[ "$(wc -l <"$WORK/questions")" -gt 100 ] || die "too few cells"
cells=$(wc -l <"$WORK/questions")
cell() { # SM TP FUSION HIDDEN TOKENS: the choice in table.csv
    awk -F, -v tp="$2" -v fusion="$3" -v hidden="$4" -v tokens="$5" '
        BEGIN { number["NCCL"] = 0; number["ONESHOT"] = 4; number["TWOSHOT"] = 5; number["NCCL_SYMMETRIC"] = 8
                number["unmeasured"] = 0 }
        $2 == tp && $3 == fusion && $7 == hidden && $8 == tokens { print number[$9] }' "$WORK/sm$1/table.csv"
}
expect() { # ANSWER SM TP FUSION-NUMBER HIDDEN TOKENS
    echo "$1" >>"$WORK/answers"
    shift
    echo "$@" >>"$WORK/questions"
}
for tp in 0 1 5 6 7 16 -3 1024; do expect 0 90 "$tp" 0 1024 8; done # no such TP size: never a neighbour's row
expect "$(cell 90 3 NONE 2880 8)" 90 3 0 2880 8                     # TP 3 was measured
for hidden in 0 1 127 16384 999999999; do expect 0 90 8 0 $hidden 8; done
for tokens in 0 8192 18446744073709551615; do expect 0 90 8 0 128 $tokens; done
expect "$(cell 90 8 NONE 128 4096)" 90 8 0 255 8191 # the last answers below its double
expect "$(cell 90 2 NONE 1024 8)" 90 2 0 2047 63    # the floor of both
for op in 2 3 11 77; do expect 0 90 2 $op 1024 8; done # fusions without a table
expect "$(cell 90 2 RESIDUAL_RMS_NORM_QUANT_NVFP4 1024 8)" 90 2 7 1024 8
expect "$(cell 90 2 RESIDUAL_RMS_NORM_QUANT_NVFP4 1024 8)" 90 2 10 1024 8
expect "$(cell 89 2 NONE 128 8)" 80 2 0 128 8 # older than all: the oldest
expect "$(cell 100 4 NONE 1024 8)" 103 4 0 1024 8
expect "$(cell 120 2 NONE 7168 8)" 121 2 0 7168 8

[ -n "$(compilers c++)" ] || skip "no C++ compiler"
for compiler in $(compilers c++); do
    for options in -std=c++17 "-std=c++20 -I $here/trtllm_newer"; do
        # shellcheck disable=SC2086
        "$compiler" $options -O0 -Wall -Wextra -Wshadow -Wconversion -Werror \
            -I "$WORK/include" -I "$here/trtllm" "$here/trtllm/call_lookup.cpp" -o "$WORK/ask" \
            >"$stdout" 2>"$stderr" ||
            die "$compiler $options"
        workspaces="16000000 8000000 16000000 8000000"
        [ "$options" = -std=c++17 ] || workspaces="67108864 67108864 4096 4096"
        {
            "$WORK/ask" workspaces
            TRTLLM_ALLREDUCE_FUSION_WORKSPACE_SIZE=4096 "$WORK/ask" workspaces
        } | tr '\n' ' ' >"$WORK/found"
        [ "$(cat "$WORK/found")" = "$workspaces " ] || die "$options: workspaces of $(cat "$WORK/found")"
    done
    "$WORK/ask" <"$WORK/questions" >"$WORK/said" || die "$(cat "$WORK/said")"
    cut -d' ' -f1 "$WORK/said" | paste -d' ' "$WORK/questions" - "$WORK/answers" |
        awk '$6 != $7' >"$WORK/wrong"
    [ ! -s "$WORK/wrong" ] || die "sm tp fusion hidden tokens, result, expected: $(head -3 "$WORK/wrong")"
    # The thresholds give the same at every cell.
    head -n "$cells" "$WORK/said" | awk '$1 != $3' >"$WORK/wrong"
    [ ! -s "$WORK/wrong" ] || die "table, LP, by tokens, by bytes: $(head -3 "$WORK/wrong")"
    [ "$(wc -l <"$WORK/said")" = "$(wc -l <"$WORK/questions")" ] || die "fewer answers than questions"
done

asked=$(wc -l <"$WORK/questions")
counts trtllm-header "TensorRT-LLM's names, its lookups compiled" 'C++17 and C++20' "$asked" "$asked"

# A wrong choice is noticed.
altered=$WORK/altered/tensorrt_llm/common
mkdir -p "$altered"
sed '/^ *{[0-9]/s/4/5/' "$made" >"$altered/customAllReduceUtils.h"
ends_with 0 "$compiler" -std=c++17 -I "$WORK/altered" -I "$here/trtllm" "$here/trtllm/call_lookup.cpp" \
    -o "$WORK/ask_altered"
"$WORK/ask_altered" <"$WORK/questions" | cut -d' ' -f1 >"$WORK/said"
if cmp -s "$WORK/said" "$WORK/answers"; then die "a wrong choice is not noticed"; fi

# Rows of an SM version in two places, and none at all.
cp "$tables/sm90/benchmark.tp2.sm90.csv" "$tables"
rejects 'has rows of sm90, and so has' generate --data-dir "$tables" --arch all --out "$WORK/out"
rejects 'has no benchmark.tp\{N\}.smXX.csv' generate --data-dir "$tables/host" --arch all --out "$WORK/out"
ends_with 2 "$GENTABLES" generate --data-dir "$golden" --arch sm90 --out "$WORK/out" --formats trtllm-header
one_line 'names no format of sm90'
