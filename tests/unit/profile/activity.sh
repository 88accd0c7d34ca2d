#!/bin/sh
# Metrics of GPU activity on traces that are small enough to compute by hand (make_trace.py lists their
# events), from JSON, gzip and nsys exports alike.
. "$SOURCE/tests/unit/metric/lib.sh"

skip_without_traces
python3 "$SOURCE/tests/unit/profile/make_trace.py" "$WORK"

# is METRIC VALUE FILE [OPTION...]: expects this one number.
is() {
    metric=$1 expected=$2 file=$3
    shift 3
    succeeds metric "$metric" --trace "$WORK/$file" "$@"
    [ "$(cat "$stdout")" = "$expected" ] || die "$metric of $file is not $expected"
    [ ! -s "$stderr" ] || die "$metric of $file: unexpected message"
}

# row METRIC LINE FILE [OPTION...]: expects this last line of its table, with spaces squeezed.
row() {
    metric=$1 expected=$2 file=$3
    shift 3
    succeeds metric "$metric" --trace "$WORK/$file" "$@"
    [ "$(tail -n 1 "$stdout" | tr -s ' ')" = "$expected" ] || die "$metric of $file is not: $expected"
}

# refuses METRIC PATTERN FILE [OPTION...]: expects one line that names the missing fact, exit code 2, and no
# number.
refuses() {
    metric=$1 pattern=$2 file=$3
    shift 3
    rejects "$pattern" metric "$metric" --trace "$WORK/$file" "$@"
    [ ! -s "$stdout" ] || die "$metric prints something all the same"
}

for file in rank0.json rank0.json.gz rank0.sqlite; do
    is step_time 0.25 "$file"
    is total_time 0.4005 "$file"
    is kernel_time 0.32 "$file"
    is communication_time 0.08 "$file"
    is communication_fraction 0.25 "$file"
    is communication_overlap 0.625 "$file"
    is gpu_utilisation 0.5493133583021224 "$file" # 220 / 400.5
    is dominant_kernel_share 0.4375 "$file"
    is moe_share 0.3125 "$file"
    is memory_bandwidth 2.0 "$file"
    row collective_calls 'AllReduce 1 0.08 0.08' "$file"
done
is mfu 0.25 rank0.json --peak-tflops 8
row collective_volume 'AllReduce 4000 1 0' rank0.json
row collective_bandwidth 'AllReduce 0.05 0.05 - 1' rank0.json
row collective_bandwidth 'AllReduce 0.05 0.05 0.5 1' rank0.json --peak-gbps 0.1
row collective_bandwidth 'AllGather 0.318182 0.238636 - 3' sizes.json # 7000 B in 22 us
row hockney 'AllGather 4 5 0.001 1 1 3 3' sizes.json

# Ranks against each other: two files, or a file of two GPUs.
both="--trace $WORK/rank1.json"
# shellcheck disable=SC2086
{
    is load_imbalance 2.0 rank0.json $both
    is stragglers 0.5 rank0.json $both
    is kernel_time 0.215 rank0.json $both
    row collective_calls 'AllReduce 2 0.12 0.06' rank0.json $both
    row collective_volume 'AllReduce 8000 2 0' rank0.json $both
    row collective_bandwidth 'AllReduce 0.1 0.1 - 1' rank0.json $both
}
is load_imbalance 2.0 node.sqlite
is stragglers 0.5 node.sqlite

# JSON, for programs.
succeeds metric stragglers --trace "$WORK/rank0.json" --trace "$WORK/rank1.json" --json
python3 - "$stdout" <<'END' || die "not the JSON of stragglers"
import json, sys
found = json.load(open(sys.argv[1]))
assert found["value"] == 0.5 and found["count"] == 2 and found["straggler"].endswith("/rank1.json")
assert [rank["communication_ms"] for rank in found["ranks"]] == [0.08, 0.04]
assert len(found["files"]) == 2
END
succeeds metric step_time --trace "$WORK/rank0.json" --json
python3 - "$stdout" <<'END' || die "not the JSON of step_time"
import json, sys
found = json.load(open(sys.argv[1]))
assert found["unit"] == "ms" and found["ranks"][0]["steps"] == 2
assert (found["ranks"][0]["min_ms"], found["ranks"][0]["max_ms"]) == (0.2, 0.3)
END
succeeds metric memory_bandwidth --trace "$WORK/rank0.sqlite" --json
grep -q '"Memcpy HtoD": {' "$stdout" || die "the copy's direction is not named"

# Missing facts are named.
refuses step_time 'rank1.json: step_time needs marks of steps' rank1.json
refuses mfu 'rank1.json: mfu needs GEMMs' rank1.json --peak-tflops 8
refuses mfu 'mfu needs --peak-tflops N' rank0.json
refuses mfu 'peak-tflops: "nought" is not a number above 0' rank0.json --peak-tflops nought
refuses mfu 'peak-tflops: "0" is not a number above 0' rank0.json --peak-tflops 0
refuses moe_share 'rank1.json: moe_share needs MoE kernels' rank1.json
refuses memory_bandwidth 'rank1.json: memory_bandwidth needs copies' rank1.json
refuses memory_bound_share 'needs roofline data' rank0.json
refuses load_imbalance 'rank0.json: load_imbalance compares ranks' rank0.json
refuses stragglers 'rank0.json: stragglers compares ranks' rank0.json
refuses collective_volume 'rank0.sqlite: no collective_volume: AllReduce needs bytes' rank0.sqlite
refuses hockney 'AllReduce needs calls of at least 3 different sizes: there are 1' rank0.json
refuses stragglers 'rank 0, as .*rank0.json does' rank0.json --trace "$WORK/rank0.json.gz"
refuses total_time 'given twice' rank0.json --trace "$WORK/rank0.json"
