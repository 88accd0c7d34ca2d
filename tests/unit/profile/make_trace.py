# Makes small profiler files, with metrics that can be computed by hand: make_trace.py FOLDER.
#
# rank0.json, rank1.json: one AllReduce of 4000 B, which rank 0 enters 40 us before rank 1. Times in us:
#   rank 0: gemm 100..200, fused_moe_kernel 150..250, nccl 220..300, gemm 280..320, copy of 20000 B 400..410,
#           memset 500..500.5; steps 50..350, 350..550; a GEMM of 2 * 1000 * 267 * 1500 FLOPs
#   rank 1: gemm 100..170, nccl 260..300
# sizes.json: an AllGather of 4 ranks of 1000, 2000 and 4000 B that takes 5 us + 1 ns per byte.
# rank0.sqlite: rank 0 as nsys exports it, without GEMMs and bytes of collectives; node.sqlite: both ranks.
import gzip
import json
import os
import sqlite3
import sys

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)


def event(cat, name, start, length, args, pid=0, tid=7):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length,
            "args": args}


def kernel(name, start, length, stream=7, **args):
    return event("kernel", name, start, length, {"device": 0, "stream": stream, **args}, tid=stream)


def comms(name, in_elements, out_elements, group_size, dtype="Float"):
    return {"Collective name": name, "In msg nelems": in_elements, "Out msg nelems": out_elements,
            "Group size": group_size, "dtype": dtype, "Process Group Name": "0",
            "Process Group Ranks": str(list(range(group_size)))}


def write(name, events, **top):
    text = json.dumps({"schemaVersion": 1, **top, "traceEvents": events})
    with open(os.path.join(folder, name), "w") as out:
        out.write(text)
    with open(os.path.join(folder, name + ".gz"), "wb") as out:
        out.write(gzip.compress(text.encode()))


ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COMMS = comms("allreduce", 1000, 1000, 2)
rank0 = [
    {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
    event("user_annotation", "ProfilerStep#1", 50, 300, {}, 9, 9),
    event("user_annotation", "ProfilerStep#2", 350, 200, {}, 9, 9),
    event("user_annotation", "step 1", 1, 1, {}, 9, 9),
    event("gpu_user_annotation", "ProfilerStep#1", 100, 1, {}),
    event("cpu_op", "aten::mm", 60, 20, {"Input Dims": [[1000, 267], [267, 1500]]}, 9, 9),
    event("cpu_op", "aten::mm", 65, 10, {"Input Dims": [[1000, 267], [267, 1500]]}, 9, 9),  # the same again
    event("cpu_op", "record_param_comms", 90, 5, {"External id": 5, **COMMS}, 9, 9),
    kernel("gemm", 280, 40),
    kernel("gemm", 100, 100),
    kernel("fused_moe_kernel", 150, 100, 8),
    kernel(ALLREDUCE, 220, 80, 9, **{"External id": 5}),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 400, 10, {"device": 0, "bytes": 20000}),
    event("gpu_memset", "Memset (Device)", 500, 0.5, {"device": 0, "stream": 7, "bytes": 8}),
]
rank1 = [kernel("gemm", 100, 70), kernel(ALLREDUCE, 260, 40, 9, **COMMS)]
write("rank0.json", rank0, distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2})
write("rank1.json", rank1, distributedInfo={"backend": "nccl", "rank": 1, "world_size": 2})
write("sizes.json", [kernel("ncclDevKernel_Generic(x)", 100 * n, 5 + n, 9,
                            **comms("_allgather_base", 62 * n, 250 * n, 4)) for n in (1, 2, 4)])


def database(name, gpus):
    path = os.path.join(folder, name)
    if os.path.exists(path):
        os.unlink(path)
    out = sqlite3.connect(path)
    out.executescript("""
      CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
        globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
      CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
        globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
      CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
        globalPid INTEGER, bytes INTEGER);
      CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
    """)
    ids = {}
    for device, (events, pid) in enumerate(gpus):
        process = pid << 24
        for e in events:
            times = (round(e.get("ts", 0) * 1000), round((e.get("ts", 0) + e.get("dur", 0)) * 1000))
            cat, args = e.get("cat"), e["args"]
            if cat == "kernel":
                name = ids.setdefault(e["name"], len(ids) + 1)
                out.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?)",
                            (*times, device, args["stream"], process, name, name))
            elif cat == "gpu_memcpy":
                out.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?,?)",
                            (*times, device, 7, process, args["bytes"], 1))
            elif cat == "gpu_memset":
                out.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?,?,?,?,?,?)",
                            (*times, device, 7, process, args["bytes"]))
            elif cat == "user_annotation":
                out.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,?,NULL,?)", (*times, e["name"], process + 3))
    out.executemany("INSERT INTO StringIds VALUES (?,?)", [(i, name) for name, i in ids.items()])
    out.commit()
    out.close()


database("rank0.sqlite", [(rank0, 41)])
database("node.sqlite", [(rank0, 41), (rank1, 42)])
