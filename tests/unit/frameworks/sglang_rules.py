"""SGLang's rules for its custom all-reduce, version 2, as of 0fbab45d and 09e7d8ed (2026-07, 2026-08), with stand-ins
for its modules and torch.

    sglang_rules.py rows FOLDER             writes rows with planned winners of graphs and eager calls
    sglang_rules.py ask MODULE GRAPH EAGER  asks at every size; GRAPH and EAGER: thresholds.json of either mode
"""

import importlib.util
import json
import os
import sys
import types
from typing import NamedTuple

from reader_sizes import check_gaps, is_listed, print_counts, sizes_of, strategy_of, write_rows

PLANS = {
    2: {"graph": [(32, "ONESHOT"), (512, "TWOSHOT"), (4096, "NCCL")], "eager": [(128, "ONESHOT"), (4096, "NCCL")]},
    3: {"graph": [(64, "ONESHOT"), (4096, "TWOSHOT")]},
    5: {"graph": [(4, "ONESHOT"), (32, "NCCL"), (512, "TWOSHOT"), (4096, "NCCL")],
        "eager": [(4, "NCCL_SYMMETRIC"), (64, "ONESHOT"), (4096, "NCCL")]},
    8: {"graph": [(64, "ONESHOT"), (256, "TWOSHOT"), (2048, "NVLS_TWOSHOT"), (16384, "NCCL")],
        "eager": [(64, "ONESHOT"), (16384, "NVLS_TWOSHOT")]},
}
MiB = 1 << 20


def rows(folder):
    os.makedirs(folder + "/graph", exist_ok=True)
    for world, plans in PLANS.items():
        for path in (folder, folder + "/graph"):
            more, name = [], "%s/benchmark.tp%d.sm90.csv" % (path, world)
            for mode, plan in plans.items():
                more = write_rows(name, world, plan, mode=mode, more=more)
    with open(folder + "/graph/spec.lua", "w", encoding="utf-8") as file:
        file.write('return { table = { dtype = "bfloat16", op = "allreduce", mode = "graph" } }\n')


def classes(has_lamport):
    """SGLang's tuples of limits; the newer version has one more way."""
    Range = NamedTuple("Range", [("min_bytes", int), ("max_bytes", int)])
    none = Range(0, 0)
    fields = [("one_shot_push_threshold", int), ("one_shot_pull_threshold", int), ("two_shot_pull_threshold", int),
              ("mc", Range)] + [("lamport", Range)] * has_lamport
    Heuristic = NamedTuple("Heuristic", fields)
    Heuristic.__new__.__defaults__ = (none,) * (1 + has_lamport)
    fields = [("graph", Heuristic), ("eager", Heuristic), ("num_push_blocks", int), ("num_pull_blocks", int),
              ("num_mc_blocks", object)]

    class AllReduceConfig(NamedTuple("AllReduceConfig", fields)):
        max_push_bytes = property(lambda self: max(of.one_shot_push_threshold for of in self[:2]))
        max_pull_bytes = property(lambda self: max(max(of[1], of[2], of.mc.max_bytes) for of in self[:2]))

    return Range, Heuristic, AllReduceConfig


OWN_LIMIT = 1 << 30  # of the stand-in, above all of ours


def stand_in(has_lamport, capability):
    """A module like SGLang's, with other limits; another one that has imported its function."""
    name = "sglang.srt.distributed.device_communicators.configs.custom_all_reduce_v2"
    module, user = types.ModuleType(name), types.ModuleType("sglang.srt.user")
    module.Range, module.Heuristic, config = classes(has_lamport)
    module.torch = types.SimpleNamespace(cuda=types.SimpleNamespace(get_device_capability=lambda: capability))

    def get_all_reduce_config(world_size):
        {2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0, 8: 0}[world_size]  # KeyError, as in SGLang
        default = module.Heuristic(OWN_LIMIT, OWN_LIMIT, OWN_LIMIT)
        return config(default, default, 132, 64, 128 // world_size if world_size >= 4 else None)

    module.get_all_reduce_config = user.get_all_reduce_config = get_all_reduce_config
    parts = name.split(".")
    for count in range(1, len(parts)):
        package = types.ModuleType(".".join(parts[:count]))
        package.__path__ = []
        sys.modules[package.__name__] = package
    sys.modules[name], sys.modules["sglang.srt.user"] = module, user
    return module, user


def load(path):
    spec = importlib.util.spec_from_file_location("sglang_allreduce", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(config, mode, size, most=16 * MiB):
    """The way of a message: all limits are inclusive, and clipped to the workspace."""
    limits = getattr(config, mode)
    lamport = getattr(limits, "lamport", (0, 0))
    if size % 16:
        return "NCCL"
    if lamport[1] > 0 and min(lamport[0], most) <= size <= min(lamport[1], most):
        return "two-shot Lamport"
    if size <= min(limits.one_shot_push_threshold, most):
        return "one-shot push"
    if size <= min(limits.one_shot_pull_threshold, most):
        return "one-shot pull"
    low, high = min(limits.mc.min_bytes, most), min(limits.mc.max_bytes, most)
    if config.num_mc_blocks is not None and high > 0 and low <= size <= high:
        return "multicast"
    return "two-shot pull" if size <= min(limits.two_shot_pull_threshold, most) else "NCCL"


WAYS = {"ONESHOT": "one-shot push", "TWOSHOT": "two-shot pull", "NVLS_TWOSHOT": "multicast", "NCCL": "NCCL",
        "NCCL_SYMMETRIC": "NCCL"}


def ask_all(module, config_of, thresholds):
    asked = listed = 0
    for world, plans in PLANS.items():
        for mode in ("graph", "eager"):
            table = thresholds[mode if mode in plans else "graph"]
            for size in sizes_of(table, world):
                if size % 16:  # a listed gap: such messages go to NCCL
                    continue
                wanted, answered = WAYS[strategy_of(table, world, size)], answer(config_of(world), mode, size)
                asked += 1
                if wanted != answered:
                    listed += 1
                    assert is_listed(module.GAPS, (world, mode), size, wanted, answered), (world, mode, size, answered)
    return asked, listed


def ask(path, graph, eager):
    thresholds, module = {"graph": json.load(open(graph)), "eager": json.load(open(eager))}, load(path)
    for has_lamport in (False, True):
        configs, user = stand_in(has_lamport, (9, 0))
        own = configs.get_all_reduce_config
        module.apply()
        assert configs.get_all_reduce_config is user.get_all_reduce_config is not own
        asked, listed = ask_all(module, user.get_all_reduce_config, thresholds)
        version = "09e7d8ed (2026-08)" if has_lamport else "0fbab45d (2026-07)"
        print_counts(asked, listed, "sglang", "rules of SGLang", version)
        appended = module.over({**vars(configs), "get_all_reduce_config": own})
        assert all(appended(world) == user.get_all_reduce_config(world) for world in PLANS)
        # Workspaces are not smaller than SGLang's own, also after its limits are clipped to them.
        for world in PLANS:
            config = user.get_all_reduce_config(world)
            for of in (config, config._replace(eager=config.graph)):
                assert of.max_push_bytes >= OWN_LIMIT and of.max_pull_bytes >= OWN_LIMIT, (world, of)
        # Numbers of blocks, and ranks without rows, are SGLang's; so is all on another GPU.
        assert user.get_all_reduce_config(8)[2:] == own(8)[2:] and user.get_all_reduce_config(6) == own(6)
        try:
            user.get_all_reduce_config(16)
        except KeyError:
            pass
        else:
            raise AssertionError("16 ranks on this GPU")
        configs, user = stand_in(has_lamport, (10, 0))
        module.apply()
        assert user.get_all_reduce_config(8).graph == (OWN_LIMIT,) * 3 + ((0, 0),) * (1 + has_lamport)
    def wanted(gap, size):
        table = thresholds[gap[1] if gap[1] in PLANS[gap[0]] else "graph"]
        return WAYS[strategy_of(table, gap[0], size)]

    configs, user = stand_in(True, (9, 0))
    module.apply()
    check_gaps(module.GAPS, wanted, lambda gap, size: answer(user.get_all_reduce_config(gap[0]), gap[1], size), 16)
    small = [gap for gap in module.GAPS if gap[2] < 4 * MiB]
    assert {gap[:2] for gap in small} == {(5, "graph"), (5, "eager")}, module.GAPS
    del configs.Heuristic
    try:
        module.apply()
    except RuntimeError as error:
        assert "Heuristic" in str(error) and "SGLang of" in str(error)
    else:
        raise AssertionError("a version with other names")


if __name__ == "__main__":
    {"rows": rows, "ask": ask}[sys.argv[1]](*sys.argv[2:])
