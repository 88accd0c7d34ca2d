#!/usr/bin/env python3
# merge_check.py MERGED RANK=TRACE...: whether the merged trace has exactly the content of these traces, by
# reading all of them again. Shares no code with the merge.
import collections
import gzip
import json
import sys
from decimal import Decimal

KEPT = ["kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "gpu_user_annotation",
        "user_annotation", "ac2g", "fwdbwd", "cpu_instant_event"]
GPU = ["kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"]


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return json.loads(file.read().decode("utf-8", "replace"), strict=False, parse_float=Decimal)


def track(event):
    return str(event["pid"]), str(event["tid"])


def flows_with_both_ends(events, gpu, cpu):
    ends = collections.defaultdict(set)
    for event in events:
        if event["ph"] in "sf":
            ends[event["cat"], str(event["id"])].add(event["ph"])
    return [event for event in events if event["ph"] in "sf" and track(event) in gpu | cpu
            and len(ends[event["cat"], str(event["id"])]) == 2]


def check_rank(rank, trace, merged, shift):
    events = [event for event in trace["traceEvents"] if event.get("cat") in KEPT]
    gpu = {track(event) for event in events if event["cat"] in GPU}
    cpu = {track(event) for event in events if event["cat"] not in GPU and event["ph"] not in "sf"}
    whole = flows_with_both_ends(events, gpu, cpu)
    wanted = [event for event in events if event["ph"] not in "sf"] + whole
    mine = [event for event in merged if event["ph"] != "M" and event["pid"] // 1000 == rank]
    assert len(mine) == len(wanted), (rank, len(mine), len(wanted))

    def form(event, name):
        return event["cat"], event["ph"], name, str(event["tid"])

    times = collections.defaultdict(list)
    for event in wanted:
        times[form(event, "[R%d] %s" % (rank, event["name"]))].append(
            (Decimal(event["ts"]) + shift, max(Decimal(0), Decimal(event.get("dur", 0)))))
    for event in mine:
        assert event["args"]["rank"] == rank, event
        is_gpu = event["cat"] in GPU or (event["ph"] in "sf" and track_is_gpu(event, merged))
        assert (event["pid"] % 1000 < 500) == is_gpu, event
        times[form(event, event["name"])].remove((event["ts"], event.get("dur", 0)))
    assert not any(times.values())
    return {str(event["args"]["correlation"]) for event in mine if "correlation" in event.get("args", {})}, \
        {event["id"] for event in mine if event["ph"] in "sf"}


TRACKS = {}


def track_is_gpu(event, merged):
    if not TRACKS:
        for other in merged:
            if other["ph"] == "X":
                TRACKS[other["pid"], str(other["tid"])] = other["cat"] in GPU
    return TRACKS[event["pid"], str(event["tid"])]


def check_flows(merged):
    places, ends = set(), collections.defaultdict(list)
    for event in merged:
        if event["ph"] in "Xi":
            places.add((event["pid"], str(event["tid"]), event["ts"]))
        elif event["ph"] in "sf":
            ends[event["cat"], event["id"]].append(event)
    for (category, _), events in ends.items():
        assert {event["ph"] for event in events} == {"s", "f"}, events
        assert len({event["pid"] // 1000 for event in events}) == 1, events
        for event in events:
            at = (event["pid"], str(event["tid"]), event["ts"])
            # Forward and backward are joined at operators, which are not kept.
            assert at in places or category == "fwdbwd" or event["ph"] == "f", event


def check_names(merged, ranks):
    names, places = {}, {}
    for event in merged:
        if event["ph"] == "M" and event["name"] == "process_name":
            names[event["pid"]] = event["args"]["name"]
        if event["ph"] == "M" and event["name"] == "process_sort_index":
            places[event["pid"]] = event["args"]["sort_index"]
    for rank in ranks:
        assert names[rank * 1000].startswith("Rank %d - GPU Stream" % rank), names
        assert names[rank * 1000 + 500] == "Rank %d - CPU/CUDA Runtime" % rank, names
        assert places[rank * 1000] == 2 * rank and places[rank * 1000 + 500] == 2 * rank + 1, places
    threads = {(event["pid"], str(event["tid"])) for event in merged
               if event["ph"] == "M" and event["name"] == "thread_name"}
    for event in merged:
        if event.get("cat") in GPU:
            assert (event["pid"], str(event["tid"])) in threads, event


def main():
    merged = load(sys.argv[1])
    traces = {int(word.split("=", 1)[0]): load(word.split("=", 1)[1]) for word in sys.argv[2:]}
    bases = {rank: trace.get("baseTimeNanoseconds") for rank, trace in traces.items()}
    known = [base for base in bases.values() if base is not None]
    assert merged.get("baseTimeNanoseconds") == (min(known) if known else None)
    seen_ids, seen_flows = set(), set()
    for rank, trace in traces.items():
        shift = Decimal(bases[rank] - min(known)) / 1000 if bases[rank] is not None else 0
        ids, flows = check_rank(rank, trace, merged["traceEvents"], shift)
        assert not ids & seen_ids and not flows & seen_flows, "an id is of two ranks"
        seen_ids |= ids
        seen_flows |= flows
    check_flows(merged["traceEvents"])
    check_names(merged["traceEvents"], traces)
    assert {event["pid"] // 1000 for event in merged["traceEvents"]} == set(traces)


main()
