"""The rules of Inductor's profile-guided estimates (torch/_inductor/fx_passes/profile_guided_estimation.py of 0196bc40,
2026-08), for one trace.

    inductor_rules.py rows FOLDER  writes rows of NCCL, and of a faster strategy
    inductor_rules.py ask FILE     asks for every time, between the sizes and outside
    inductor_rules.py ask_installed FILE   asks the Inductor that is installed for every time, and beside it
"""

import json
import math
import os
import statistics
import sys
from collections import defaultdict

from reader_sizes import print_counts

HEADER = "world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us),mode"
DTYPES = {"bfloat16": ("BFloat16", 2), "float16": ("Half", 2), "float32": ("Float", 4)}
HIDDEN_SIZE = 1024


def time_of(world, dtype, op, tokens):
    """A planned time in us: not the same for any two collectives."""
    return len(op) + world + DTYPES[dtype][1] / 4 + tokens ** 0.5


def sizes_of(dtype):
    return [1, 4, 16, 256, 4096] if dtype == "bfloat16" else [1, 64]


CASES = [(world, dtype, op) for world in (2, 8) for dtype in DTYPES
         for op in ("allreduce", "allgather", "reducescatter", "alltoall") if op == "allreduce" or dtype == "bfloat16"]


def rows(folder):
    os.makedirs(folder, exist_ok=True)
    for world in (2, 8):
        lines = [HEADER]
        for of, dtype, op in CASES:
            for tokens in sizes_of(dtype) if of == world else ():
                time = time_of(world, dtype, op, tokens)
                for name, factor in (("NCCL", 1), ("ONESHOT", 0.5)) if op == "allreduce" else (("NCCL", 1),):
                    lines.append("%d,%s,%d,%d,%d,%s,NONE,%s,%r,eager" % (
                        world, dtype, tokens * HIDDEN_SIZE * DTYPES[dtype][1], tokens, HIDDEN_SIZE, name, op, time * factor))
        # Another shape of the same size counts as a second measurement of it, a fused one does not.
        lines.append("%d,bfloat16,%d,2,512,NCCL,NONE,allreduce,%r,eager" % (
            world, 2048, time_of(world, "bfloat16", "allreduce", 1)))
        lines.append("%d,bfloat16,%d,1,1024,NCCL,RESIDUAL_RMS_NORM,allreduce,99,eager" % (world, 2048))
        with open("%s/benchmark.tp%d.sm90.csv" % (folder, world), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def normalised(name):
    name = name.lower()
    for parts, normal in ((("allgather", "all_gather"), "all_gather"), (("reduce_scatter",), "reduce_scatter"),
                          (("allreduce", "all_reduce"), "all_reduce"), (("all_to_allv", "alltoallv"), "all_to_allv"),
                          (("all_to_all", "alltoall"), "all_to_all")):
        if any(part in name for part in parts):
            return normal
    return name


def stride_of(ranks):
    steps = {b - a for a, b in zip(ranks, ranks[1:])}
    return steps.pop() if len(steps) == 1 else None


class Profile:
    """The index of one trace: by ranks and, if only one group has it, by the stride and number of its ranks."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        groups = {str(of["pg_name"]): tuple(sorted(of["ranks"])) for of in document["distributedInfo"]["pg_config"]}
        assert document["distributedInfo"]["world_size"] == max(map(len, groups.values()))
        assert all(of["pg_desc"] == "undefined" for of in document["distributedInfo"]["pg_config"])
        samples, self.by_stride = defaultdict(lambda: defaultdict(list)), defaultdict(set)
        for event in document["traceEvents"]:
            args = event["args"]
            if event.get("cat") != "kernel" or "Collective name" not in args or event["dur"] <= 0:
                continue
            text = args["Process Group Ranks"]
            ranks = tuple(sorted(json.loads(text))) if text.startswith("[") else groups[args["Process Group Name"]]
            assert groups[args["Process Group Name"]] == ranks and args["Group size"] == len(ranks)
            key = (normalised(args["Collective name"]), ranks, args["dtype"])
            samples[key][args["Out msg nelems"]].append(event["dur"])
            self.by_stride[stride_of(ranks), len(ranks)].add(ranks)
        self.index = {key: sorted((size, statistics.median(of)) for size, of in by_size.items())
                      for key, by_size in samples.items()}

    def look_up(self, name, ranks, elements, dtype):
        """us, or None: the analytical estimate."""
        entries = self.index.get((normalised(name), ranks, dtype))
        groups = self.by_stride.get((stride_of(ranks), len(ranks)), set())
        if not entries and stride_of(ranks) is not None and len(groups) == 1:
            entries = self.index.get((normalised(name), next(iter(groups)), dtype))
        if not entries:
            return None
        if elements > 2 * entries[-1][0]:
            return elements / max(size / time for size, time in entries[-5:])
        lower = [of for of in entries if of[0] <= elements]
        upper = [of for of in entries if of[0] >= elements]
        if not lower:
            return max(upper[0][1] * elements / upper[0][0], min(time for _, time in entries))
        if not upper:
            return lower[-1][1] * elements / lower[-1][0]
        (size, time), (size_above, time_above) = lower[-1], upper[0]
        if size == size_above:
            return time
        share = math.log(elements / size) / math.log(size_above / size)
        return math.exp(math.log(time) + share * math.log(time_above / time))


FX_NAMES = {"allreduce": "all_reduce", "allgather": "all_gather_into_tensor", "reducescatter": "reduce_scatter_tensor",
            "alltoall": "all_to_all_single"}


def ask(path):
    profile, asked = Profile(path), 0
    assert sum(len(of) for of in profile.index.values()) == sum(len(sizes_of(case[1])) for case in CASES)
    for world, dtype, op in CASES:
        name, sizes = DTYPES[dtype][0], sizes_of(dtype)
        for tokens in sizes:
            elements = tokens * HIDDEN_SIZE // (world if op == "reducescatter" else 1)
            time = time_of(world, dtype, op, tokens)
            for first, step in ((0, 1), (world, 1)):  # also of ranks that the file does not name
                ranks = tuple(range(first, first + world * step, step))
                answered = profile.look_up(FX_NAMES[op], ranks, elements, name)
                assert answered is not None and abs(answered - time) < 1e-6, (world, dtype, op, tokens, answered, time)
                asked += 1
            # One element less and more: the time of a neighbour, or between two.
            for near in (elements - 1, elements + 1):
                answered = profile.look_up(FX_NAMES[op], tuple(range(world)), near, name)
                assert abs(answered / time - 1) < 0.1, (near, answered, time)
                asked += 1
        ranks, smallest = tuple(range(world)), time_of(world, dtype, op, 1)
        assert abs(profile.look_up(FX_NAMES[op], ranks, 1, name) - smallest) < 1e-6
        assert profile.look_up(FX_NAMES[op], ranks, 1 << 40, name) > 1000 * smallest
        assert profile.look_up(FX_NAMES[op], tuple(range(0, 2 * world, 2)), 1024, name) is None  # another stride
    assert profile.look_up("broadcast", (0, 1), 1024, "BFloat16") is None
    assert profile.look_up("all_reduce", (0, 1, 2, 3), 1024, "BFloat16") is None  # unmeasured
    print_counts(asked, 0, "pytorch", "rules of Inductor", "0196bc40 (2026-08)")


def ask_installed(path):
    import torch
    from torch._inductor.fx_passes.profile_guided_estimation import ProfileData

    profile, asked = ProfileData(), 0
    profile.load(path)
    for world, dtype, op in CASES:
        for tokens in sizes_of(dtype):
            elements = tokens * HIDDEN_SIZE // (world if op == "reducescatter" else 1)
            for first in (0, world):  # also of ranks that the file does not name
                for near, within in ((elements - 1, 0.1), (elements, 1e-9), (elements + 1, 0.1)):
                    ranks = tuple(range(first, first + world))
                    answered, source = profile.lookup_collective(FX_NAMES[op], ranks, near, DTYPES[dtype][0])
                    time = time_of(world, dtype, op, tokens)
                    assert source == "profile" and abs(answered * 1000 / time - 1) < within, (near, answered, time)
                    asked += 1
    assert profile.lookup_collective("all_reduce", (0, 1, 2, 3), 1024, "BFloat16") is None  # unmeasured
    print_counts(asked, 0, "pytorch", "Inductor, run", torch.__version__)


if __name__ == "__main__":
    {"rows": rows, "ask": ask, "ask_installed": ask_installed}[sys.argv[1]](*sys.argv[2:])
