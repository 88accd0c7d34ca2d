#!/usr/bin/python3
"""What dump.lua prints, by Python's json and the rules as they are written: oracle.py FILE

Shares nothing with the reader. Knows well-formed traces only.
"""
import gzip
import json
import sys

KINDS = {"cpu_op": "cpu_op", "cuda_runtime": "runtime", "cuda_driver": "driver", "kernel": "kernel",
         "gpu_memcpy": "memcpy", "gpu_memset": "memset", "user_annotation": "mark"}
CALLS = ("cuda_runtime", "cuda_driver")
HOST = ("cpu_op",) + CALLS
GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        root = json.loads(file.read().decode("utf-8"), strict=False)
    return root if isinstance(root, dict) else {"traceEvents": root}


def arg(event, key):
    return (event.get("args") or {}).get(key)


def link_gpu(events):
    """Returns the uid of what launched it for the uid of each GPU event, and the key."""
    first = next((e for e in events if e.get("cat") in CALLS and "launch" in e["name"].lower()), None)
    key = "correlation" if first is None or "correlation" in first["args"] else "External id"
    starts = {e["id"] for e in events if e.get("cat") == "ac2g" and e["ph"] == "s"}
    finishes = {e["id"]: (e["pid"], e["tid"]) for e in events if e.get("cat") == "ac2g" and e["ph"] == "f"}
    by_key, by_track = {}, {}
    for event in events:
        if event.get("cat") in GPU and arg(event, key) is not None:
            by_key.setdefault(arg(event, key), []).append(event["uid"])
            by_track[event["pid"], event["tid"], arg(event, key)] = event["uid"]
    parents = {}
    for event in events:
        value = arg(event, key)
        if event.get("cat") not in CALLS or value is None:
            continue
        if "GraphLaunch" in event["name"] or not (starts or finishes):
            found = by_key.get(value, [])
        elif value in starts and value in finishes:
            found = [by_track.get(finishes[value] + (value,))]
        else:
            found = []
        for uid in found:
            if uid is not None:
                parents.setdefault(uid, event["uid"])
    return parents, key


def link_host(events):
    """Returns the parents, and the uids of those that overlap without nesting, in order of start."""
    stacks, parents, overlapping = {}, {}, []
    for event in sorted((e for e in events if e.get("cat") in HOST), key=lambda e: float(e["ts"])):
        stack = stacks.setdefault((event["pid"], event["tid"]), [])
        start, end = float(event["ts"]), float(event["ts"]) + float(event["dur"])
        while stack and start >= stack[-1][0]:
            stack.pop()
        while len(stack) > 1 and end > stack[-1][0] and stack[-1][0] - start < 1:
            stack.pop()
        if stack and end > stack[-1][0]:
            overlapping.append(event["uid"])
            continue
        if stack:
            parents[event["uid"]] = stack[-1][1]
        stack.append((end, event["uid"]))
    return parents, overlapping


def names_of(events):
    names = {}
    for event in events:
        if event.get("ph") == "M" and event["name"] in ("process_name", "process_labels", "thread_name"):
            text = event["args"].get("labels" if event["name"] == "process_labels" else "name")
            names[event["name"], event["pid"], event["tid"]] = text
    return names


def shown(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return "%.17g" % value
    if isinstance(value, list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value).replace("\n", " ").replace("\t", " ")


def line(label, row):
    print("\t".join([label] + ["%s=%s" % (key, shown(value)) for key, value in row]))


def print_event(event, parents, names, key):
    pid, tid, is_gpu = event["pid"], event["tid"], event["cat"] in GPU
    is_op = event["cat"] == "cpu_op"
    link = arg(event, key) if event["cat"] in GPU + CALLS else arg(event, "correlation")
    stream, device = arg(event, "stream"), arg(event, "device")
    line("event", [
        ("uid", event["uid"]), ("kind", KINDS[event["cat"]]), ("name", event["name"]),
        ("start", float(event["ts"])), ("duration", float(event["dur"])), ("pid", pid), ("tid", tid),
        ("process_name", names.get(("process_name", pid, 0), "Unknown")),
        ("process_label", names.get(("process_labels", pid, 0), "Unknown")),
        ("thread_name", names.get(("thread_name", pid, tid), "Unknown")), ("link", link),
        ("external", arg(event, "External id")),
        ("device", (pid if device is None else device) if is_gpu else None),
        ("stream", (tid if stream is None else stream) if is_gpu else None),
        ("sequence", arg(event, "Sequence number") if is_op else None), ("parent", parents.get(event["uid"])),
    ] + [(name, arg(event, said) if is_op else None) for name, said in (
        ("dims", "Input Dims"), ("types", "Input type"), ("strides", "Input Strides"),
        ("concrete", "Concrete Inputs"))])
    if is_gpu and arg(event, "Collective name"):
        line("collective", [(name, arg(event, said)) for name, said in (
            ("name", "Collective name"), ("dtype", "dtype"), ("group", "Process Group Name"),
            ("ranks", "Process Group Ranks"), ("in_split", "In split size"), ("out_split", "Out split size"),
            ("in_elements", "In msg nelems"), ("out_elements", "Out msg nelems"),
            ("group_size", "Group size"))])


def main():
    root = load(sys.argv[1])
    events = root["traceEvents"]
    for uid, event in enumerate(events):
        event["uid"] = uid
    parents, key = link_gpu(events)
    unlinked = [e["uid"] for e in events if e.get("cat") in GPU and e["uid"] not in parents]
    host_parents, overlapping = link_host(events)
    parents.update(host_parents)
    kept = [e for e in events if e.get("ph") == "X" and e.get("cat") in KINDS]
    info = root.get("distributedInfo", {})
    line("trace", [
        ("rank", info.get("rank")), ("world_size", info.get("world_size")),
        ("base_nanoseconds", root.get("baseTimeNanoseconds", 0)),
        ("devices", len(root.get("deviceProperties", []))), ("events", len(events)),
        ("kept_events", len(kept)), ("gpu_events", sum(e["cat"] in GPU for e in kept)), ("linked_by", key)])
    for name, uids in (("overlapping", overlapping), ("unlinked", unlinked)):
        if uids:
            line("flaw", [("name", name), ("count", len(uids)), ("first_byte", None), ("first_uid", uids[0])])
    names = names_of(events)
    for event in kept:
        print_event(event, parents, names, key)


main()
