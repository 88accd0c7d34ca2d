#!/bin/sh
# inductor_profile.json, read by the rules of Inductor's profile-guided estimates: each measured collective,
# size and data type has NCCL's time, for groups of any place; other groups and collectives have none.
. "$(dirname -- "$0")/lib_files.sh"

data=$WORK/data
rules inductor rows "$data"
succeeds generate --data-dir "$data" --arch sm90 --out "$data" --formats pytorch
profile=$data/inductor_profile.json
rules inductor ask "$profile"
has '^asked [0-9]{3} obeyed [0-9]{3}: pytorch ' "$stdout"

# A wrong time, size, type, collective or group is noticed.
for edit in '0,/"dur": [0-9.]+/s//"dur": 1.5/' \
    '0,/"Out msg nelems": 4096,/s//"Out msg nelems": 4400,/' \
    '0,/"Half"/s//"Float"/' '0,/_reduce_scatter_base/s//_allgather_base/' \
    '0,/"Process Group Ranks": "\[0, 1\]"/s//"Process Group Ranks": "[0, 2]"/' \
    's/"world_size": 8/"world_size": 2/'; do
    noticed "$profile" "$edit" inductor ask "$profile"
done

arguments="--data-dir $data --arch sm90 --tables $data --formats pytorch"
# shellcheck disable=SC2086
{
    succeeds check $arguments
    check_reports 'inductor_profile.json:14: ends here; it is half-written' '15,$d' "$profile" $arguments
    check_reports 'inductor_profile.json:2: version 2; 1 is required' '2s/"version": 1/"version": 2/' \
        "$profile" $arguments
    check_reports 'inductor_profile.json:8: differs from what the rows give' '8s/"dur": /"dur": 1/' \
        "$profile" $arguments
}

# gentables reads it as a trace, too.
cp "$profile" "$WORK/profile.rank0.json"
succeeds trace report "$WORK/profile.rank0.json" --out "$WORK/report"
grep -v NCCL "$data/benchmark.tp2.sm90.csv" >"$WORK/benchmark.tp2.sm90.csv"
rejects 'inductor_profile.json: no row of NCCL' generate --data-dir "$WORK" --arch sm90 --out "$WORK" \
    --formats pytorch
