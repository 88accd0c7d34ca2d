#!/bin/sh
# TensorRT-LLM's fragment, chosen at the corners of its bins, is byte for byte the output of fragment.py for
# the same CSVs: the golden ones, and made-up ones that fill its grid.
. "$SOURCE/tests/lib.sh"
needs python3

python3 "$SOURCE/tests/unit/formats/fragment.py" "$golden" 90 >"$WORK/expected"
succeeds generate --data-dir "$golden" --arch sm90 --formats trtllm --choose corner --out "$WORK"
cmp "$WORK/expected" "$WORK/generated_lookup_table.cpp"

# A winner of another time is noticed.
mkdir "$WORK/changed"
cp "$golden"/benchmark.* "$WORK/changed"
sed -i 's/^\(2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce\),.*/\1,400/' \
    "$WORK/changed/benchmark.tp2.sm90.csv"
succeeds generate --data-dir "$WORK/changed" --arch sm90 --formats trtllm --choose corner
if cmp -s "$WORK/expected" "$WORK/changed/generated_lookup_table.cpp"; then
    die "the same table of other rows"
fi

python3 "$SOURCE/tests/perf/make_rows.py" "$WORK/small" small
python3 "$SOURCE/tests/unit/formats/fragment.py" "$WORK/small" 90 >"$WORK/expected"
succeeds generate --data-dir "$WORK/small" --arch sm90 --formats trtllm --choose corner
cmp "$WORK/expected" "$WORK/small/generated_lookup_table.cpp"
cells=$(sed 's/SM90//; s|//.*||' "$WORK/expected" | grep -oE '[0-9]+' | wc -l)
counts trtllm 'a program of its own, byte for byte' 'generation D of the table' "$cells" "$cells"
