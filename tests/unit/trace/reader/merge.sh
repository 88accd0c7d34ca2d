#!/bin/sh
# trace merge: the merged trace has the content of the ranks' traces, checked by a separate reader
# (merge_check.py), on traces made here with all possible differences and, if they are available, on real
# ones. Invalid input ends in one line and leaves earlier files.
# Needs: zlib
. "$SOURCE/tests/lib.sh"

needs python3
check="$SOURCE/tests/unit/trace/reader/merge_check.py"

# Rank 0: keys in another order, indented, texts that are invalid JSON. Rank 1: gzip, another base, two GPUs,
# ids and numbers as texts. Rank 2: no base, arrows without an end, a process with a GPU's name.
python3 - "$WORK" <<'PYTHON'
import gzip
import json
import os
import sys

work = sys.argv[1]


def event(category, name, pid, tid, start, duration, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration,
            "args": args}


def flow(ph, category, number, pid, tid, time):
    return {"ph": ph, "id": number, "pid": pid, "tid": tid, "ts": time, "cat": category, "name": category}


def thread(pid, tid, name):
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


def trace(rank, host, gpus, step):
    events = []
    for i in range(300): # more than one read to find the events
        gpu, at, number = gpus[i % len(gpus)], 1000.125 + step * i, i + (1 << 40 if i == 7 else 0)
        events += [
            event("cpu_op", "aten::mm", host, host, at, 9, **{"External id": number, "Input Dims": [[2, 2]]}),
            event("cuda_runtime", "cudaLaunchKernel", host, host, at + 1, 5, correlation=number,
                  **{"External id": number}),
            event("kernel", "gemm \\ \"%d\"" % i, gpu, 7, at + 9, 4.5, correlation=number, stream=7,
                  nested={"a": [1, {"b": "}"}]}, **{"External id": number}),
            flow("s", "ac2g", number, host, host, at + 1), flow("f", "ac2g", number, gpu, 7, at + 9),
            event("python_function", "f", host, host, at, 3)]
    events += [event("user_annotation", "step", host, host, 1000, 100),
               flow("s", "fwdbwd", 3, host, host, 1001), flow("f", "fwdbwd", 3, host, host, 1010),
               {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": host, "tid": host,
                "ts": 1003}, event("gpu_memset", "Memset", gpus[0], 8, 2000, 1),
               thread(host, host, "thread %d (python)" % host), thread(gpus[0], 7, "stream 7 "),
               {"ph": "M", "name": "process_name", "pid": host, "tid": 0, "args": {"name": "python"}}]
    return {"distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": events,
            "baseTimeNanoseconds": 1000000}


def write(rank, text):
    os.makedirs("%s/run/rank%d" % (work, rank))
    name = "%s/run/rank%d/t.json" % (work, rank)
    if rank == 1:
        with gzip.open(name + ".gz", "wb") as file:
            file.write(text.encode())
    else:
        with open(name, "w") as file:
            file.write(text)


first = trace(0, 500, [0], 20)
first["traceEvents"] = [dict(reversed(list(event.items()))) for event in reversed(first["traceEvents"])]
write(0, json.dumps(first, indent=1).replace("[memory]", "[mem\x01ory]"))
second = trace(1, 600, [3, 11], 30)
second["baseTimeNanoseconds"] = 3456789
for event_ in second["traceEvents"]:
    if "ts" in event_:
        event_["ts"] = str(event_["ts"])
    if event_["ph"] in "sf":
        event_["id"] = str(event_["id"])
write(1, json.dumps(second))
third = trace(2, 2, [2], 25)
del third["baseTimeNanoseconds"]
third["traceEvents"] += [flow("s", "ac2g", 900, 2, 2, 5000), flow("f", "ac2g", 901, 2, 7, 5001)]
write(2, json.dumps(third))
PYTHON
sed 's/\x01/ /' "$WORK/run/rank0/t.json" >"$WORK/clean.json"
ranks="0=$WORK/clean.json 1=$WORK/run/rank1/t.json.gz 2=$WORK/run/rank2/t.json"

succeeds trace merge "$WORK/run" -o "$WORK/merged.json"
# shellcheck disable=SC2086
python3 "$check" "$WORK/merged.json" $ranks || die "the merged trace differs"
has ': 3 ranks, .*; 2 arrows without a second end are left out' "$stdout"
has 'rank2/t.json: no baseTimeNanoseconds' "$stderr"
grep -q '"Rank 1 - GPU Stream (GPU 11)"' "$WORK/merged.json" || die "two GPUs of a rank are one"

# Packed, by files, in another order of files; a number of ranks; more categories.
succeeds trace merge "$WORK/run/rank2/t.json" "$WORK/run/rank1/t.json.gz" \
    "$WORK/run/rank0/t.json" --output "$WORK/packed.json.gz"
gzip -dc "$WORK/packed.json.gz" >"$WORK/unpacked.json" || die "what is packed cannot be unpacked"
cmp -s "$WORK/unpacked.json" "$WORK/merged.json" || die "packing, or the order of files, changes the trace"
succeeds trace merge "$WORK/run" -n 2 -o "$WORK/two.json"
python3 "$check" "$WORK/two.json" "0=$WORK/clean.json" "1=$WORK/run/rank1/t.json.gz" || die "two ranks differ"
succeeds trace merge "$WORK/run" -n 5 -o "$WORK/five.json"
grep -q 'no trace of rank 3, 4' "$stderr" || die "no message about missing ranks"
succeeds trace merge "$WORK/run" --keep cpu_op --keep python_function -o "$WORK/more.json"
[ "$(grep -c '"cat":"cpu_op"' "$WORK/more.json")" = 900 ] || die "--keep keeps nothing"

# For any cuts of the files, and any number of threads.
cat >"$WORK/cut.lua" <<'LUA'
local merge, run = require "core.merge", arg[1]
local categories = require("trace.merge.merging").categories
local files = { { path = run .. "/rank0/t.json" }, { path = run .. "/rank1/t.json.gz" },
  { path = run .. "/rank2/t.json" } }
for workers = 1, 4, 3 do
  assert(merge.write(("%s/cut%d.json"):format(arg[2], workers), files,
    { categories = categories, workers = workers, chunk_size = 700 }))
end
LUA
"$GENTABLES" lua "$WORK/cut.lua" "$WORK/run" "$WORK" || die "small chunks are not merged"
cmp -s "$WORK/cut1.json" "$WORK/cut4.json" || die "the threads change the trace"
# shellcheck disable=SC2086
python3 "$check" "$WORK/cut1.json" $ranks || die "small chunks differ"

# A sweep: a merged trace for each configuration; a failing one does not end the others.
for channels in 28 56; do
    mkdir -p "$WORK/sweep/256thread/nccl_${channels}channels/torch_profiler"
    cp -r "$WORK/run/rank0" "$WORK/run/rank1" "$WORK/sweep/256thread/nccl_${channels}channels/torch_profiler"
done
echo '{"traceEvents": [{"ph": "X"' >"$WORK/sweep/256thread/nccl_28channels/torch_profiler/rank0/t.json"
ends_with 1 "$GENTABLES" trace merge "$WORK/sweep" -o "$WORK/out"
[ "$(ls "$WORK/out")" = 256thread_56ch_merged.json ] || die "a configuration that fails ends the others"
has '^gentables: 1 of 2 configurations are not merged: 256thread_28ch' "$stderr"

# Invalid input: one line, and earlier files stay.
bad() { # CODE PATTERN ARGUMENT...: expects that merging these to `kept.json` fails
    code_wanted=$1 pattern=$2
    shift 2
    echo before >"$WORK/kept.json"
    gentables_ends "$code_wanted" "$pattern" trace merge "$@" -o "$WORK/kept.json"
    [ "$(cat "$WORK/kept.json")" = before ] || die "what was there is gone"
    set -- "$WORK"/kept.json.*
    [ ! -e "$1" ] || die "a temporary file is left"
}
run=$WORK/run
mkdir "$WORK/empty"
bad 2 'empty: no trace here' "$WORK/empty"
cp "$run/rank0/t.json" "$WORK/copy_rank0.json"
bad 2 'copy_rank0.json and .*rank0/t.json are both of rank 0' "$run/rank0/t.json" "$WORK/copy_rank0.json"
cp "$run/rank0/t.json" "$WORK/a.json" && cp "$run/rank0/t.json" "$WORK/b.json"
bad 2 'a.json and .*b.json are both rank 0' "$WORK/a.json" "$WORK/b.json"
head -c 3000 "$run/rank2/t.json" >"$WORK/short.json"
bad 2 'short.json: byte 3000: the text ends here' "$run/rank0/t.json" "$WORK/short.json"
head -c 900 "$run/rank1/t.json.gz" >"$WORK/short.json.gz"
bad 2 'short.json.gz: the gzip data are cut off' "$run/rank0/t.json" "$WORK/short.json.gz"
echo '{"traceEvents": [{"ph":"M"} {"ph":"M"}]}' >"$WORK/comma.json"
bad 2 'comma.json: byte 28: not JSON: a comma is missing' "$WORK/comma.json"
echo '{"a": 1}' >"$WORK/other.json"
bad 2 'other.json: .*no traceEvents' "$WORK/other.json"
bad 2 'absent.json: ' "$WORK/absent.json"
bad 2 '--tp: "x" is not a whole number' -n x "$run"
cp "$WORK/run/rank0/t.json" "$WORK/input.json"
ln -s input.json "$WORK/link.json"
ends_with 2 "$GENTABLES" trace merge "$WORK/input.json" -o "$WORK/link.json"
one_line 'link.json: is one of the traces to be merged; give another --out'
cmp "$WORK/run/rank0/t.json" "$WORK/input.json" || die "an input is changed"
failed 'nowhere/m.json: cannot be written' trace merge "$run" -o "$WORK/nowhere/m.json"

# Unusable events are left out, and reported; ids without room for the rank stay apart.
cat >"$WORK/odd.json" <<'JSON'
{"traceEvents": [
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1,"dur":-5,
    "args":{"correlation":12345678901234567890}},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":"soon","dur":1},
{"ph":"X","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":1},
{"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":1,"dur":1,"args":{"x":tru}},
{"ph":"X","cat":"kernel","name":"d","pid":{"gpu":0},"tid":7,"ts":1,"dur":1},
{"ph":"X","cat":"kernel","name":"e","pid":0,"tid":["7"],"ts":1,"dur":1},
{"ph":"X","cat":"kernel","name":"f","pid":0,"tid":7,"ts":1,"dur":1,"args":null}
]}
JSON
succeeds trace merge "$WORK/odd.json" -o "$WORK/odd_merged.json"
grep -q 'odd.json: 5 events are left out' "$stderr" || die "no message about omitted events"
grep -q 'odd.json: 1 durations are negative' "$stderr" || die "no message about negative durations"
grep -q 'odd.json: 1 ids are too long' "$stderr" || die "no message about long ids"
python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$WORK/odd_merged.json" || die "that is no JSON"

if [ -d "${GENTABLES_DATA:-}/traces" ]; then
    real=$GENTABLES_DATA/traces
    set --
    rank=0
    for name in a100_nccl_rank0of2 b200_eager_rank0of8 h100_bert mi300_qwen h800_deepseek_rank0of64; do
        mkdir -p "$WORK/real/rank$rank"
        cp "$real/$name.json.gz" "$WORK/real/rank$rank/trace.json.gz"
        set -- "$@" "$rank=$real/$name.json.gz"
        rank=$((rank + 1))
    done
    succeeds trace merge "$WORK/real" -o "$WORK/real.json.gz"
    python3 "$check" "$WORK/real.json.gz" "$@" || die "the merged real traces differ"
    succeeds trace merge "$real/sampled_rank-0.json.gz" "$real/sampled_rank-1.json.gz" -o "$WORK/sampled.json"
    python3 "$check" "$WORK/sampled.json" "0=$real/sampled_rank-0.json.gz" "1=$real/sampled_rank-1.json.gz" ||
        die "the sampled pair differs"
fi
