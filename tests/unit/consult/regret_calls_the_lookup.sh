#!/bin/sh
# gentables regret: the loss of an artifact's own lookup on fresh rows, beyond their intervals and as
# measured; unmeasured shapes; shapes that share a cell; TensorRT-LLM's flooring; headers of others.
. "$SOURCE/tests/lib.sh"

columns="$header,low (us),high (us)"
prints() { # PATTERN: an extended expression, found in stdout
    grep -Eq -- "$1" "$stdout" || die "stdout lacks: $1"
}
begin() { # FILE
    mkdir -p "$(dirname -- "$1")"
    file=$1
    echo "$columns" >"$file"
}
time_of() { # HIDDEN TOKENS STRATEGY TIME LOW HIGH [TP]
    tp=${7:-2}
    echo "$tp,bfloat16,$((2 * $1 * $2)),$2,$1,$3,NONE,allreduce,$4,$5,$6" >>"$file"
}
regret() { # TABLE ROWS OPTION...
    table=$1 rows=$2
    shift 2
    succeeds regret --table "$table" --rows "$rows" "$@"
}

# ONESHOT up to 16 tokens, TWOSHOT from 256 on.
begin "$WORK/rows/benchmark.tp2.sm90.csv"
for tokens in 1 16; do
    time_of 1024 $tokens ONESHOT 10 9.9 10.1
    time_of 1024 $tokens TWOSHOT 30 29 31
done
time_of 1024 256 ONESHOT 30 29 31
time_of 1024 256 TWOSHOT 10 9.9 10.1
succeeds generate --data-dir "$WORK/rows" --arch sm90 --formats c,table,trtllm,thresholds --choose corner

# Fresh rows: at 63 tokens the header answers ONESHOT (the border is 64), as is best, and flooring reads 32,
# the same; at 100 the header answers TWOSHOT, where ONESHOT takes 10 (9 to 12) against 15 (14 to 16): 50 %,
# of which 14 to 12 are certain. Flooring reads 64, the nearest of which is 16, and has ONESHOT.
begin "$WORK/benchmark.tp2.sm90.csv"
time_of 1024 63 ONESHOT 10 9 11
time_of 1024 63 TWOSHOT 20 19 21
time_of 1024 100 ONESHOT 10 9 12
time_of 1024 100 TWOSHOT 15 14 16
time_of 1024 256 ONESHOT 40 39 41
time_of 1024 256 TWOSHOT 10 9 11
fresh=$WORK/benchmark.tp2.sm90.csv
regret "$WORK/rows/allreduce_table.h" "$fresh"
prints '3 shapes looked up'
prints '^ +regret +mean +p99 +worst$'
prints 'outside the rows. intervals +5.56 % +16.67 % +16.67 %'
prints 'as measured +16.67 % +50.00 % +50.00 %'
# 100 and 256 tokens share a threshold; either choice is wrong for one of them.
prints '1 cell has several shapes, 2 in all; in 1 no choice is the best for all'
prints 'by the floor of log2'
[ "$(sed -n '/floor of log2/,$p' "$stdout" | grep -Ec 'intervals +0\.00 % +0\.00 % +0\.00 %')" = 1 ] ||
    die "flooring reads ONESHOT at 100 tokens, which is right"
if sed -n '/floor of log2/,$p' "$stdout" | grep -q 'fallback'; then
    die "by flooring, a shape is outside the table"
fi
prints '100 tokens: TWOSHOT takes 15.00 us, ONESHOT 10.00 \(50.00 %\)'
# A certain loss is certain against every strategy, not only the one with the least median: 19 to 21 against
# 10 to 10.2 is 86 %, though the best one's interval reaches to 30.
begin "$WORK/wide/benchmark.tp2.sm90.csv"
time_of 1024 16 ONESHOT 20 19 21
time_of 1024 16 TWOSHOT 10 9.9 30
time_of 1024 16 NCCL 10.1 10 10.2
regret "$WORK/rows/allreduce_table.h" "$file"
prints 'outside the rows. intervals +86.27 % +86.27 % +86.27 %'
regret "$WORK/rows/allreduce_table.h" "$fresh" --json
prints '"torn": 1'
prints '"flooring": \{'
# AUTO is fast at both, but is no choice of a table.
mkdir "$WORK/auto"
file=$WORK/auto/benchmark.tp2.sm90.csv
cp "$fresh" "$file"
time_of 1024 100 AUTO 10 9 12
time_of 1024 256 AUTO 10 9 11
regret "$WORK/rows/allreduce_table.h" "$file" --json
prints '"torn": 1'

# The table by the same lookup; the fragment by TensorRT-LLM's lookup; thresholds by bytes.
regret "$WORK/rows/table.csv" "$fresh"
prints 'as measured +16.67 % +50.00 % +50.00 %'
regret "$WORK/rows/thresholds.json" "$fresh"
prints 'as measured +16.67 % +50.00 % +50.00 %'
regret "$WORK/rows/generated_lookup_table.cpp" "$fresh"
prints '3 shapes looked up'

# Unmeasured shapes are reported, and not judged if the rows have no time of the fallback.
begin "$WORK/other/benchmark.tp4.sm90.csv"
time_of 1024 1 ONESHOT 10 9 11 4
time_of 1024 1 NCCL_SYMMETRIC 20 19 21 4
time_of 1024 2 ONESHOT 10 9 11 4
regret "$WORK/rows/allreduce_table.h" "$WORK/other/benchmark.tp4.sm90.csv"
prints '2 shapes unmeasured: the lookup returns the fallback'
prints '1 shape left out: no row of the strategy that the lookup returns'
prints 'as measured +100.00 % +100.00 % +100.00 %'
sed 's/bfloat16/float16/' "$fresh" >"$WORK/float16.csv"
ends_with 1 "$GENTABLES" regret --table "$WORK/rows/allreduce_table.h" --rows "$WORK/float16.csv"
prints '3 shapes of another data type, operation or fusion left out'

# The complete header for TensorRT-LLM, and one of another author, are called by their own lookup.
succeeds generate --data-dir "$WORK/rows" --arch all --out "$WORK/rows" --choose corner
regret "$WORK/rows/customAllReduceUtils.h" "$fresh"
prints '3 shapes looked up'
prints 'as measured'
# Its thresholds: from 256 tokens on TWOSHOT, 5; by bytes from above the geometric mean of 32 and 512 KiB.
whole=$WORK/rows/customAllReduceUtils.h
grep -Eq '\{1024, \{\{0, 4\}, \{256, 5\}\}\}' "$whole" || die "no thresholds by tokens"
grep -Eq '\{0, \{\{0, 4\}, \{131073, 5\}\}\}' "$whole" || die "no thresholds by bytes"
cat >"$WORK/theirs.h" <<'END'
#pragma once
#include "tensorrt_llm/common/cudaUtils.h"
#include "tensorrt_llm/kernels/customAllReduceKernels.h"
#include <unordered_map>

using tensorrt_llm::kernels::AllReduceFusionOp;
using tensorrt_llm::kernels::AllReduceStrategyType;
namespace tensorrt_llm::utils::customAllReduceUtils
{
using AllReduceBestStrategyTableType = std::vector<std::vector<std::vector<std::vector<int>>>>;
inline std::unordered_map<int, AllReduceBestStrategyTableType> AllReduceBestStrategyTable
    = {{90, {{{{5, 5}, {5, 5}, {5, 5}, {5, 5, 5, 5, 5, 4, 4}}}}}};
inline AllReduceStrategyType selectStrategyLookUpTable(size_t tokens, size_t hidden, AllReduceFusionOp, int)
{
    auto const& table = AllReduceBestStrategyTable.at(common::getSMVersion() < 100 ? 90 : 100);
    auto const t = static_cast<size_t>(std::log2(tokens)), h = static_cast<size_t>(std::log2(hidden) - 7);
    if (h >= table[0][0].size() || t >= table[0][0][h].size()) return AllReduceStrategyType::NCCL_SYMMETRIC;
    return static_cast<AllReduceStrategyType>(table[0][0][h][t]);
}
} // namespace tensorrt_llm::utils::customAllReduceUtils
END
regret "$WORK/theirs.h" "$fresh"
prints '1 shape unmeasured: the lookup returns the fallback' # 256 tokens are beyond its table
prints 'as measured +0.00 % +0.00 % +0.00 %' # 4, ONESHOT, at 63 and 100
regret "$WORK/theirs.h" "$WORK/float16.csv" --sm 90
ends_with 2 "$GENTABLES" regret --table "$WORK/theirs.h" --rows "$WORK/float16.csv"
one_line 'has several SM versions.*; select one, as in --sm 90'
rejects '--sm: .* is not a whole number' regret --table "$WORK/theirs.h" --rows "$fresh" --sm x

# A file that is no artifact, or does not compile, is reported.
echo nothing >"$WORK/nothing"
rejects 'is none of allreduce_table.h' regret --table "$WORK/nothing" --rows "$fresh"
sed 's/^struct /struct static /' "$WORK/rows/allreduce_table.h" >"$WORK/broken.h"
rejects 'broken.h: does not compile' regret --table "$WORK/broken.h" --rows "$fresh"
echo '{"format": "gentables thresholds"}' >"$WORK/thresholds.json"
rejects 'is no file of thresholds' regret --table "$WORK/thresholds.json" --rows "$fresh"
