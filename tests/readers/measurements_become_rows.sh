#!/bin/sh
# Measurements of other programs become rows: each format is recognised by its content.
. "$(dirname -- "$0")/lib.sh"
ours='world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us),low (us),high (us),samples,'
ours=$ours'min (us),p95 (us),p99 (us),skew (us),bound (us),mode,accumulate,placement,launches (us),bits'
rows=$WORK/rows.csv
unknown=unknown,,unknown,,

# TensorRT-LLM's generations B, C, D and --benchmark mode contain the same; A needs the mode of calls as an
# option.
for generation in b.csv c.csv d.csv benchmark.csv; do
    imports "$inputs/trtllm_$generation" "$rows"
    lines "$rows" 3
    has_lines "$rows" "$ours" \
        '2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,8.5000,,,,,,,,,unknown,,unknown,,' \
        '2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5000,,,,,,,,,unknown,,unknown,,'
done
grep -q '2 rows, 1 without a time left out' "$stdout" || die "a 0.0 is not reported"
has_lines "$WORK/rows.json" '    "imported": "benchmark-csv"'
imports "$rows" "$WORK/again.csv"
cmp "$rows" "$WORK/again.csv" || die "our own rows change"
imports "$inputs/trtllm_a.txt" "$rows" --calls 1000
has_lines "$rows" '2,bfloat16,16384,,,ONESHOT,NONE,allreduce,12.5000,,,,,,,,,unknown,,unknown,,'
imports "$inputs/trtllm_a.txt" "$rows" --calls 1000 --hidden-size 4096
has_lines "$rows" '2,bfloat16,16384,2,4096,NCCL,NONE,allreduce,14.5000,,,,,,,,,unknown,,unknown,,'

# nccl-tests: ranks, mode and placement from its own lines; wrong sums have no time.
imports "$inputs/nccl_tests.txt" "$rows"
lines "$rows" 3
has_lines "$rows" '2,bfloat16,8,,,NCCL,NONE,allreduce,11.2000,,,,,,,,,eager,,dedicated,,'
has_lines "$WORK/rows.json" '    "gpu": "2 NVIDIA H100 80GB HBM3"' '    "imported": "nccl-tests"' \
    '      "reason": "nccl-tests: 3 wrong elements",'
imports "$inputs/nccl_tests.txt" "$rows" --in-place --strategy NCCL_SYMMETRIC
lines "$rows" 4
has_lines "$rows" '2,bfloat16,8,,,NCCL_SYMMETRIC,NONE,allreduce,11.0000,,,,,,,,,eager,,dedicated,,'
imports "$inputs/nccl_tests_2.10.txt" "$rows"
has_lines "$rows" '2,float32,2048,,,NCCL,NONE,allreduce,1234.5000,,,,,,,,,graph,,loopback,,'
grep -v Rank "$inputs/nccl_tests.txt" >"$WORK/pasted.txt"
imports "$WORK/pasted.txt" "$rows" --tp 4
has_lines "$rows" '4,bfloat16,8,,,NCCL,NONE,allreduce,11.2000,,,,,,,,,eager,,unknown,,'
imports "$inputs/nccl_tests.json" "$rows"
has_lines "$rows" '2,bfloat16,8,,,NCCL,NONE,allreduce,11.2000,,,,,,,,,eager,,dedicated,,'
imports "$inputs/nccl_tests.txt" "$rows" --hidden-size 4
has_lines "$rows" '2,bfloat16,16,2,4,NCCL,NONE,allreduce,11.5000,,,,,,,,,eager,,dedicated,,'

# Messages of nccl-tests are no shapes: a table of them has no hidden sizes.
imports "$inputs/nccl_tests.txt" "$WORK/by_size" --arch sm90
succeeds generate --data-dir "$WORK/by_size" --arch sm90 --out "$WORK/by_size"
has 'generated_lookup_table.cpp: left out: no row has tokens and a hidden size' "$stderr"
has '^sm90,2,NONE,bfloat16,allreduce,eager,,,NCCL,11.2000,.*,8,$' "$WORK/by_size/table.csv"

# The number of ranks is that of the highest one, however many lines a log has kept; with NCCL_TESTS_SPLIT
# that of a group. all_reduce_perf -b 8 -e 8G: a row has a size below 4 GiB, or tokens.
awk -f "$SOURCE/tests/readers/all_reduce_perf.awk" </dev/null >"$WORK/large.txt"
imports "$WORK/large.txt" "$rows"
one_line 'left out, of 4 GiB or more; --hidden-size N makes tokens of them: 2'
lines "$rows" 30
has_lines "$rows" '16,float32,2147483648,,,NCCL,NONE,allreduce,7178.0000,,,,,,,,,eager,,dedicated,,'
imports "$WORK/large.txt" "$rows" --hidden-size 2
lines "$rows" 32
has '^16,float32,8589934592,1073741824,2,NCCL,' "$rows"
sed -E '/Rank +([1-6]|9|1[0-4]) /d' "$WORK/large.txt" >"$WORK/abridged.txt"
imports "$WORK/abridged.txt" "$rows"
has '/abridged.txt: left out, ranks without a line: 1$' "$stderr"
has_lines "$rows" '16,float32,8,,,NCCL,NONE,allreduce,10.0000,,,,,,,,,eager,,unknown,,'
sed -E 's/(Rank +([1-9]?[13579]) +Group  )0/\11/' "$WORK/large.txt" >"$WORK/split.txt"
imports "$WORK/split.txt" "$rows"
has '^8,float32,8,,,NCCL,' "$rows"
sed '/Rank  *3 /d' "$WORK/split.txt" >"$WORK/split_abridged.txt"
rejects 'split_abridged.txt: the file has no number of ranks; give it with --tp N' \
    import --from nccl-tests "$WORK/split_abridged.txt" --arch sm90 --out "$rows"
imports "$WORK/split_abridged.txt" "$rows" --tp 8
has '^8,float32,8,,,NCCL,' "$rows"

# OSU, of the versions that print their data type and of those that always had floats.
for version in 5 7; do
    imports "$inputs/osu_$version.txt" "$rows" --tp 4
    has_lines "$rows" '4,float32,4,,,MPI,NONE,allreduce,1.3500,,,,,,,,,eager,,unknown,,'
done
imports "$inputs/osu_7.txt" "$rows" --tp 4 --strategy MPI_RING
has_lines "$rows" '4,float32,8,,,MPI_RING,NONE,allreduce,1.3000,,,,,,,,,eager,,unknown,,'
one_line 'rows.csv: its rows of MPI are replaced; import into another folder, and gentables merge'
imports "$inputs/osu_7.txt" "$rows" --tp 4 --strategy MPI_RING
[ ! -s "$stderr" ] || die "a note about rows of the same strategy"

# A folder for each algorithm, and merge, keep all of them.
for algorithm in SRA_KNOMIAL RING; do
    imports "$inputs/osu_7.txt" "$WORK/$algorithm" --tp 4 --arch host-ucc --strategy "UCC_$algorithm"
    [ ! -s "$stderr" ] || die "a note about a new file"
done
succeeds merge "$WORK/SRA_KNOMIAL/benchmark.tp4.host-ucc.csv" "$WORK/RING/benchmark.tp4.host-ucc.csv" \
    --out "$WORK/ucc"
lines "$WORK/ucc/benchmark.tp4.host-ucc.csv" 5
succeeds generate --data-dir "$WORK/ucc" --arch host-ucc --out "$WORK/ucc" --formats ucc
has_lines "$WORK/ucc/ucc.conf" '[team_size=4 ppn=4 nnodes=1]'

# Files without nodes take them from --nodes; NCCL's have them.
imports "$inputs/osu_7.txt" "$rows" --tp 4 --nodes 2
has_lines "$rows" '4,float32,8,,,MPI,NONE,allreduce,1.3000,,,,,,,,,eager,,unknown,,,,,,,,2,2'
has_lines "$WORK/rows.json" '  "nodes": 2,'
rejects '4 ranks on 3 nodes; the same number of ranks on each node is required' import "$inputs/osu_7.txt" \
    --tp 4 --nodes 3 --out "$rows"
sed '3,$s/,1,8,/,2,8,/' "$inputs/nccl_optimizer.csv" >"$WORK/optimizer.csv"
succeeds import "$WORK/optimizer.csv" --arch sm90 --out "$WORK/optimizer"
for of in tp8 tp8.nodes2; do
    [ -f "$WORK/optimizer/benchmark.$of.sm90.csv" ] || die "no rows of $of"
done

# FlashInfer's benchmark, in Markdown and as printed.
rm "$rows"
imports "$inputs/flashinfer.md" "$rows"
one_line 'flashinfer.md: left out, of operations without a strategy: 1'
lines "$rows" 3
has_lines "$rows" \
    '2,bfloat16,2097152,128,8192,ONESHOT,RESIDUAL_RMS_NORM,allreduce,20.0000,,,,,,,,,unknown,,unknown,,' \
    "2,bfloat16,2097152,128,8192,TWOSHOT,RESIDUAL_RMS_NORM_QUANT_FP8,allreduce,30.0000,,,,,,,,,$unknown"
has_lines "$WORK/rows.json" "      \"reason\": \"FlashInfer's benchmark: FAILED\","
imports "$inputs/flashinfer.txt" "$rows" --tp 2
lines "$rows" 2
cp "$rows" "$WORK/of_tokens.csv"
for form in txt md; do # as earlier versions have it
    sed 's/num_tokens=/seq_len=/' "$inputs/flashinfer.$form" >"$WORK/earlier.$form"
    imports "$WORK/earlier.$form" "$rows" --tp 2
    grep -q ',128,8192,ONESHOT,' "$rows" || die "seq_len= is no token count in $form"
done

# The input of optimize_config.py: a strategy for each algorithm, protocol and number of channels.
imports "$inputs/nccl_optimizer.csv" "$WORK/folder" --arch sm90
one_line 'left out, of other collectives than allreduce: 1'
has_lines "$WORK/folder/benchmark.tp8.sm90.csv" \
    '8,bfloat16,32768,,,NCCL_RING_LL128_8CH,NONE,allreduce,16.2000,,,,,,,,,unknown,,unknown,,'

# Imported rows make tables, and these name their origin.
succeeds generate --data-dir "$WORK/folder" --arch sm90 --formats nccl,report
has_lines "$WORK/folder/report.md" '| Imported from | nccl-optimizer |'
has '^allreduce,.*,ring,ll128,8,-1,8$' "$WORK/folder/nccl_tuner.csv"
