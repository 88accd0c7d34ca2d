"""vLLM's rules for all-reduces, as of 2026-08 (all_reduce_utils.py of 00d618aa and the communicators beside it), with
stand-ins for its modules.

    vllm_rules.py rows FOLDER                 writes rows with planned winners, and those of fusions as plain ones
    vllm_rules.py ask MODULE THRESHOLDS FUSED asks at every size; THRESHOLDS and FUSED: thresholds.json of both
"""

import importlib.util
import json
import os
import sys
import types

from reader_sizes import check_gaps, is_listed, print_counts, sizes_of, strategy_of, write_rows

MiB = 1 << 20
PLAIN = {
    2: [(128, "TWOSHOT"), (1024, "SYMM_MEM"), (4096, "NCCL")],
    4: [(8, "NCCL_SYMMETRIC"), (128, "ONESHOT"), (4096, "NCCL_SYMMETRIC")],
    6: [(4, "ONESHOT"), (32, "TWOSHOT"), (512, "NVLS_TWOSHOT"), (4096, "NCCL")],
    8: [(4, "ONESHOT"), (16, "NCCL"), (64, "ONESHOT"), (4096, "NCCL")],
}
FUSED = {
    2: [(32, "ONESHOT"), (512, "TWOSHOT"), (4096, "NCCL")],
    4: [(64, "TWOSHOT"), (4096, "NCCL")],
    8: [(4096, "NCCL_UNFUSED")],
}


def rows(folder):
    os.makedirs(folder + "/fused", exist_ok=True)
    for world, plan in PLAIN.items():
        more = []
        if world in FUSED:
            # Rows of a fused strategy that never wins, so that no strategy is alone.
            fused = FUSED[world] if world != 8 else FUSED[world] + [(0, "ONESHOT")]
            write_rows("%s/fused/benchmark.tp%d.sm90.csv" % (folder, world), world, fused)
            more = write_rows("%s/benchmark.tp%d.sm90.csv" % (folder, world), world, fused, "RESIDUAL_RMS_NORM")
        write_rows("%s/benchmark.tp%d.sm90.csv" % (folder, world), world, plan, more=more)


def stand_ins():
    """Modules like vLLM's with its dictionaries, of which other entries must stay as they are."""
    utils = types.ModuleType("vllm.distributed.device_communicators.all_reduce_utils")
    utils.CUSTOM_ALL_REDUCE_MAX_SIZES = {"9.0": {2: 5, 4: 5, 6: 5, 8: 5}, "10.0": {2: 7}}
    utils.SYMM_MEM_ALL_REDUCE_MAX_SIZES = {"9.0": {2: 5, 4: 5, 6: 5, 8: 5}, "10.0": {2: 7}}
    utils.NCCL_SYMM_MEM_ALL_REDUCE_CONFIG = {
        "min_world_size": 4, "custom_ar_preferred_ranges": {4: (1, 2), 8: (16384, 131072)},
        "always_use_above_world_size": 8}
    fusion = types.ModuleType("vllm.compilation.passes.fusion.allreduce_rms_fusion")
    fusion.FI_ALLREDUCE_FUSION_MAX_SIZE_MB = {90: {2: 3, 4: 3, 8: 3}, 100: {2: 7}}
    fusion._FI_ALLREDUCE_ONE_SHOT_MAX_SIZES_MB = {90: {2: 3, 4: 3, 8: 3}, 100: {2: 7}}
    for module in (utils, fusion):
        name = ""
        for part in module.__name__.split(".")[:-1]:
            name = (name + "." + part).strip(".")
            sys.modules.setdefault(name, types.ModuleType(name)).__path__ = []
        sys.modules[module.__name__] = module
    return utils, fusion


def load(path):
    spec = importlib.util.spec_from_file_location("vllm_allreduce", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain_answer(utils, world, size, nccl_symmetric, is_older):
    """The way of a plain sum of bfloat16: NCCL's symmetric memory, custom, torch's symmetric memory, NCCL."""
    config = utils.NCCL_SYMM_MEM_ALL_REDUCE_CONFIG
    if nccl_symmetric and world >= config["min_world_size"]:
        window = config["custom_ar_preferred_ranges"].get(world)
        if window and (size <= window[0] or size >= window[1]) or not window and world > 8:
            return "NCCL_SYMMETRIC"
    symmetric = utils.SYMM_MEM_ALL_REDUCE_MAX_SIZES["9.0"].get(world)
    most = 8 * MiB
    if symmetric is not None:
        most = min(most, utils.CUSTOM_ALL_REDUCE_MAX_SIZES["9.0"][world])
    assert most > 0, "vLLM allocates this many bytes"
    if world in (2, 4, 6, 8) and size % 16 == 0 and size < most:
        return "custom"
    if symmetric is not None and size % 4 == 0 and (size < symmetric if is_older else size <= symmetric):
        return "symmetric memory"
    return "NCCL"


def fused_answer(fusion, world, size):
    """The way of a fused sum: within the budget one-shot or two-shot, else a sum and a norm."""
    most = fusion.FI_ALLREDUCE_FUSION_MAX_SIZE_MB[90].get(world)
    if most is None or size > int(most * MiB):
        return "no fusion"
    assert most > 0, "a workspace of no tokens"
    limit = fusion._FI_ALLREDUCE_ONE_SHOT_MAX_SIZES_MB[90].get(world)
    return "fused, one-shot" if limit is None or size <= limit * MiB else "fused, two-shot"


WAYS = {"ONESHOT": "custom", "TWOSHOT": "custom", "SYMM_MEM": "symmetric memory", "NVLS_TWOSHOT": "symmetric memory",
        "NCCL": "NCCL", "NCCL_SYMMETRIC": "NCCL_SYMMETRIC"}
FUSED_WAYS = {"ONESHOT": "fused, one-shot", "TWOSHOT": "fused, two-shot", "NCCL": "no fusion",
              "NCCL_UNFUSED": "no fusion"}


def ask(path, plain, fused):
    utils, fusion = stand_ins()
    module = load(path)
    module.apply()
    plain, fused = json.load(open(plain)), json.load(open(fused))
    asked = listed = 0
    for world in PLAIN:
        for size in sizes_of(plain, world):
            if size % 16:  # a listed gap: such messages go to NCCL, or to symmetric memory
                continue
            wanted = WAYS[strategy_of(plain, world, size)]
            for is_older in (False, True):
                answered = plain_answer(utils, world, size, world == 4, is_older)
                asked += 1
                if answered != wanted:
                    assert is_listed(module.GAPS, (world, "NONE"), size, wanted, answered), (world, size, wanted, answered)
                    listed += 1
    for world in FUSED:
        for size in sizes_of(fused, world):
            wanted, answered = FUSED_WAYS[strategy_of(fused, world, size)], fused_answer(fusion, world, size)
            asked += 1
            if answered != wanted:
                assert is_listed(module.GAPS, (world, "RESIDUAL_RMS_NORM"), size, wanted, answered), (world, size)
                listed += 1
    check_gaps([gap for gap in module.GAPS if gap[1] == "NONE"],
               lambda gap, size: WAYS[strategy_of(plain, gap[0], size)],
               lambda gap, size: plain_answer(utils, gap[0], size, gap[0] == 4, False), 16)
    check_gaps([gap for gap in module.GAPS if gap[1] != "NONE"],
               lambda gap, size: FUSED_WAYS[strategy_of(fused, gap[0], size)],
               lambda gap, size: fused_answer(fusion, gap[0], size), 1)
    assert {gap[0] for gap in module.GAPS if gap[1] == "NONE" and gap[2] < 4 * MiB} == {8}, module.GAPS
    assert all(gap[0] in (2, 8) or gap[2] >= 4 * MiB for gap in module.GAPS), module.GAPS
    # Other entries stay, and those without a measurement too.
    assert utils.CUSTOM_ALL_REDUCE_MAX_SIZES["10.0"] == {2: 7}
    assert fusion.FI_ALLREDUCE_FUSION_MAX_SIZE_MB[100] == {2: 7}
    assert utils.NCCL_SYMM_MEM_ALL_REDUCE_CONFIG["custom_ar_preferred_ranges"][8] == (16384, 131072)
    # The one limit without a plug-in is that of the dictionary.
    for world in (2, 4):
        name, value = module.pass_config(world).split("=", 1)
        limit = json.loads(value)["pass_config"]["fi_allreduce_fusion_max_size_mb"]
        assert name == "--compilation-config" and limit == fusion.FI_ALLREDUCE_FUSION_MAX_SIZE_MB[90][world]
    assert json.loads(module.pass_config(8).split("=", 1)[1])["pass_config"] == {"fuse_allreduce_rms": False}
    # A vLLM without the dictionaries is refused, and nothing is entered.
    before = json.dumps(utils.CUSTOM_ALL_REDUCE_MAX_SIZES["9.0"])
    utils.CUSTOM_ALL_REDUCE_MAX_SIZES["9.0"].clear()
    del fusion._FI_ALLREDUCE_ONE_SHOT_MAX_SIZES_MB
    try:
        module.apply()
    except RuntimeError as error:
        assert "_FI_ALLREDUCE_ONE_SHOT_MAX_SIZES_MB" in str(error) and "vLLM" in str(error)
    else:
        raise AssertionError("a vLLM without a dictionary")
    assert before != "{}" and utils.CUSTOM_ALL_REDUCE_MAX_SIZES["9.0"] == {}
    print_counts(asked, listed, "vllm", "rules of vLLM", "00d618aa (2026-08)")


if __name__ == "__main__":
    rows(sys.argv[2]) if sys.argv[1] == "rows" else ask(*sys.argv[2:])
