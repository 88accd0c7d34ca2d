#!/bin/sh
# sglang_allreduce.py, loaded beside stand-ins of SGLang's modules: at every measured size, at every border
# and beside it, and outside the table, SGLang's rules give the choice of graphs and of eager calls, or the
# file lists the gap.
. "$(dirname -- "$0")/lib_files.sh"

data=$WORK/data
rules sglang rows "$data"
succeeds generate --data-dir "$data" --arch sm90 --out "$data" --formats sglang,thresholds
succeeds generate --data-dir "$data/graph" --arch sm90 --out "$data/graph" --formats sglang,thresholds
cmp "$data/sglang_allreduce.py" "$data/graph/sglang_allreduce.py" || die "the spec's mode matters"
module=$data/sglang_allreduce.py
rules sglang ask "$module" "$data/graph/thresholds.json" "$data/thresholds.json"
succeeds formats --data-dir "$data" --arch sm90
has 'leaves out TP 3, eager: it has the limits of rows of mode graph' "$stdout"
has 'leaves out TP 5, graph, .*: its file answers .*, and the choice is .*; mean loss' "$stdout"

# A wrong limit of each kind is noticed.
for edit in '/^GRAPH/,/^}/s/2: \([0-9]+/2: (1024/' '/^EAGER/,/^}/s/2: \([0-9]+/2: (1048576/' \
    '/^GRAPH/,/^}/s/3: \(([0-9]+), [0-9]+/3: (\1, 65536/' '/^GRAPH/,/^}/s/8: (.*), \([0-9]+/8: \1, (131072/' \
    '/^EAGER/,/^}/s/8: (.*), \(.*/8: \1, None),/' '/^GAPS/,/^]/s/^    \(5, "graph.*//'; do
    noticed "$module" "$edit" sglang ask "$module" "$data/graph/thresholds.json" "$data/thresholds.json"
done

arguments="--data-dir $data --arch sm90 --tables $data --formats sglang"
# shellcheck disable=SC2086
{
    succeeds check $arguments
    check_reports 'sglang_allreduce.py:20: ends here; it is half-written' '21,$d' "$module" $arguments
    check_reports "sglang_allreduce.py:$(line_of '^VERSION = ' "$module"): VERSION 9; 1 is required" \
        's/^VERSION = 1/VERSION = 9/' "$module" $arguments
    capability=$(line_of '^CAPABILITY = ' "$module")
    check_reports "sglang_allreduce.py:$capability: CAPABILITY 10.0; 9.0 is required" \
        's/^CAPABILITY = .*/CAPABILITY = "10.0"/' "$module" $arguments
    check_reports "sglang_allreduce.py:$capability: CAPABILITY is missing; 9.0 is required" '/^CAPABILITY/d' \
        "$module" $arguments
    line=$(line_of '^    8: ' "$module")
    check_reports "sglang_allreduce.py:$line: differs from what the rows give" "${line}s/8: /8: 1/" \
        "$module" $arguments
}

# Where NCCL is best everywhere, SGLang's own kernels are off; where they were not measured, its limits stay.
rows "$WORK/nccl/benchmark.tp2.sm90.csv" 2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,9.5 \
    2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,5
rows "$WORK/nccl/benchmark.tp4.sm90.csv" 4,bfloat16,2048,1,1024,NCCL,NONE,allreduce,5
succeeds generate --data-dir "$WORK/nccl" --arch sm90 --out "$WORK/nccl" --formats sglang
has '^    2: \(0, 0, None\),$' "$WORK/nccl/sglang_allreduce.py"
if grep -q '^    4: ' "$WORK/nccl/sglang_allreduce.py"; then die "limits that were not measured"; fi
succeeds formats --data-dir "$WORK/nccl" --arch sm90
has 'leaves out TP 2, graph: off, as they were not measured: two-shot pull, multicast' "$stdout"
rm "$WORK/nccl/benchmark.tp2.sm90.csv"
rejects 'sglang_allreduce.py: no time of ONESHOT, TWOSHOT or NVLS_TWOSHOT' generate --data-dir "$WORK/nccl" \
    --arch sm90 --out "$WORK/nccl" --formats sglang
