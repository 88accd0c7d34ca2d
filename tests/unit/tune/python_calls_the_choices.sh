#!/bin/sh
# The generated Python module: its ranges have the choices of tuned.json, split points are inclusive and cover
# all rows, and two real processes with gloo call the chosen candidates, also by torch.ops: the dispatcher's
# choice for real tensors is that of the split points for their rows. python_calls_the_choices.py has the
# hooks for PyTorch. Without torch the other parts are tested, and then the test is skipped.
. "$(dirname "$0")/lib.sh"

tuned --op allreduce,allgather,reducescatter,alltoall,alltoallv,broadcast --sizes 1K:64K:8 --dtype float32 \
    --out "$WORK/tuned"
for python in python3 /usr/bin/python3; do
    if "$python" -c "import torch" 2>/dev/null; then break; fi
done

cat >"$WORK/ranges.py" <<'END'
import json
import gentables_tuned as tuned

cells = json.load(open("tuned.json"))["cells"]
assert len(cells) == 6 * 3, len(cells)
for cell in cells:
    chosen = tuned.choose(cell["op"], cell["size"], cell["world_size"], cell["dtype"])
    assert chosen == cell["strategy"], (cell["op"], cell["size"], chosen)
    splits = tuned.split_points(cell["op"], 2, 16, "float32")
    assert splits[0][0] == 1 and splits[-1][1] is None
    for before, after in zip(splits, splits[1:]):
        assert after[0] == before[1] + 1 and before[1] >= before[0]
    grows = 2 if cell["op"] == "allgather" else 1  # the larger buffer is the output
    for first, last, candidate in splits:
        assert tuned.choose(cell["op"], first * 64 * grows, 2, "float32") == candidate
        assert last is None or tuned.choose(cell["op"], last * 64 * grows, 2, "float32") == candidate
assert tuned.choose("allreduce", 1024, 7) == "MPI"
END
(cd "$WORK/tuned" && PYTHONPATH=. "$python" ../ranges.py) || fail "the ranges are others than the choices"

# A pair has choices of its own: the sum alone keeps its best candidate without the epilogue.
tuned --op allreduce --sizes 16K,64K --dtype float32 --fusion RESIDUAL_RMS_NORM --hidden-size 1024 \
    --strategies MPI,ONESHOT --out "$WORK/fused"
cat >"$WORK/pairs.py" <<'END'
import json
import gentables_tuned as tuned

cells = json.load(open("tuned.json"))["cells"]
assert len(cells) == 2, len(cells)
for cell in cells:
    arguments = (cell["size"], cell["world_size"], cell["dtype"])
    assert tuned.choose("allreduce", *arguments) == cell["plain_strategy"], cell
    pair = tuned.choose_pair("allreduce", "RESIDUAL_RMS_NORM", *arguments)
    assert pair == (cell["strategy"], cell["epilogue"]), (pair, cell)
    alone = [c for c in cell["candidates"] if c["epilogue"] == "alone"]
    assert cell["plain_strategy"] in [c["strategy"] for c in alone]
assert tuned.choose_pair("allreduce", "RESIDUAL_RMS_NORM", 1024, 7) == ("MPI", "separate")

pair = ("allreduce", "RESIDUAL_RMS_NORM", 2, "float32")
tuned.PAIRS[pair] = ((4096, "X", "separate"), (None, "X", "fused"))
tuned.RANGES[("allreduce", 2, "float32")] = ((None, "Y"),)
tuned._world_size = lambda group: 2
tuned._has_group = lambda: True
tuned._dtype = lambda tensor: "float32"
tuned._nbytes = lambda tensor: tensor
tuned.register("X", "allreduce", lambda tensor, group=None: "sum by X")
both = lambda tensor, weight, group=None: "both by X, " + weight
tuned.register("X", "allreduce", both, "RESIDUAL_RMS_NORM")
tuned.register("Y", "allreduce", lambda tensor, group=None: "sum by Y")
separate = lambda total, weight: total + ", then " + weight
assert tuned.all_reduce(4096) == "sum by Y"
assert tuned.all_reduce_with("RESIDUAL_RMS_NORM", separate, 4096, "w") == "sum by X, then w"
assert tuned.all_reduce_with("RESIDUAL_RMS_NORM", separate, 8192, "w") == "both by X, w"
END
(cd "$WORK/fused" && PYTHONPATH=. "$python" ../pairs.py) || fail "a pair's choice and the sum's are one"
! grep -q "def all_reduce_with" "$WORK/tuned/gentables_tuned.py" ||
    fail "a function for pairs, of which there is no row"

"$python" -c "import torch" 2>/dev/null || skip "no torch (Debian: python3-torch)"
cat >"$WORK/two.py" <<'END'
import os
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
sys.path.insert(0, sys.argv[1])
import gentables_tuned as tuned


def refused(function, *arguments):
    try:
        function(*arguments)
    except ValueError as error:
        return "required" in str(error)
    return False


def refuses_what_does_not_divide():
    five = torch.arange(5.0)
    assert refused(tuned.reduce_scatter, five) and refused(tuned.all_to_all, five)
    assert refused(tuned.all_to_all, torch.tensor(1.0)) and refused(tuned.all_gather, torch.tensor(1.0))
    assert refused(tuned.all_to_all_v, five, [1, 2], [3, 3])


# Rank 0 has 5 rows, of which it sends 3; rank 1 has 4, of which it sends 1.
def has_groups_and_splits(rank):
    send = [[2, 3], [1, 3]]
    rows = [torch.arange(10.0).reshape(5, 2), 100 + torch.arange(8.0).reshape(4, 2)]
    wanted = [torch.cat([rows[0][:2], rows[1][:1]]), torch.cat([rows[0][2:], rows[1][1:]])]
    receive = [of[rank] for of in send]
    assert torch.equal(tuned.all_to_all_v(rows[rank], receive, send[rank]), wanted[rank])
    assert torch.equal(torch.ops.gentables.all_to_all_v(rows[rank], receive, send[rank]), wanted[rank])
    pair = dist.new_group([1, 0])
    alone = [dist.new_group([0]), dist.new_group([1])][rank]
    tuned.name_group("pair", pair)
    tuned.name_group("alone", alone)
    mine = torch.full((4,), float(rank + 1))
    assert torch.equal(torch.ops.gentables.all_reduce(mine, "pair"), torch.full((4,), 3.0))
    assert torch.equal(torch.ops.gentables.all_reduce(mine, group="alone"), mine)
    assert torch.equal(tuned.broadcast(mine, alone), mine)
    try:
        torch.ops.gentables.all_reduce(mine, "nobody")
        assert False
    except (ValueError, RuntimeError) as error:
        assert "nobody" in str(error)


# Empty shares: rank 1 gets no rows at all, and then rank 0 has none to send.
def has_shares_of_nothing(rank):
    rows = [torch.arange(10.0).reshape(5, 2), 100 + torch.arange(8.0).reshape(4, 2)]
    for send in ([[5, 0], [4, 0]], [[0, 0], [1, 3]]):
        mine = rows[rank][: sum(send[rank])]
        wanted = torch.cat([of[sum(by[:rank]):][: by[rank]] for of, by in zip(rows, send)])
        receive = [of[rank] for of in send]
        assert torch.equal(tuned.all_to_all_v(mine, receive, send[rank]), wanted), (rank, send)
        assert torch.equal(torch.ops.gentables.all_to_all_v(mine, receive, send[rank]), wanted)


# A backend with a reduce-scatter and an all-to-all of its own, like NCCL, gets these calls.
def takes_what_the_backend_has(rank):
    asked = []

    def reduce_scatter_tensor(out, whole, group=None):
        asked.append("reduce_scatter_tensor")
        both = whole.clone()
        dist.all_reduce(both, group=group)
        out.copy_(both.chunk(2)[rank])

    def all_to_all_single(out, whole, receive=None, send=None, group=None):
        asked.append("all_to_all_single")
        out.copy_(whole)

    kept = {name: getattr(dist, name, None) for name in ("reduce_scatter_tensor", "all_to_all_single")}
    tuned._lacking.clear()
    dist.reduce_scatter_tensor, dist.all_to_all_single = reduce_scatter_tensor, all_to_all_single
    assert torch.equal(tuned.reduce_scatter(torch.ones(8)), torch.full((4,), 2.0))
    tuned.all_to_all(torch.ones(8))
    tuned.all_to_all_v(torch.ones(8), [4, 4], [4, 4])
    assert asked == ["reduce_scatter_tensor", "all_to_all_single", "all_to_all_single"], asked
    for name, function in kept.items():
        delattr(dist, name) if function is None else setattr(dist, name, function)


# Each op with real tensors, with the numbers of rows at the ends of each range; the ranges are many.
def dispatches_as_split_points_say():
    hidden, ops = 16, {
        "allreduce": tuned.all_reduce, "allgather": tuned.all_gather, "alltoall": tuned.all_to_all,
        "reducescatter": tuned.reduce_scatter, "broadcast": tuned.broadcast,
    }
    for op, function in ops.items():
        tuned.RANGES[(op, 2, "float32")] = ((300, "A"), (640, "B"), (10000, "C"), (None, "D"))
        used = []
        for name in "ABCD":
            tuned.register(name, op, lambda tensor, group=None, name=name: used.append(name))
        splits = tuned.split_points(op, 2, hidden, "float32")
        assert len(splits) == 4, splits
        wanted = []
        for first, last, candidate in splits:
            ends = [first, first + 1 if last is None else last]
            for rows in [r + r % 2 if op in ("alltoall", "reducescatter") else r for r in ends]:
                matching = [c for f, l, c in splits if f <= rows and (l is None or rows <= l)]
                wanted.append(matching[0])
                function(torch.zeros(rows, hidden))
        assert used == wanted, (op, used, wanted)


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

    before = dict(tuned._implementations)
    tuned.register(tuned.choose("allreduce", 1024, 2, "float32"), "allreduce", own)
    tuned.all_reduce(mine)
    assert called == [256]
    tuned._implementations.clear()
    tuned._implementations.update(before)
    refuses_what_does_not_divide()
    has_groups_and_splits(rank)
    has_shares_of_nothing(rank)
    takes_what_the_backend_has(rank)
    dispatches_as_split_points_say()
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(work, args=(sys.argv[1],), nprocs=2)
END
(cd "$WORK" && timeout 400 "$python" two.py "$WORK/tuned") || fail "two processes do not get what they should"
folder=$(cd "$(dirname "$0")" && pwd)
rm -f "$WORK/tuned/meet"
(cd "$WORK" && timeout 400 "$python" -B "$folder/python_calls_the_choices.py" "$WORK/tuned") ||
    fail "the hooks of PyTorch do not make the choices"
