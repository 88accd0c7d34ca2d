#!/bin/sh
# Of real traces the reader keeps, names and links the same events as an independent reader, plain and packed.
. "$SOURCE/tests/unit/metric/lib.sh"

skip_without_data traces
skip_without_traces
mkdir -p "$WORK"

# dump FILE: prints the reader's events.
dump() { "$GENTABLES" lua "$SOURCE/tests/unit/trace/reader/dump.lua" "$1"; }

for trace in "$data"/*.json.gz; do
    python3 "$SOURCE/tests/unit/trace/reader/oracle.py" "$trace" >"$WORK/oracle"
    dump "$trace" >"$WORK/dump"
    cmp "$WORK/oracle" "$WORK/dump" || die "$trace: the independent reader has other events"
    grep -q parent= "$WORK/dump" || die "nothing was compared"
done
gzip -dc "$trace" >"$WORK/plain.json"
dump "$WORK/plain.json" | cmp - "$WORK/oracle" || die "the unpacked trace has other events"
needs zstd
zstd -qf "$WORK/plain.json" -o "$WORK/packed.zst"
dump "$WORK/packed.zst" | cmp - "$WORK/oracle" || die "the trace in zstd has other events"
