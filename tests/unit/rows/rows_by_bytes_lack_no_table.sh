#!/bin/sh
# Rows of GPUs by bytes alone make all formats that can hold them; formats by tokens and hidden size are
# skipped, with a message, and rejected if they were requested.
. "$SOURCE/tests/lib.sh"

mkdir "$WORK/rows"
cat >"$WORK/rows/benchmark.tp2.sm90.csv" <<'END'
world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us)
2,bfloat16,2048,,,NCCL,NONE,allreduce,9.5
2,bfloat16,2048,,,ONESHOT,NONE,allreduce,4.5
2,bfloat16,2048,,,NCCL,NONE,allgather,8.5
END
succeeds generate --data-dir "$WORK/rows" --arch sm90
grep -q "generated_lookup_table.cpp: left out: no row has tokens" "$stderr" || die "not printed"
for made in table.csv allreduce_table.h report.md; do
    [ -f "$WORK/rows/$made" ] || die "no $made"
done
[ ! -e "$WORK/rows/generated_lookup_table.cpp" ] || die "a table without an entry"
succeeds check --data-dir "$WORK/rows" --arch sm90 --tables "$WORK/rows"
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/rows" --arch sm90 --formats trtllm
grep -q "no row has tokens and a hidden size" "$stderr" || die "another refusal"
