#!/bin/sh
# The golden artifacts come out; an edit by hand is found, shown and mended by the command that check prints.
. "$SOURCE/tests/lib.sh"

succeeds check --data-dir "$golden" --arch sm90 --tables "$golden"
files=$(find "$golden" -type f ! -name 'benchmark.*' | wc -l)
grep -q "$files of $files files are what the rows give" "$stdout" || die "not printed"

cp -r "$golden" "$WORK/tables"
succeeds generate --data-dir "$WORK/tables" --arch sm90 --out "$WORK/tables"
[ "$(grep -c '^unchanged ' "$stdout")" = "$files" ] || die "wrote what does not change"

sed 's/ONESHOT,4.1250/TWOSHOT,4.1250/' "$golden/table.csv" >"$WORK/tables/table.csv"
rm "$WORK/tables/report.md"
ends_with 1 "$GENTABLES" check --data-dir "$golden" --arch sm90 --tables "$WORK/tables"
grep -q '^@@ -2,1 +2,1 @@' "$stdout" || die "no place of the difference"
grep -q '^-sm90,2,NONE,bfloat16,allreduce,unknown,1024,1,TWOSHOT' "$stdout" || die "no old line"
grep -q '^+sm90,2,NONE,bfloat16,allreduce,unknown,1024,1,ONESHOT' "$stdout" || die "no new line"
grep -q 'report.md: is missing' "$stdout" || die "the missing file was not named"
mend=$(sed -n 's/^.* to mend it: //p' "$stdout")
eval "ends_with 0 $mend"
[ "$(grep -c '^written ' "$stdout")" = 2 ] || die "not exactly two files were written"
succeeds check --data-dir "$golden" --arch sm90 --tables "$WORK/tables"

# The host has no table of TensorRT-LLM's; that is reported only if --formats names it.
sed 's/NCCL_SYMMETRIC/MPI_SM/; s/NCCL/MPI/; /SYMM_MEM/d; /AUTO/d; /UB/d' "$golden/benchmark.tp2.sm90.csv" \
    >"$WORK/benchmark.tp2.host.csv"
succeeds generate --data-dir "$WORK" --arch host --out "$WORK/host"
one_line 'the rows of TP 2 have no recorded grid: of 14 cells 10 are measured, 0 interpolated, 4 unmeasured'
[ ! -e "$WORK/host/generated_lookup_table.cpp" ] || die "wrote a table that the host has not"
succeeds generate --data-dir "$WORK" --arch host --out "$WORK/host" --formats trtllm,c
grep -q '^gentables: generated_lookup_table.cpp: not for host' "$stderr" || die "not printed"
