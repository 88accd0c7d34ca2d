#!/bin/sh
# A file with requests and answers of the bench becomes rows with their provenance, also if it was cut off, or
# has several runs of the bench; invalid lines end in one line.
. "$SOURCE/tests/lib.sh"

ask='op=allreduce dtype=bfloat16 fusion=NONE hidden_size=1024 mode=graph'
hello='cores=16 placement=loopback roundtrip_us=1.5 protocol=2 bench=0123456789abcdef isa=sm_90 compiler=gcc'
times='time_us=3.5 low_us=3.4 high_us=3.6 samples=20 min_us=3.3 p95_us=3.7 p99_us=3.8 bound_us=0.5'
rest='bits=00000000000000ab mode=graph accumulate=fp32 placement=loopback floor_us=1.2 calls=32'
kept=$WORK/rows.tp2.txt
{
    echo "measure id=1 $ask num_tokens=1"
    echo "measure id=2 $ask num_tokens=4"
    echo "measure id=3 $ask num_tokens=16"
    echo "hello world_size=2 $hello library=CUDA 13.0 with driver 580 for 13.0 and no NCCL on 1 x NVIDIA H100"
    echo "device rank=0 gpu=0 sm=90 name=NVIDIA_H100"
    echo "row id=1 strategy=ONESHOT $times $rest"
    echo "none id=1 strategy=TWOSHOT reason=fewer tokens than ranks"
    echo "done id=1 roundtrip_us=1.5"
    echo "hello world_size=2 $hello library=CUDA 13.0 with driver 580 for 13.0 and no NCCL on 1 x NVIDIA H100"
    echo "row id=2 strategy=TWOSHOT $times $rest"
    echo "done id=2 roundtrip_us=1.5"
    printf 'row id=3 strategy=ONESHOT time_us=4'
} >"$kept"
succeeds import "$kept" --arch sm90-loopback --out "$WORK/out"
grep -q "left out, a line that is cut off: 1" "$stderr" || die "no message about the cut line"
rows=$WORK/out/benchmark.tp2.sm90-loopback.csv
[ "$(wc -l <"$rows")" = 3 ] || die "not two rows"
has "^2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,3.5000,.*,graph,fp32,loopback,.*1.2000,32" "$rows"
grep -q "^2,bfloat16,8192,4,1024,TWOSHOT," "$rows" || die "the second run's row"
for fact in '"gpu": "1 x NVIDIA H100"' '"reason": "fewer tokens than ranks"' '"name": "NVIDIA_H100"' \
    '"bench": "0123456789abcdef"' '"placement": "loopback"'; do
    grep -q "$fact" "$WORK/out/benchmark.tp2.sm90-loopback.json" || die "the provenance lacks $fact"
done

# Ranks on several nodes are rows of these nodes.
sed 's/^hello world_size=2 /&nodes=2 ranks_per_node=1 /' "$kept" >"$WORK/nodes.txt"
succeeds import "$WORK/nodes.txt" --from bench-rows --arch sm90 --out "$WORK/nodes"
has '^2,bfloat16,2048,1,1024,ONESHOT,.*,2,1$' "$WORK/nodes/benchmark.tp2.nodes2.sm90.csv"
has '"reason": "fewer tokens than ranks"' "$WORK/nodes/benchmark.tp2.nodes2.sm90.json"

# refused PATTERN SED-SCRIPT
refused() {
    sed "$2" "$kept" >"$WORK/bad.txt"
    echo >>"$WORK/bad.txt"
    rejects "$1" import "$WORK/bad.txt" --from bench-rows --arch sm90-loopback --out "$WORK/bad"
}
sed -i '$d' "$kept"
refused "bad.txt:6: an answer without a request: id=7" 's/^row id=1 /row id=7 /'
refused "bad.txt:6: a row with time_us=-1" 's/^\(row id=1 .*\) time_us=3.5/\1 time_us=-1/'
refused "bad.txt:4: has protocol 9; protocol 2 or 3 is required" 's/protocol=2/protocol=9/'
refused "bad.txt:4: 2 ranks on 3 nodes; the same number of ranks on each node is required" \
    's/^hello /&nodes=3 /'
refused "bad.txt:6: unknown strategy" 's/^row id=1 strategy=ONESHOT/row id=1 strategy=NONSENSE/'
refused "has no greeting" '/^hello/d; /^row/d; /^none/d'
refused "bad.txt:1: num_tokens is \"0\"" 's/^\(measure id=1 .*\)num_tokens=1/\1num_tokens=0/'
