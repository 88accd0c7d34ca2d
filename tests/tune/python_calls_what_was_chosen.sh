#!/bin/sh
# The generated Python module: its ranges answer as tuned.json, split points are inclusive and cover all
# rows, and two
# real processes with gloo call what was chosen, by torch.ops too. Without torch the parts that need none are
# tested,
# and the test is skipped after that.
. "$(dirname "$0")/lib.sh"

tune --op allreduce,allgather,reducescatter,alltoall,broadcast --sizes 1K:64K:8 --dtype float32 \
    --out "$WORK/tuned"
[ "$status" = 0 ] || fail "ended with $status: $(cat "$WORK/err")"
for python in python3 /usr/bin/python3; do
    if "$python" -c "import torch" 2>/dev/null; then break; fi
done

cat >"$WORK/ranges.py" <<'END'
import json
import gentables_tuned as tuned

for cell in json.load(open("tuned.json"))["cells"]:
    chosen = tuned.choose(cell["op"], cell["size"], cell["world_size"], cell["dtype"])
    assert chosen == cell["strategy"], (cell["op"], cell["size"], chosen)
    splits = tuned.split_points(cell["op"], 2, 16, "float32")
    assert splits[0][0] == 1 and splits[-1][1] is None
    for before, after in zip(splits, splits[1:]):
        assert after[0] == before[1] + 1 and before[1] >= before[0]
    for first, last, candidate in splits:
        assert tuned.choose(cell["op"], first * 64, 2, "float32") == candidate
        assert last is None or tuned.choose(cell["op"], last * 64, 2, "float32") == candidate
assert tuned.choose("allreduce", 1024, 7) == "MPI"
END
(cd "$WORK/tuned" && PYTHONPATH=. "$python" ../ranges.py) || fail "the ranges are others than the choices"

if ! "$python" -c "import torch" 2>/dev/null; then
    echo "skipped: no torch (Debian: python3-torch)"
    exit 77
fi
cat >"$WORK/two.py" <<'END'
import os
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
sys.path.insert(0, sys.argv[1])
import gentables_tuned as tuned


def work(rank, folder):
    dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=rank, world_size=2)
    mine = torch.arange(256, dtype=torch.float32) + 1000 * rank
    both = [torch.arange(256, dtype=torch.float32) + 1000 * r for r in range(2)]
    assert torch.equal(tuned.all_reduce(mine), both[0] + both[1])
    assert torch.equal(tuned.all_gather(mine), torch.cat(both))
    assert torch.equal(tuned.reduce_scatter(mine), (both[0] + both[1]).chunk(2)[rank])
    assert torch.equal(tuned.all_to_all(mine), torch.cat([part.chunk(2)[rank] for part in both]))
    assert torch.equal(tuned.broadcast(mine), both[0])
    assert torch.equal(torch.ops.gentables.all_reduce(mine), both[0] + both[1])
    assert torch.equal(mine, both[rank])
    called = []

    def own(tensor, group=None):
        called.append(tensor.numel())
        return tensor

    tuned.register(tuned.choose("allreduce", 1024, 2, "float32"), "allreduce", own)
    tuned.all_reduce(mine)
    assert called == [256]
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(work, args=(sys.argv[1],), nprocs=2)
END
(cd "$WORK" && timeout 400 "$python" two.py "$WORK/tuned") || fail "two processes do not get what they should"
