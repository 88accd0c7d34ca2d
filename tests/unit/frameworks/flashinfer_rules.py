"""FlashInfer's rules for its fused allreduce, as of 0.6.18, with a stand-in for flashinfer.comm.

    flashinfer_rules.py rows FOLDER                 writes rows with planned winners, and those of fusions as plain ones
    flashinfer_rules.py ask MODULE THRESHOLDS FUSED asks at every size; THRESHOLDS and FUSED: thresholds.json of both
"""

import importlib.util
import json
import os
import sys
import types

from reader_sizes import print_counts, sizes_of, strategy_of, write_rows

PLANS = {
    "NONE": {2: [(32, "ONESHOT"), (4096, "TWOSHOT")], 8: [(8, "ONESHOT"), (64, "TWOSHOT"), (4096, "NCCL")],
             16: [(64, "TWOSHOT"), (512, "ONESHOT"), (4096, "TWOSHOT")]},
    "RESIDUAL_RMS_NORM": {2: [(4, "TWOSHOT"), (64, "ONESHOT"), (256, "TWOSHOT"), (4096, "NCCL")],
                          4: [(16, "NCCL"), (512, "ONESHOT"), (4096, "TWOSHOT")]},
}
MOST = (2 ** 31 - 1) // 2 ** 21 * 2 ** 21


def rows(folder):
    os.makedirs(folder + "/fused", exist_ok=True)
    for world in {world for plans in PLANS.values() for world in plans}:
        path, more = "%s/benchmark.tp%d.sm90.csv" % (folder, world), []
        fused = PLANS["RESIDUAL_RMS_NORM"].get(world)
        if fused:
            write_rows("%s/fused/benchmark.tp%d.sm90.csv" % (folder, world), world, fused)
            more = write_rows(path, world, fused, "RESIDUAL_RMS_NORM")
        if world in PLANS["NONE"]:
            write_rows(path, world, PLANS["NONE"][world], more=more)


class Comm:
    """flashinfer.comm: a call uses the argument, or its own limits, which have no 16 ranks."""

    AllReduceFusionPattern = types.SimpleNamespace(
        kAllReduce=0, kARResidualRMSNorm=1, kARResidualRMSNormFP8Quant=2, kARResidualRMSNormFP4Quant=3,
        kARResidualRMSNormOutFP8Quant=4, kARResidualRMSNormOutFP4Quant=5)

    @staticmethod
    def allreduce_fusion(input, workspace, pattern, launch_with_pdl=False, use_oneshot=None):
        size, ranks = input.numel() * input.element_size(), workspace.world_size
        if use_oneshot is None:
            use_oneshot = size * 2 * ranks / (1 << 20) <= {2: 512, 4: 64, 8: 42}[ranks]
        return "ONESHOT" if use_oneshot and ranks * size <= MOST else "TWOSHOT"


class Tensor:
    def __init__(self, size):
        self.size = size

    def numel(self):
        return self.size

    def element_size(self):
        return 1


def load(path):
    spec = importlib.util.spec_from_file_location("flashinfer_oneshot", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask(path, plain, fused):
    module, asked, listed = load(path), 0, 0
    allreduce_fusion = module.over(Comm)
    tables = {"NONE": json.load(open(plain)), "RESIDUAL_RMS_NORM": json.load(open(fused))}
    numbers = {"NONE": 0, "RESIDUAL_RMS_NORM": 1}
    for fusion, plans in PLANS.items():
        for world in plans:
            workspace = types.SimpleNamespace(world_size=world, backend="trtllm")
            for size in sizes_of(tables[fusion], world):
                wanted = strategy_of(tables[fusion], world, size)
                answered = allreduce_fusion(input=Tensor(size), workspace=workspace, pattern=numbers[fusion])
                assert module.is_best(world, size, fusion) == (wanted != "NCCL"), (fusion, world, size)
                if wanted == "NCCL":  # FlashInfer has no answer for it
                    continue
                asked += 1
                if wanted == "ONESHOT" and world * size > MOST:  # a listed gap
                    listed += 1
                else:
                    assert answered == wanted, (fusion, world, size, answered, wanted)
    # A caller's own choice, other fusions, numbers of ranks and backends stay.
    two = types.SimpleNamespace(world_size=2, backend="trtllm")
    assert allreduce_fusion(Tensor(2048), two, 0, use_oneshot=False) == "TWOSHOT"
    assert allreduce_fusion(Tensor(2048), two, 0, True) == "ONESHOT" == Comm.allreduce_fusion(Tensor(2048), two, 0)
    assert allreduce_fusion(Tensor(2048), two, 3) == "ONESHOT" and module.use_oneshot(2, 2048, "OTHER") is None
    assert module.use_oneshot(4, 2048, "NONE") is None and module.is_best(4, 2048, "NONE") is None
    assert module.use_oneshot(2, 2048, "NONE", "mnnvl") is None and module.use_oneshot(2, 2048, "NONE") is True
    assert module.LARGEST == MOST
    try:
        module.over(types.SimpleNamespace(AllReduceFusionPattern=object(), allreduce_fusion=None))
    except RuntimeError as error:
        assert "kAllReduce" in str(error) and "FlashInfer 0.6" in str(error)
    else:
        raise AssertionError("a version with other names")
    print_counts(asked, listed, "flashinfer", "rules of FlashInfer", "0.6.18")


if __name__ == "__main__":
    {"rows": rows, "ask": ask}[sys.argv[1]](*sys.argv[2:])
