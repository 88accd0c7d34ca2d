#!/bin/sh
# flashinfer_oneshot.py, loaded beside a stand-in of flashinfer.comm: at every measured size, at every border
# and beside it, and outside the table, each fusion runs in the better number of shots, also where that is not
# monotone.
. "$(dirname -- "$0")/lib_files.sh"

data=$WORK/data
rules flashinfer rows "$data"
succeeds generate --data-dir "$data" --arch sm90 --out "$data" --formats flashinfer,thresholds
succeeds generate --data-dir "$data/fused" --arch sm90 --out "$data/fused" --formats thresholds
module=$data/flashinfer_oneshot.py
rules flashinfer ask "$module" "$data/thresholds.json" "$data/fused/thresholds.json"

# A wrong border, answer, name of a pattern and limit are noticed.
for edit in '/^SHOTS/,/^}/s/16: \[\([0-9]+/16: [(4096/' \
    '/^SHOTS/,/^}/s/4: (.*)\(None, False/4: \1(None, True/' \
    '/^BEST/,/^}/s/8: (.*)\(None, False/8: \1(None, True/' \
    's/"kARResidualRMSNorm": "RES.*"/"kARResidualRMSNorm": "NO"/' \
    's/^LARGEST = .*/LARGEST = 1024/'; do
    noticed "$module" "$edit" flashinfer ask "$module" "$data/thresholds.json" "$data/fused/thresholds.json"
done

arguments="--data-dir $data --arch sm90 --tables $data --formats flashinfer"
# shellcheck disable=SC2086
{
    succeeds check $arguments
    check_reports 'flashinfer_oneshot.py:20: ends here; it is half-written' '21,$d' "$module" $arguments
    check_reports "flashinfer_oneshot.py:$(line_of '^VERSION = ' "$module"): VERSION 9; 1 is required" \
        's/^VERSION = 1/VERSION = 9/' "$module" $arguments
    capability=$(line_of '^CAPABILITY = ' "$module")
    check_reports "flashinfer_oneshot.py:$capability: CAPABILITY 10.0; 9.0 is required" \
        's/^CAPABILITY = .*/CAPABILITY = "10.0"/' "$module" $arguments
    check_reports "flashinfer_oneshot.py:$capability: CAPABILITY is missing; 9.0 is required" \
        '/^CAPABILITY/d' "$module" $arguments
    line=$(line_of '^        16: ' "$module")
    check_reports "flashinfer_oneshot.py:$line: differs from what the rows give" \
        's/^        16: /        12: /' "$module" $arguments
}

rows "$WORK/nccl/benchmark.tp2.sm90.csv" 2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,5
rejects 'flashinfer_oneshot.py: no row of ONESHOT or TWOSHOT' generate --data-dir "$WORK/nccl" --arch sm90 \
    --out "$WORK/nccl" --formats flashinfer
