#!/bin/sh
# --collectives FILE: kernels of a user's own count as communication, in metrics and sheets; a wrong file ends
# in one line with its path and row.
. "$SOURCE/tests/unit/metric/lib.sh"

skip_without_traces
event='"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "args": {"stream": 7, "device": 0}'
cat >"$WORK/rank0.json" <<END
{"traceEvents": [
{$event, "name": "void ours::meshSum<4>(float*)", "ts": 10, "dur": 30},
{$event, "name": "gemm", "ts": 40, "dur": 90}]}
END
cat >"$WORK/kernels.lua" <<'END'
return {
  -- The sum over the mesh.
  { pattern = "meshSum", operation = "AllReduce", library = "ours", algorithm = "RING" },
}
END
ends_with 2 "$GENTABLES" metric communication_fraction --trace "$WORK/rank0.json"
one_line 'no kernel has a name of the [0-9]+ known libraries; --collectives FILE adds names'
succeeds metric communication_fraction --trace "$WORK/rank0.json" --collectives "$WORK/kernels.lua"
[ "$(cat "$stdout")" = 0.25 ] || die "not 30 of 120 us communicate"
succeeds metric collective_calls --trace "$WORK/rank0.json" --json --collectives "$WORK/kernels.lua"
grep -q AllReduce "$stdout" || die "the operation of the kernel is not that of the file"
succeeds trace report "$WORK/rank0.json" --csv --out "$WORK/report" --include-unlinked \
    --collectives "$WORK/kernels.lua"
has '^total_comm_time,0\.03,' "$WORK/report/rank0_csvs/gpu_timeline.csv" # ms

# wrong TEXT PATTERN: a file with TEXT is refused in one line.
wrong() {
    printf '%s\n' "$1" >"$WORK/wrong.lua"
    rejects "wrong\.lua:.*$2" metric communication_fraction --trace "$WORK/rank0.json" \
        --collectives "$WORK/wrong.lua"
}
wrong 'return {' '2: unexpected symbol near <eof>'
wrong 'return {}' '1: has no rows; write return \{ \{ pattern = "my_allreduce" \} \}'
wrong 'return { "meshSum" }' 'row 1 is meshSum; write \{ pattern'
wrong 'return { { pattern = " " } }' 'row 1 has no pattern'
wrong 'return { { pattern = 5 } }' 'row 1: pattern is 5; valid is a text'
wrong 'return { { pattern = "a", op = "AllReduce" } }' 'row 1: unknown key op; valid keys: pattern, operation'
wrong 'return { { pattern = "a", operation = "Sum" } }' 'row 1: unknown operation Sum; valid: AllGather, '
ends_with 2 "$GENTABLES" metric communication_fraction --trace "$WORK/rank0.json" --collectives "$WORK/absent"
one_line 'absent: .*No such file'
