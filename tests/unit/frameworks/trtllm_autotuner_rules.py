"""TensorRT-LLM's rules for the cache file of its AutoTuner, as of pull requests 10336 to 16902 (2026-01 to 2026-08).

    trtllm_autotuner_rules.py rows FOLDER  writes rows with planned winners
    trtllm_autotuner_rules.py ask FILE     asks at every cell of them, between and outside; FILE of 4 ranks
"""

import ast
import json
import os
import sys

from reader_sizes import BYTES, HEADER, print_counts

TACTICS = {"NCCL": 0, "ONESHOT": 4, "TWOSHOT": 5, "NCCL_SYMMETRIC": 8}
NUMBERS = {"NONE": 0, "RESIDUAL_RMS_NORM": 1}
WORLD = 4
TOKENS = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 1024, 16384]
WORKSPACE = 64 << 20


def winner(fusion, hidden, tokens):
    """The planned winner: not monotone, and of another kind for each fusion and hidden size."""
    if hidden == 4096:
        return "TWOSHOT" if tokens >= 1024 else "NCCL_SYMMETRIC"
    if tokens == 96:
        return "NCCL_SYMMETRIC"
    if fusion == "NONE":
        return "ONESHOT" if tokens < 32 else "TWOSHOT" if tokens < 64 else "NCCL"
    return "NCCL" if tokens < 8 else "ONESHOT"


def rows(folder):
    os.makedirs(folder, exist_ok=True)
    lines = [HEADER]
    for fusion in NUMBERS:
        for hidden in (1024, 2880, 4096):
            for tokens in TOKENS:
                best = winner(fusion, hidden, tokens)
                for place, name in enumerate(TACTICS):
                    time = 10 if name == best else 20 + place
                    lines.append("%d,bfloat16,%d,%d,%d,%s,%s,allreduce,%d,eager" % (
                        WORLD, tokens * hidden * BYTES, tokens, hidden, name, fusion, time))
    with open("%s/benchmark.tp%d.sm90.csv" % (folder, WORLD), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def load(path, rank):
    """The cache of one rank: a whole document, all four metadata, the part of the rank; keys and tactics are texts of
    Python's literals."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    metadata = document["metadata"]
    assert [type(metadata[name]) for name in ("lib_version", "creation_timestamp", "device_name", "device_capability")] \
        == [str, float, str, list]
    assert metadata["device_name"] == "NVIDIA H200" and metadata["device_capability"] == [9, 0]
    assert "rank_%d" % rank in document, "no part of this rank"
    part = document["rank_%d" % rank]
    return {ast.literal_eval(key): (value["runner_id"], ast.literal_eval(value["tactic"]), value["min_time"])
            for key, value in part.items()}, document["gentables"]["gaps"]


def find(cache, fusion, hidden, tokens):
    """The tactic of a call, or None: the largest power of two up to the tokens; the size that follows from it is -1;
    absent tensors have the shape (0,); the workspace has three numbers for each rank, and one."""
    is_fused = fusion != "NONE"
    absent, bucket = (0,), 1 << (tokens.bit_length() - 1)
    shapes = ((bucket, hidden), (-1, hidden) if is_fused else absent, (hidden,) if is_fused else absent, absent, absent,
              (3 * WORLD + 1,))
    key = ("trtllm::tunable_allreduce::allreduce", "AllReduceRunner", str((WORLD, NUMBERS[fusion])), shapes)
    return cache[key][1] if key in cache else None


def ask(path):
    names = {number: name for name, number in TACTICS.items()}
    caches = [load(path, rank) for rank in range(WORLD)]
    assert all(cache == caches[0] for cache in caches), "ranks would disagree"
    cache, gaps = caches[0]
    asked = listed = 0
    for fusion in NUMBERS:
        for hidden in (1024, 2880, 4096):
            for tokens in TOKENS:
                wanted, answered = winner(fusion, hidden, tokens), names.get(find(cache, fusion, hidden, tokens), "measures")
                asked += 1
                if wanted != answered:
                    assert [fusion, hidden, tokens, wanted, answered] in gaps, (fusion, hidden, tokens, wanted, answered)
                    listed += 1
                if tokens > 1 and tokens & tokens - 1 == 0 and answered != "measures":  # one token below, and above
                    assert find(cache, fusion, hidden, tokens + 1 if tokens > 2 else 2) == TACTICS[answered]
            assert find(cache, fusion, hidden, 100000) is None  # it measures beyond the table
        assert find(cache, fusion, 2048, 16) is None  # hidden sizes are exact
    assert listed == len(gaps) == 7, gaps
    assert {gap[4] for gap in gaps if gap[1] == 4096} == {"measures"}
    assert all(gap[2] * gap[1] * BYTES > WORKSPACE for gap in gaps if gap[4] == "measures")
    assert 0.0099 < min(value[2] for value in cache.values()) < 0.0101  # milliseconds
    print_counts(asked, listed, "trtllm-autotuner", "rules of TensorRT-LLM's AutoTuner",
                 "pull requests 10336 to 16902 (2026-01 to 2026-08)")


if __name__ == "__main__":
    {"rows": rows, "ask": ask}[sys.argv[1]](*sys.argv[2:])
