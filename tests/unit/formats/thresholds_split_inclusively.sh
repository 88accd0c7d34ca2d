#!/bin/sh
# thresholds.json and its Python module: every measured size gets the best strategy, split points are
# inclusive, and invalid files are rejected.
. "$SOURCE/tests/readers/lib.sh"
needs python3

# ONESHOT up to 64 KiB, TWOSHOT up to 1 MiB, NCCL above; TP 6 has one size only.
mkdir -p "$WORK/data"
for tp in 2 6; do
    echo "$header" >"$WORK/data/benchmark.tp$tp.sm103.csv"
    for tokens in 1 8 64 512; do
        [ $tp = 6 ] && [ $tokens != 8 ] && continue
        case $tokens in
        1 | 8) times="ONESHOT:5 TWOSHOT:9 NCCL:20" ;;
        64) times="ONESHOT:50 TWOSHOT:20 NCCL:40" ;;
        *) times="ONESHOT:500 TWOSHOT:200 NCCL:100" ;;
        esac
        for time in $times; do
            echo "$tp,bfloat16,$((tokens * 8192)),$tokens,4096,${time%:*},NONE,allreduce,${time#*:}"
        done
    done >>"$WORK/data/benchmark.tp$tp.sm103.csv"
done
succeeds generate --data-dir "$WORK/data" --arch sm103 --out "$WORK" --formats thresholds
has '"capability": "10.3"' "$WORK/thresholds.json"

cat >"$WORK/ask.py" <<'END'
import json
import sys

from gentables_thresholds import Thresholds, ThresholdsError

path = sys.argv[1]
known = Thresholds.load(path)
borders = [int((a * b) ** 0.5) for a, b in ((65536, 524288), (524288, 4194304))]
assert known.world_sizes() == [2, 6]
asked = [(2, 0, "ONESHOT"), (2, 8192, "ONESHOT"), (2, 65536, "ONESHOT"), (2, borders[0], "ONESHOT"),
         (2, borders[0] + 1, "TWOSHOT"), (2, 524288, "TWOSHOT"), (2, borders[1], "TWOSHOT"),
         (2, borders[1] + 1, "NCCL"), (2, 4194304, "NCCL"), (2, 1 << 62, "NCCL"), (6, 1, "ONESHOT"),
         (6, 65536, "ONESHOT"), (6, 1 << 40, "ONESHOT"), (4, 8192, "NCCL_SYMMETRIC")]
for world, size, best in asked:
    assert known.strategy(world, size) == best, (world, size, known.strategy(world, size), best)
print(len(asked))
assert known.fallback == "NCCL_SYMMETRIC"
assert known.custom_max_bytes(2) == borders[1] and known.custom_max_bytes(3) == 0


def vllm_uses_its_own(limits, world_size, size_bytes):
    """vLLM's rule: every world size has a limit, which is exclusive; sizes are multiples of 16 bytes."""
    return size_bytes % 16 == 0 and size_bytes < limits[world_size]


limits = known.vllm_max_sizes({2: 1, 4: 1024, 8: 2048})
assert sorted(limits) == [2, 4, 6, 8] and (limits[4], limits[8]) == (1024, 2048), limits
exact = json.load(open(path))
exact["world_sizes"]["2"]["custom_max_bytes"] = 65536
exact["world_sizes"]["6"]["custom_max_bytes"] = 0
assert Thresholds(exact).vllm_max_sizes({8: 0}) == {2: 65537, 4: 1, 6: 1, 8: 1}
exact["world_sizes"]["6"]["custom_max_bytes"] = 65536
limits = Thresholds(exact).vllm_max_sizes()
assert vllm_uses_its_own(limits, 2, 65536) and not vllm_uses_its_own(limits, 2, 65552)
assert vllm_uses_its_own(limits, 6, 65536) and limits[8] == 1 and not vllm_uses_its_own(limits, 8, 16), limits


class Tensor:  # the members of PyTorch's class that a dispatcher uses
    def __init__(self, count):
        self.count = count

    def numel(self):
        return self.count

    def element_size(self):
        return 2


dispatch = known.dispatcher(2, {"ONESHOT": lambda t: "one", "TWOSHOT": lambda t: "two"}, lambda t: "nccl")
assert [dispatch(Tensor(n)) for n in (1, borders[0] // 2, 262144, 1 << 24)] == ["one", "one", "two", "nccl"]

good = json.load(open(path))
for key, value in (("version", 2), ("format", "x"), ("world_sizes", []), ("fallback", None)):
    try:
        Thresholds({**good, key: value}, path)
    except ThresholdsError as error:
        assert path in str(error)
    else:
        raise AssertionError(key)
rules = [{"max_bytes": 5, "strategy": "A"}, {"max_bytes": 5, "strategy": "B"}, {"strategy": "C"}]
for wrong in (rules, rules[:1], [], None, [{"max_bytes": None}]):
    try:
        Thresholds({**good, "world_sizes": {"2": {"rules": wrong}}})
    except ThresholdsError:
        continue
    raise AssertionError(wrong)
END
export PYTHONPATH="$SOURCE/python" PYTHONDONTWRITEBYTECODE=1
ends_with 0 python3 "$WORK/ask.py" "$WORK/thresholds.json"
counts thresholds python/gentables_thresholds.py 'version 1 of the file' "$(cat "$stdout")" "$(cat "$stdout")"
sed '0,/"strategy": "TWOSHOT"/s//"strategy": "ONESHOT"/' "$WORK/thresholds.json" >"$WORK/wrong.json"
ends_with 1 python3 "$WORK/ask.py" "$WORK/wrong.json"
has AssertionError "$stderr"

# Choices that are not monotone: rules has all ranges, and what custom_max_bytes lacks is listed.
mkdir -p "$WORK/ranges"
rows "$WORK/ranges/benchmark.tp4.sm90.csv" 4,bfloat16,8192,1,4096,ONESHOT,NONE,allreduce,5 \
    4,bfloat16,8192,1,4096,NCCL,NONE,allreduce,9 4,bfloat16,65536,8,4096,ONESHOT,NONE,allreduce,9 \
    4,bfloat16,65536,8,4096,NCCL,NONE,allreduce,5 4,bfloat16,524288,64,4096,ONESHOT,NONE,allreduce,5 \
    4,bfloat16,524288,64,4096,NCCL,NONE,allreduce,9
succeeds formats --data-dir "$WORK/ranges"
has 'leaves out TP 4: from 181 KiB on ONESHOT is the best again, above custom_max_bytes; only rules' "$stdout"

# A single strategy: no thresholds.
grep -v SHOT "$WORK/data/benchmark.tp2.sm103.csv" >"$WORK/data/benchmark.tp2.sm90.csv"
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/data" --arch sm90 --out "$WORK" --formats thresholds
one_line 'thresholds.json: no row of ONESHOT or TWOSHOT.* measure them'
