#!/bin/sh
# Collectives of a real pair of ranks without metadata, and of a sweep derived from a real trace: the results
# of trace collectives and trace overlap equal Python's from the same files.
. "$SOURCE/tests/unit/metric/lib.sh"
skip_without_data traces
needs python3

succeeds trace collectives "$data/sampled_rank-0.json.gz" "$data/sampled_rank-1.json.gz" \
    --csv --out "$WORK/pair"
grep -q 'ranks 2-127 of 128 are missing' "$stderr" || die "no message about the missing ranks"
grep -q 'do not overlap on all their ranks' "$stderr" || die "no message about ranks that are apart in time"
python3 "$SOURCE/tests/unit/trace/collectives/ranks_real.py" pair "$WORK/pair/collective_csvs" "$data"

python3 "$data/../tools/make_sweep.py" "$data/mi300_resnet_rank0of8.json.gz" "$WORK/sweep" \
    --threads 256 --channels 28 --ranks 3 --inject-nccl 300
succeeds trace collectives "$WORK/sweep" --csv --out "$WORK/out"
succeeds trace overlap "$WORK/sweep" --all --out "$WORK/out"
succeeds trace overlap "$WORK/sweep" --out "$WORK/out"
python3 "$SOURCE/tests/unit/trace/collectives/ranks_real.py" sweep "$WORK/out" "$WORK/sweep"
