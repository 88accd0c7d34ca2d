#!/bin/sh
# --steps, --annotation and --gpus-per-node of trace commands, on a recorded trace and on ranks with different
# steps.
# Needs: zlib
. "$SOURCE/tests/lib.sh"

recorded=$SOURCE/tests/recorded/traces/mixtral.json.gz
kernels() { # FOLDER: the number of kernels in the report there
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "GPU events") at = i } NR > 1 { sum += $at }
        END { print sum }' "$1/mixtral_csvs/steps.csv"
}
succeeds trace report "$recorded" --csv --out "$WORK/whole"
[ "$(kernels "$WORK/whole")" = 1616 ] || die "$(kernels "$WORK/whole") GPU events, not 5 * 323 + 1"
has '^decode,4,.*,1292,' "$WORK/whole/mixtral_csvs/phases.csv"
has '^prefill,1,.*,323,' "$WORK/whole/mixtral_csvs/phases.csv"
succeeds trace report "$recorded" --csv --out "$WORK/decode" --annotation decode --steps 1-2
[ "$(kernels "$WORK/decode")" = 646 ] || die "$(kernels "$WORK/decode") GPU events, not 2 * 323"
succeeds trace gemm "$recorded" --csv --out "$WORK/gemm" --annotation 'pre*'
succeeds trace compare "$recorded" "$WORK/decode/mixtral_csvs" --annotation decode --steps 1-2 --csv \
    --label a --label b --out "$WORK/same"
has '^busy_time,([0-9.]+),\1,0.0,0.0,' "$WORK/same/compare_csvs/gpu_timeline.csv"
no_step='mixtral.json.gz: no step 9; annotations: prefill, decode'
rejects "$no_step" trace report "$recorded" --steps 9 --out "$WORK/bad"
for verb in gemm variance collectives; do
    ends_with 2 "$GENTABLES" trace "$verb" "$recorded" --steps 9 --out "$WORK/bad"
    grep -q "$no_step" "$stderr" || die "trace $verb: no message about the step"
done
rejects 'no annotation none; annotations: prefill, decode' trace report "$recorded" --annotation none \
    --out "$WORK/bad"
rejects 'steps: x is not a number' trace report "$recorded" --steps x --out "$WORK/bad"

# Ranks 0 and 1 have steps 7 and 8, rank 2 steps 8 and 9, rank 3 step 20.
rank() { # NUMBER STEP...: a trace with a collective of 10 µs in each step
    number=$1
    shift
    {
        printf '{"distributedInfo": {"rank": %s, "world_size": 4}, "traceEvents": [' "$number"
        for step; do
            at=$((step * 1000))
            cat <<JSON
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#$step", "pid": 1, "tid": 1, "ts": $at,
 "dur": 900},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": $((at + 10)),
 "dur": 1, "args": {"correlation": $step}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": $((at + 20)),
 "dur": 10, "args": {"correlation": $step, "stream": 7, "Collective name": "allreduce", "In msg nelems": 8,
 "Out msg nelems": 8, "Group size": 4, "dtype": "Float", "Process Group Name": "0",
 "Process Group Ranks": "[0, 1, 2, 3]"}},
JSON
        done
        echo '{}]}'
    } >"$WORK/ranks/t_rank_$number.json"
}
mkdir "$WORK/ranks"
rank 0 7 8
rank 1 7 8
rank 2 8 9
rank 3 20
succeeds trace collectives "$WORK/ranks" --csv --out "$WORK/mixed"
grep -q 't_rank_2.json: has steps 8-9, the others have 7-8; --steps 8 selects common ones' "$stderr" ||
    die "no message about rank 2"
grep -q 't_rank_3.json: has steps 20, the others have 7-8; left out of comparisons over ranks' "$stderr" ||
    die "no message about rank 3"
succeeds trace collectives "$WORK/ranks" --csv --out "$WORK/common" --steps 8 --ranks 0-2
[ "$(cut -d, -f1,3 "$WORK/common/collective_csvs/nccl_long.csv" | tail -n +2 | tr '\n' ' ')" = \
    "0_0,0 0_0,1 0_0,2 " ] || die "not one collective of three ranks"
succeeds trace collectives "$WORK/ranks" --csv --out "$WORK/nodes" --steps 8 --ranks 0-2 --gpus-per-node 2
csvs=$WORK/nodes/collective_csvs
has '^0,"\[0, 1, 2, 3\]",4,inter_node,2,allreduce,Float,1,' "$csvs/nccl_summary_groups.csv"
has '^inter_node,1,' "$csvs/nccl_summary_nodes.csv"
rejects 'gpus-per-node 3 does not divide the 4 ranks; give the ranks on each node' trace collectives \
    "$WORK/ranks" --csv --out "$WORK/bad" --steps 8 --ranks 0-2 --gpus-per-node 3
ends_with 1 "$GENTABLES" trace collectives "$WORK/ranks" --ranks 1-2 --steps 7 --csv --out "$WORK/some"
grep -q 't_rank_2.json: no step 7; steps: 8, 9$' "$stderr" || die "no message about the missing step"
ends_with 1 "$GENTABLES" trace collectives "$WORK/ranks" --ranks 1-2 --steps 7-8 --csv --out "$WORK/both"
wanted='no step 7; steps: 8, 9; --steps 8 selects those that it has'
has "^gentables: $WORK/ranks/t_rank_2.json: $wanted\$" "$stderr"
has "/ranks: t_rank_2.json: is not in this report: $wanted\$" "$stderr"
has "^t_rank_2.json: is not in this report: $wanted|\"t_rank_2.json: is not in this report: $wanted\"" \
    "$WORK/both/collective_csvs/nccl_notes.csv"
