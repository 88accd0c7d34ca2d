#!/bin/sh
# For any dialect of CSV, order of columns or order of rows, the artifacts have the same bytes.
. "$SOURCE/tests/lib.sh"

# same: expects that the artifacts of $WORK/data are the golden ones.
same() {
    succeeds check --data-dir "$WORK/data" --arch sm90 --tables "$golden" --formats trtllm,c,table,report
}

fresh() {
    rm -rf "$WORK/data"
    mkdir "$WORK/data"
    cp "$golden"/benchmark.*.csv "$WORK/data"
}

# through PROGRAM: sends the file of TP 2 through an awk program.
through() {
    fresh
    awk -F, -v OFS=, "$1" "$golden/benchmark.tp2.sm90.csv" >"$WORK/data/benchmark.tp2.sm90.csv"
    same
}

fresh && same
through '{ printf "%s\r\n", $0 }'
through 'NR == 1 { printf "\357\273\277" } { print }'
through '{ for (i = 1; i <= NF; i++) $i = "\"" $i "\"" } 1'
through '{ print } END { print "" }'
through '{ print $9, $8, $7, $6, $5, $4, $3, $2, $1 }'
through '{ print $0, NR == 1 ? "algbw" : "whatever" }'
through 'NR == 1; NR > 1 { line[NR] = $0 } END { for (i = NR; i > 1; i--) print line[i] }'
through 'NR > 1 { sub(/bfloat16/, "bf16") } 1'
through 'NR > 1 { $9 = sprintf("%.17e", $9) } 1'

# TensorRT-LLM's --benchmark mode: other names, no op, and 0.0 for unmeasured times.
rm -rf "$WORK/data"
rows "$WORK/plain/benchmark.tp2.sm90.csv" "$row"
mkdir "$WORK/data"
cat >"$WORK/data/benchmark.tp2.sm90.csv" <<END
world_size,dtype,fusion,num_tokens,hidden_size,size_bytes,strategy,time_us,algbw_GBps
2,bfloat16,NONE,1,1024,2048,NCCL,9.5,0.2
2,bfloat16,NONE,1,1024,2048,ONESHOT,0.0,0.0
END
succeeds generate --data-dir "$WORK/data" --arch sm90 --formats table
one_line 'benchmark.tp2.sm90.csv: 0.0 is a missing time, not a fast one: 1 left out'
cp "$WORK/data/table.csv" "$WORK/of_benchmark_mode.csv"
succeeds generate --data-dir "$WORK/plain" --arch sm90 --formats table
cmp "$WORK/plain/table.csv" "$WORK/of_benchmark_mode.csv" || die "another table"

# A file with only 0.0 beside one with times: reported, and skipped.
sed 's/NCCL,9.5,0.2/NCCL,0.0,0.0/' "$WORK/data/benchmark.tp2.sm90.csv" >"$WORK/plain/benchmark.tp4.sm90.csv"
sed -i 's/^2,/4,/' "$WORK/plain/benchmark.tp4.sm90.csv"
succeeds generate --data-dir "$WORK/plain" --arch sm90 --formats table
one_line 'benchmark.tp4.sm90.csv: .* 2 left out, and no row remains'
