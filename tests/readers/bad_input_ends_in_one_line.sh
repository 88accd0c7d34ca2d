#!/bin/sh
# Each fault of another program's file is reported in one line, with file and line; nothing is written or
# guessed.
. "$(dirname -- "$0")/lib.sh"
needs python3
bad=$WORK/bad

# edited INPUT SED-SCRIPT: $bad is the input, changed by the script, which must change something.
edited() {
    sed "$2" "$1" >"$bad"
    ! cmp -s "$1" "$bad" || die "no change by $2"
}

# wrong INPUT SED-SCRIPT PATTERN OPTION...: expects that the changed input is rejected with this message.
wrong() {
    edited "$1" "$2"
    said=$3
    shift 3
    refuses "$said" "$bad" "$@"
}

# given PATTERN TEXT OPTION...: expects that a file with this text is rejected with this message.
given() {
    said=$1
    printf '%s\n' "$2" >"$bad"
    shift 2
    refuses "$said" "$bad" "$@"
}

# ---- the kind of a file
given 'is of no known kind; --from NAME chooses a reader: .*trtllm-header, ' 'hello'
: >"$bad"
refuses 'bad: is empty' "$bad"
refuses ': is not a file' "$WORK"
refuses 'No such file' "$WORK/missing"
refuses '--from osu7: no such reader' "$inputs/osu_7.txt" --from osu7
refuses 'is nccl-tests, and .*osu_7.txt is osu; files of one kind' \
    "$inputs/osu_7.txt" "$inputs/nccl_tests.txt" --tp 2
refuses 'has no line # size count' "$inputs/osu_7.txt" --from nccl-tests
refuses 'the rows are of TP 2, 4; name a folder' "$golden/benchmark.tp2.sm90.csv" \
    "$golden/benchmark.tp4.sm90.csv"
refuses '--arch sm: unknown arch' "$inputs/osu_7.txt" --arch sm
refuses '--tp: "two" is not a whole number' "$inputs/osu_7.txt" --tp two
refuses '--dtype is .*; |unknown --dtype "fp8"; valid: bfloat16' "$inputs/osu_7.txt" --tp 2 --dtype fp8
printf '# OSU MPI Allreduce Latency Test v7\0\n' >"$bad"
refuses 'bad: is not text' "$bad" --tp 2

# ---- TensorRT-LLM's header
python3 "$SOURCE/tests/readers/make_header.py" "$WORK"
header_file=$WORK/shipped.h
size=$(grep -n 'SM100$' "$header_file" | cut -d: -f1)
for count in 4 5 20 40 $((size - 3)) $((size + 1)) $((size + 2)) $((size + 30)); do
    head -n "$count" "$header_file" >"$bad"
    refuses 'the file ends within AllReduceBestStrategy|ends within the name of a table' "$bad" --arch sm90
done
bytes=$(wc -c <"$header_file")
at=300
while [ "$at" -lt $((bytes - 400)) ]; do
    head -c "$at" "$header_file" >"$bad"
    code=0
    "$GENTABLES" import "$bad" --arch sm100 --out "$WORK/none.csv" >"$stdout" 2>"$stderr" || code=$?
    [ "$code" = 2 ] || die "a header of $at bytes is read"
    one_line 'bad(:[0-9]+)?: '
    at=$((at + 1009))
done
wrong "$header_file" '8s/, [0-9]}/}/' ':8: .*SM90: 14 token counts, and 15 in line 7' --arch sm90
wrong "$header_file" '7s/}, {/, /' ': [0-9]+ (token counts|hidden sizes), and' --arch sm90
wrong "$header_file" '10s/{[0-9], /{9, /' ':10: .*SM90 has 9, which is no number of the enum' --arch sm90
wrong "$header_file" '10s/{[0-9], /{-1, /' ':10: .*SM90 has -1, which is no number of the enum' --arch sm90
wrong "$header_file" '10s/{[0-9], /{3, /' ':10: .*has 3, AUTO, which is no choice' --arch sm90
wrong "$header_file" '10s/{[0-9], /{1, /' ':10: .*has 1: ONESHOT in an older enum, MIN_LATENCY in today' \
    --arch sm90
wrong "$header_file" '10s/{[0-9], /{1, /' 'has [458], which is no number of the enum of --era oneshot1' \
    --era oneshot1 --arch sm90
wrong "$header_file" '10s/{[0-9], /{ONESHOT, /' ':10: "ONESHOT" in .*; expected a number of' --arch sm90
wide=ééééééééééééééééééééééééééééééééééé # 70 bytes, of which 57 are shown
wrong "$header_file" "10s/{[0-9], /{$wide, /" ':10: "(é){28}[.]{3}" in' --arch sm90
wrong "$header_file" 's/TP=4/TP=8/' 'the comment has TP=8, but this entry is for 4' --arch sm90
wrong "$header_file" 's/=RESIDUAL_RMS_NORM$/=NONE/' \
    'the comment has Fusion=NONE, but this entry is for RESID' --arch sm90
wrong "$header_file" 's/SM100$/SM90/' 'TableSM90 occurs twice, first in line' --arch sm90
own=$WORK/customAllReduceUtils.h
mkdir -p "$WORK/tables/sm90"
cp "$golden"/benchmark.*.csv "$WORK/tables/sm90"
succeeds generate --data-dir "$WORK/tables" --arch all --out "$WORK"
wrong "$own" 's/Hidden:.1024, 2880/Hidden:[1024/' 'the comment has 1 hidden sizes, and the list 2'
wrong "$own" 's/Hidden:.1024, 2880/Hidden:[2880, 1024/' 'one ascending number for each'
wrong "$own" 's/TP=4/TP=2/' 'a list with axes of its own, and no TP size above 2'
printed=$WORK/printed.cpp
wrong "$printed" '/Tokens:/s/.1, /[/' ':5: .*: the comment has 14 token counts, and the list 15'
wrong "$printed" "/Fusion:/s/.'NONE', /[/" ':3: .*: the comment has 3 fusions, and the list 4'
wrong "$printed" "/Fusion:/s/.'NONE', /['MOE', /" ':3: .*: the comment has the fusion MOE; each of NONE, '
refuses '--era 2024 is none; valid: today' "$header_file" --era 2024 --arch sm90
refuses 'there are tables of sm90, sm100; a folder, or --arch, is required' "$header_file"
refuses 'has no table of sm89; it has sm90, sm100' "$header_file" --arch sm89
given 'has thresholds \(HeuristicThresholdLP\) and no table' 'inline std::map<> HeuristicThresholdLP{'
given 'ends within the name of a table' 'inline AllReduceBestStrategyTableType AllReduceBestStrategyTableSM'
given 'SM90: 0 TP sizes' 'T AllReduceBestStrategyTableSM90 = {};'

# ---- TensorRT-LLM's CSVs
wrong "$inputs/trtllm_b.csv" '2s/1x1024/1024/' \
    ':2: shape is "1024"; it must be tokens and hidden size, such as 16x4096'
wrong "$inputs/trtllm_b.csv" '2s/1x1024/1x/' ':2: shape is "1x"'
wrong "$inputs/trtllm_b.csv" '1s/version/num_tokens/' ':1: duplicate column "num_tokens"'
wrong "$inputs/trtllm_c.csv" '3s/,8.5//' ':3: fewer fields than the header'
wrong "$inputs/trtllm_d.csv" '3s/ONESHOT/ONESHOTS/' ':3: '
refuses 'has times of whole loops; give the number of calls in a loop with --calls N' "$inputs/trtllm_a.txt"
wrong "$inputs/trtllm_a.txt" '3s/, 1, /, /' ':3: 6 fields; the header has 7' --calls 10
wrong "$inputs/trtllm_a.txt" '3s/NONE/RESIDUAL_RMS_NORM/' ':3: RESIDUAL_RMS_NORM of a message of which only' \
    --calls 10
wrong "$inputs/trtllm_a.txt" '3s/12.5/0x10/' ':3: duration \(ms\) is "0x10"; a number above 0' --calls 10
refuses ':3: 8192 elements are no whole tokens of --hidden-size 5000' "$inputs/trtllm_a.txt" --calls 10 \
    --hidden-size 5000

# ---- nccl-tests
table=$inputs/nccl_tests.txt
wrong "$table" '12s/ 0$//' ':12: 12 words; the header has 13'
wrong "$table" '13s/^\( *[0-9]*\) .*/\1/' ':13: a row that is cut off'
wrong "$table" '12s/sum/max/' ':12: redop is "max"; rows are of sums'
wrong "$table" '12s/bfloat16/   uint8/' ':12: type is "uint8"'
wrong "$table" '12s/ 8 / 9 /' ':12: 9 B are not 4 elements of bfloat16'
wrong "$table" '12s/ 8 /-8 /' ':12: size is "-8"; a whole number'
wrong "$table" '12s/11.20/  nan/' ':12: time is "nan"'
wrong "$table" 's/all_reduce_perf/all_gather_perf/' ':2: is of all_gather_perf; rows are of all_reduce_perf'
wrong "$table" '10s/ time/ cputime/' ':10: has times of the CPU'
wrong "$table" '10d' 'has no line # size count|:1[0-9]: a row before' --from nccl-tests
refuses 'is of 2 ranks, and --tp is 4' "$table" --tp 4
wrong "$table" '/Rank/d' 'has no number of ranks; give it with --tp N'
wrong "$table" 's/Rank  1/Rank  0/' ':7: rank 0 is listed twice'
json=$inputs/nccl_tests.json
wrong "$json" 's/"rank":1/"rank":"x"/' 'rank is "x"; a whole number of 0 to 65534'
wrong "$json" 's/"version":1/"version":5/' 'is of version 5; versions 1 to 4 are known'
wrong "$json" 's/"version":1,//' 'has no version'
wrong "$json" 's/"config"/"configuration"/' 'has no config; the run may have been cut off'
wrong "$json" 's/"size":8/"size":9/' 'results\[0\]: 9 B are not 4 elements'
wrong "$json" 's/"out_of_place":{/"out_of_plaice":{/' 'results\[0\] has no out_of_place'
head -c 500 "$json" >"$bad"
refuses 'is no JSON, or cut off' "$bad"

# ---- OSU
wrong "$inputs/osu_7.txt" 's/Allreduce/Broadcast/' ':2: is of Broadcast; rows are of Allreduce' --tp 2
refuses 'has no number of ranks' "$inputs/osu_7.txt"
refuses 'has no number of ranks' "$inputs/osu_7.txt" --tp 2,4
wrong "$inputs/osu_7.txt" 's/MPI_FLOAT/MPI_CHAR/' ':5: is of MPI_CHAR, which is no data type' --tp 2
wrong "$inputs/osu_7.txt" '/Datatype/d' ':4: is of an unnamed data type' --tp 2
wrong "$inputs/osu_7.txt" '5s/1000//' ':5: 4 numbers; the header has 5' --tp 2
wrong "$inputs/osu_7.txt" '4d' ':4: a row before the line # Size' --tp 2
wrong "$inputs/osu_7.txt" '5s/^4/6/' ':5: 6 B are no whole elements' --tp 2
wrong "$inputs/osu_7.txt" '5s/^4/-4/' ':5: Size is "-4"; a whole number from 1' --tp 2
wrong "$inputs/osu_7.txt" '5s/^4/x4/' ':5: Size is "x4"; a whole number from 1' --tp 2
wrong "$inputs/osu_7.txt" '5s/^4 *[0-9.]*/4  1e308/' ':5: .* is "1e308"; .* from 1e-06 to 1e\+12' \
    --tp 2
{
    cat "$inputs/osu_7.txt"
    printf '\n# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n4                    3.50\n'
} >"$bad"
refuses 'bad:8: is of Bandwidth; rows are of Allreduce' "$bad" --tp 2
grep -v 'OSU MPI Bandwidth' "$bad" >"$WORK/untitled"
refuses 'untitled:8: has no times of an allreduce: "# Size      Bandwidth' "$WORK/untitled" --tp 2
tail -n 3 "$bad" >"$WORK/bandwidth"
refuses 'bandwidth:1: is of Bandwidth; rows are of Allreduce' "$WORK/bandwidth" --tp 2
refuses 'unknown --strategy "RING"' "$inputs/osu_7.txt" --tp 2 --strategy RING
head -c -2 "$inputs/osu_5.txt" >"$bad"
refuses ': the last line has no line end, so its last number may be cut off' "$bad" --tp 2

# ---- the input of optimize_config.py
optimizer=$inputs/nccl_optimizer.csv
wrong "$optimizer" '1s/nodes/hosts/' ':1: unknown column "hosts"' --arch sm90
wrong "$optimizer" '2s/tree/trie/' ':2: no strategy is "trie"' --arch sm90
wrong "$optimizer" '2s/simple,2/simple,3/' ':2: no strategy is "tree", "simple", 3 channels' --arch sm90
wrong "$optimizer" '3s/,1,8,/,3,8,/' ':3: 8 ranks on 3 nodes; the same number of ranks on each' --arch sm90
wrong "$optimizer" '3s/,10.8//' ':3: 11 fields; the header has 12' --arch sm90
wrong "$optimizer" '3s/allreduce/all_reduce/' ':3: unknown collective "all_reduce"' --arch sm90
wrong "$optimizer" '3s/^/allreduce,1024,ring,simple,4,1,8,-1,-1,0.12,52.1,10.8\n/; 6d' \
    ':4: the same cell and strategy, NCCL_RING_SIMPLE_4CH, as in .*:3' --arch sm90

# ---- FlashInfer
wrong "$inputs/flashinfer.txt" '/^dtype/d' ': a time before the line with its dtype' --tp 2
wrong "$inputs/flashinfer.txt" 's/bfloat16/float8/' ':3: unknown dtype "float8"' --tp 2
wrong "$inputs/flashinfer.txt" 's/0.020/0.0/' ':8: Time \(ms\) is "0.0"' --tp 2

# ---- NCCL's tuner
rule=allreduce,0,1024,ring,ll,2,1,8
given ':2: 3 fields; 8 to 10' "$rule
allreduce,0,1" --arch sm90
given ':2: unknown collective "collective_type", which the plugin would take for allreduce' "$rule
collective_type,0,1,ring,ll,2,1,8" --arch sm90
given ':1: unknown algorithm "rong" .*take for ring' allreduce,0,1,rong,ll,2,1,8 --arch sm90
given ':1: unknown algorithm "pat"' allreduce,0,1,pat,ll,2,1,8 --arch sm90
given ':1: unknown protocol "LL", which the plugin would take' allreduce,0,1,ring,LL,2,1,8 --arch sm90
given ':1: min_bytes 2 is above max_bytes 1' allreduce,2,1,ring,ll,2,1,8 --arch sm90
given ':1: no strategy is nvls, ll, 2 channels' allreduce,0,1,nvls,ll,2,1,8 --arch sm90
given ':1: 3[0-9][0-9] characters; the plugin reads 255' "$rule$(printf '%300s' '')" --arch sm90
given 'its rules are for any number of ranks; give them' allreduce,0,1,ring,ll,2,-1,-1 --arch sm90
given ':2: 8 ranks on 3 nodes; the same number of ranks on each node is required' "$rule
allreduce,0,1024,ring,ll,2,3,8" --arch sm90
given 'has no arch; --arch ARCH is required' "$rule"
given 'has no rule for allreduce' broadcast,0,1024,ring,ll,2,1,8 --arch sm90

# ---- Open MPI's rules
rules=$inputs/ompi_rules.conf
wrong "$rules" '7s/ 4 / 9 /' ':7: unknown algorithm 9 of an allreduce'
wrong "$rules" '6s/^0/1/' ':6: the first message size is 1; it must be 0'
wrong "$rules" '8s/^1048576/65536/' ':8: message size 65536 after 65536; they ascend'
wrong "$rules" '8d' ':7: the file ends before a message size'
wrong "$rules" '8s/$/ 7/' ':8: 7 follows the last rule'
wrong "$rules" '7s/4/ring/' ':7: a field is "ring"'
wrong "$rules" '1s/^/rule-file-version-3\n/' ':1: is of version 3'
wrong "$rules" '2s/2/3/' 'has no rules for allreduce'
refuses 'has no rules for 2 ranks' "$rules" --tp 2
json=$inputs/ompi_rules.json
wrong "$json" 's/version":3/version":4/' 'is of version 4; version 3 is required'
wrong "$json" 's/"ring"/"rung"/' 'unknown algorithm "rung"'
wrong "$json" 's/"reqs":0,"faninout":0}\]/"fan":0}]/' 'rules\[1\] has an unknown "fan"'
wrong "$json" 's/"any"/"spread"/' 'comm_rank_distribution is "spread"'
wrong "$json" 's/size_max":4/size_max":8/' 'allreduce\[0\] is for a range of ranks; give them with --tp N,N'
wrong "$json" 's/"inf"/"Inf"/' 'msg_size_max is "Inf"; a whole number or "inf"'
wrong "$json" 's/}]}]}}/}]}]/' 'is no JSON, or cut off'
