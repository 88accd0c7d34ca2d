#!/bin/sh
# trtllm_autotuner_tp{N}.json, read as TensorRT-LLM's AutoTuner does: every cell of the table, for each rank,
# has the table's choice or is listed as a gap; shapes outside are not found. TensorRT-LLM does not compare
# the file's version and GPU with its own, but check does.
. "$(dirname -- "$0")/lib_files.sh"

data=$WORK/data
rules trtllm_autotuner rows "$data"
rejects 'trtllm_autotuner_tp\{N\}.json: no provenance of rows names the GPU' generate --data-dir "$data" \
    --arch sm90 --out "$data" --formats trtllm-autotuner
succeeds lua "$SOURCE/tests/unit/frameworks/inputs/name_the_gpu.lua" "NVIDIA H200" "$data"/benchmark.*.csv
succeeds generate --data-dir "$data" --arch sm90 --out "$data" --formats trtllm-autotuner
cache=$data/trtllm_autotuner_tp4.json
rules trtllm_autotuner ask "$cache"

# A wrong tactic, a missing rank, another shape and another unit are noticed.
for edit in '0,/"tactic": "4"/s//"tactic": "5"/' 's/"rank_3"/"rank_4"/' 's/\(13,\)/(14,)/' \
    's/"min_time": 0.01}/"min_time": 10}/' 's/"device_capability": .9, 0./"device_capability": [10, 0]/' \
    's/^      \["NONE",1024,96.*/      ["NONE",1024,97,"NCCL","NCCL"],/'; do
    noticed "$cache" "$edit" trtllm_autotuner ask "$cache"
done

arguments="--data-dir $data --arch sm90 --tables $data --formats trtllm-autotuner"
# shellcheck disable=SC2086
{
    succeeds check $arguments
    check_reports 'trtllm_autotuner_tp4.json:40: ends here; it is half-written' '41,$d' "$cache" $arguments
    line=$(line_of '"device_name"' "$cache")
    check_reports "trtllm_autotuner_tp4.json:$line: device_name NVIDIA B200; NVIDIA H200 is required" \
        's/NVIDIA H200/NVIDIA B200/' "$cache" $arguments
    line=$(line_of '"device_capability"' "$cache")
    check_reports "trtllm_autotuner_tp4.json:$line: device_capability \[10, 0\]; \[9, 0\] is required" \
        's/\[9, 0\]/[10, 0]/' "$cache" $arguments
    line=$(line_of '"lib_version"' "$cache")
    check_reports "trtllm_autotuner_tp4.json:$line: lib_version 1.0.0; after pull .* is required" \
        's/("lib_version": ")[^"]*/\11.0.0/' "$cache" $arguments
    check_reports 'trtllm_autotuner_tp4.json:20: differs from what the rows give; it was edited' \
        '20s/"tactic": "[0-9]"/"tactic": "3"/' "$cache" $arguments
}
