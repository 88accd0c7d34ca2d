#!/bin/sh
# vllm_allreduce.py, loaded beside stand-ins of vLLM's modules: at every measured size, at every border and
# one byte to both sides of it, and outside the table, vLLM's rules give the table's choice, or the file lists
# the gap.
. "$(dirname -- "$0")/lib_files.sh"

data=$WORK/data
rules vllm rows "$data"
succeeds generate --data-dir "$data" --arch sm90 --out "$data" --formats vllm,thresholds
succeeds generate --data-dir "$data/fused" --arch sm90 --out "$data/fused" --formats thresholds
module=$data/vllm_allreduce.py
ask() { rules vllm ask "$module" "$data/thresholds.json" "$data/fused/thresholds.json"; }
ask
has '^asked [0-9]{3,} obeyed [0-9]{3,}: vllm ' "$stdout"
succeeds formats --data-dir "$data" --arch sm90
has 'leaves out TP 8, .*: its file answers .*, and the choice is .*; mean loss' "$stdout"

# A wrong limit in each dictionary is noticed.
for edit in '/^CUSTOM/,/^}/s/6: [0-9]+/6: 1048576/' '/^SYMM_MEM/,/^}/s/2: [0-9]+/2: 2/' \
    '/^NCCL_SYMM/,/^}/s/4: \(([0-9]+), /4: (\12, /' '/^FI_ALL/,/^}/s/4: [0-9.]+/4: 0.01/' \
    '/^_FI_ALL/,/^}/s/2: [0-9.]+/2: 32/' '/^GAPS/,/^]/s/^    \(8,.*//'; do
    noticed "$module" "$edit" vllm ask "$module" "$data/thresholds.json" "$data/fused/thresholds.json"
done

# check: half-written, of another version, of another GPU, edited; a loopback or a host has no such file.
arguments="--data-dir $data --arch sm90 --tables $data --formats vllm"
# shellcheck disable=SC2086
{
    succeeds check $arguments
    check_reports 'vllm_allreduce.py:25: ends here; it is half-written' '26,$d' "$module" $arguments
    check_reports "vllm_allreduce.py:$(line_of '^VERSION = ' "$module"): VERSION 9; 1 is required" \
        's/^VERSION = 1/VERSION = 9/' "$module" $arguments
    capability=$(line_of '^CAPABILITY = ' "$module")
    check_reports "vllm_allreduce.py:$capability: CAPABILITY 10.0; 9.0 is required" \
        's/^CAPABILITY = .*/CAPABILITY = "10.0"/' "$module" $arguments
    check_reports "vllm_allreduce.py:$capability: CAPABILITY is missing; 9.0 is required" '/^CAPABILITY/d' \
        "$module" $arguments
    line=$(line_of '^        6: ' "$module")
    check_reports "vllm_allreduce.py:$line: differs from what the rows give" "${line}s/6: /6: 1/" \
        "$module" $arguments
}
sed 's/NCCL_SYMMETRIC/MPI_SM/; s/,NCCL,/,MPI,/; /SYMM_MEM/d; /NVLS/d; /UNFUSED/d' \
    "$data/benchmark.tp2.sm90.csv" >"$WORK/benchmark.tp2.host.csv"
rejects 'names no format of host.*; rows of GPUs, such as sm90, have vllm$' generate \
    --data-dir "$WORK" --arch host --out "$WORK/host" --formats vllm
succeeds generate --data-dir "$WORK" --arch host --out "$WORK/host"
[ ! -e "$WORK/host/vllm_allreduce.py" ] || die "written for a host"

# Rows of other numbers of ranks only: the message names what to measure.
rows "$WORK/three/benchmark.tp3.sm90.csv" 3,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,9.5
rejects 'vllm_allreduce.py: no row of ONESHOT' generate --data-dir "$WORK/three" --arch sm90 \
    --out "$WORK/three" --formats vllm

# A kernel without a time is never an answer, and vLLM keeps its limit for it.
rows "$WORK/few/benchmark.tp4.sm90.csv" 4,bfloat16,1048576,128,4096,TWOSHOT,NONE,allreduce,20 \
    4,bfloat16,1048576,128,4096,NCCL,NONE,allreduce,40 \
    4,bfloat16,16777216,2048,4096,TWOSHOT,NONE,allreduce,100 \
    4,bfloat16,16777216,2048,4096,NCCL,NONE,allreduce,210
rows "$WORK/few/benchmark.tp8.sm90.csv" 8,bfloat16,1048576,128,4096,NCCL,NONE,allreduce,40
succeeds generate --data-dir "$WORK/few" --arch sm90 --out "$WORK/few" --formats vllm
[ "$(grep -c '^        4: 8388608,$' "$WORK/few/vllm_allreduce.py")" = 1 ] || die "not the custom one alone"
if grep -q '^        8: ' "$WORK/few/vllm_allreduce.py"; then die "a limit of what was not measured"; fi
if grep -q 'symmetric memory")' "$WORK/few/vllm_allreduce.py"; then die "an answer without a time"; fi
succeeds formats --data-dir "$WORK/few" --arch sm90
has 'leaves out TP 4: symmetric memory was not measured, so vLLM keeps its own limit' "$stdout"
has 'leaves out TP 8: custom was not measured, so vLLM keeps its own limit' "$stdout"
