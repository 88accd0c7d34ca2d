#!/bin/sh
# A full disk and a read-only folder end in one line, exit code 1, with earlier files unchanged and nothing
# half-written.
. "$SOURCE/tests/lib.sh"

out=$WORK/out
cp -r "$SOURCE/tests/golden/sm90" "$WORK/data"
# One cell, with rows: no line about cells without rows.
grep -E '^(world_size|2,bfloat16,2048,1,1024,.*,NONE,allreduce)' "$WORK/data/benchmark.tp2.sm90.csv" \
    >"$WORK/rows"
rm "$WORK"/data/benchmark.tp*.csv
mv "$WORK/rows" "$WORK/data/benchmark.tp2.sm90.csv"
mkdir "$out"
echo old >"$out/allreduce_table.h"

# A limit on the size of files acts like a full disk: write() fails half-way. 1 is 512 bytes.
ends_with 1 sh -c 'ulimit -f 1; exec "$0" generate --data-dir "$1" --arch sm90 --out "$2"' \
    "$GENTABLES" "$WORK/data" "$out" </dev/null
one_line 'generated_lookup_table.cpp: cannot be written: File too large; the old file is unchanged'
[ "$(ls -A "$out")" = allreduce_table.h ] || die "left behind: $(ls -A "$out")"
[ "$(cat "$out/allreduce_table.h")" = old ] || die "what was there is gone"

# The second of two files does not fit: the first is not written either.
ends_with 1 sh -c 'ulimit -f 8; exec "$0" generate "$@"' "$GENTABLES" \
    --data-dir "$WORK/data" --arch sm90 --out "$out" --formats table,c </dev/null
one_line 'allreduce_table.h: cannot be written: File too large'
[ "$(ls -A "$out")" = allreduce_table.h ] || die "left behind: $(ls -A "$out")"

# Output that cannot be written is a failure, too.
code=0
"$GENTABLES" generate --data-dir "$WORK/data" --arch sm90 --out "$WORK/unsaid" \
    >/dev/full 2>"$stderr" || code=$?
[ "$code" = 1 ] || die "exit code $code, not 1, with standard output full"
one_line 'standard output cannot be written'
"$GENTABLES" metric --list 2>"$stderr" | head -n 1 >"$stdout"
[ ! -s "$stderr" ] || die "complains of a reader that has enough"

skip_unless_unprivileged_reads "$WORK/data/benchmark.tp2.sm90.csv"
chmod 555 "$out"
ends_with 1 unprivileged "$GENTABLES" generate --data-dir "$WORK/data" --arch sm90 --out "$out"
chmod 755 "$out"
one_line 'cannot be written: Permission denied'
[ "$(ls -A "$out")" = allreduce_table.h ] || die "left behind: $(ls -A "$out")"
[ "$(cat "$out/allreduce_table.h")" = old ] || die "what was there is gone"
