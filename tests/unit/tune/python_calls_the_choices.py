# python_calls_the_choices.py FOLDER: --out of gentables tune. Without a process group the ops are their
# reference; a custom op calls, of its candidates, the table's choice, else the fastest measured one; the pass
# for torch.compile replaces those collectives for which a function is registered, in a graph of torch.fx that
# two processes with gloo run, and, with a torch that has it, in code that Inductor compiles; the estimate has
# the measured times.
import json
import os
import sys
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.path.insert(0, sys.argv[1])
import gentables_torch as hooks  # noqa: E402
import gentables_tuned as tuned  # noqa: E402
from gentables_torch import CustomOpConfig, register_custom_op_autotuning  # noqa: E402

KEY = ("allreduce", 2, "float32")


def refused(errors, words, function, *arguments):
    try:
        function(*arguments)
    except errors as error:
        assert words in str(error), error
        return
    raise AssertionError("accepted: " + repr(arguments))


# ---- one process, no group -----------------------------------------------------------------------


def times_are_those_of_the_document(folder):
    for cell in json.load(open(folder + "/tuned.json"))["cells"]:
        for candidate in cell["candidates"]:
            key = (cell["op"], cell["size"], cell["world_size"], cell["dtype"])
            time = tuned.time_us(*key, candidate=candidate["strategy"])
            assert abs(time - candidate["time_us"]) <= 0.0006, (cell, candidate, time)
    tuned.TIMES[KEY] = ((100, {"A": 1.0, "B": 9.0}), (10000, {"A": 100.0, "B": 2.0}))
    tuned.RANGES[KEY] = ((1000, "A"), (None, "B"))
    assert tuned.time_us("allreduce", 10, 2) == 1.0 and tuned.time_us("allreduce", 20000, 2) == 4.0
    assert abs(tuned.time_us("allreduce", 1000, 2, candidate="A") - 10.0) < 1e-9
    assert tuned.time_us("allreduce", 1000, 2, candidate="C") is None
    assert tuned.time_us("allreduce", 1000, 7) is None


def is_the_reference_without_a_group():
    rows = torch.arange(8.0).reshape(4, 2)
    tuned.register(tuned.choose("allreduce", 32, 1), "allreduce", lambda tensor, group=None: None)
    for function in (tuned.all_reduce, tuned.all_gather, tuned.reduce_scatter, tuned.all_to_all,
                     tuned.broadcast, torch.ops.gentables.all_reduce):
        out = function(rows)
        assert torch.equal(out, rows) and out.data_ptr() != rows.data_ptr(), function
    assert torch.equal(tuned.all_to_all_v(rows, [4], [4]), rows)
    refused(ValueError, "required", tuned.all_to_all_v, rows, [3], [4])
    os.environ["WORLD_SIZE"] = "2"
    refused(RuntimeError, "2 ranks and no process group", tuned.all_reduce, rows)
    del os.environ["WORLD_SIZE"]
    tuned._implementations.clear()


def ops_are_found_by_name():
    def first(tensor):
        return tensor + 1

    def b(tensor, by=0):
        return tensor + by

    register = register_custom_op_autotuning
    config = CustomOpConfig(b)
    register("mylib::my_allreduce", [CustomOpConfig(first), CustomOpConfig(b, by=2)])
    op = hooks.find("mylib::my_allreduce")
    assert op is hooks.find("torch.ops.mylib.my_allreduce") and op.op == "allreduce"
    assert op.choose(5000, 2) == "B"  # the table's choice
    assert op.choose(10, 2) == "B"  # of these the only measured one
    assert op.choose(10, 7) == "FIRST"  # nothing measured
    register("mylib::own_all_gather", [CustomOpConfig(first, candidate="X")])
    assert hooks.find("mylib::own_all_gather").choose(10, 2) == "X"
    register("mylib::my_allreduce", [CustomOpConfig(first, "A"), CustomOpConfig(b, by=2)])
    op = hooks.find("mylib::my_allreduce")
    assert op.choose(10, 2) == "A" and op.choose(900, 2) == "A"  # the choice, though B is faster
    tuned.RANGES[KEY] = ((None, "C"),)
    assert op.choose(10, 2) == "A" and op.choose(900, 2) == "B"  # the fastest of these
    rows = torch.ones(4)
    assert torch.equal(torch.ops.mylib.my_allreduce(rows), rows)  # no group: the reference
    refused(RuntimeError, "needs a process group", op.measure, rows)
    refused(KeyError, "mylib::my_allreduce", hooks.find, "mylib::other")
    refused(ValueError, "no op has such a name", register, "mylib::f", [config])
    refused(ValueError, "different names", register, "a::allreduce", [config, config])
    refused(ValueError, "at least one", register, "a::allreduce", [])
    refused(ValueError, "a name such as", register, "allreduce", [config])
    refused(TypeError, "required", register, torch.ops.mylib.my_allreduce, [config])


# ---- two processes -------------------------------------------------------------------------------


def functional_ops():
    """The functional collectives of later versions of torch, by those of this one."""
    if hasattr(torch, "compile"):
        return None
    library = torch.library.Library("_c10d_functional", "DEF")

    def all_reduce(tensor: torch.Tensor, op: str, group: str) -> torch.Tensor:
        out = tensor.clone()
        kinds = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}
        dist.all_reduce(out, kinds[op], group=tuned._group_of(group))
        return out

    def wait_tensor(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()

    library.define("all_reduce(Tensor tensor, str op, str group) -> Tensor")
    library.impl("all_reduce", all_reduce, "CompositeExplicitAutograd")
    library.define("wait_tensor(Tensor tensor) -> Tensor")
    library.impl("wait_tensor", wait_tensor, "CompositeExplicitAutograd")
    return library


# A graph with two sums, of which the first is small, and a maximum.
def graph_of(group):
    functional, graph = torch.ops._c10d_functional, torch.fx.Graph()
    small, large = graph.placeholder("small"), graph.placeholder("large")
    small.meta["val"], large.meta["val"] = torch.ones(4), torch.ones(4096)
    out = []
    for tensor, op in ((small, "sum"), (large, "sum"), (large, "max")):
        node = graph.call_function(functional.all_reduce.default, (tensor, op, group))
        node.meta["val"] = tensor.meta["val"]
        out.append(graph.call_function(functional.wait_tensor.default, (node,)))
    graph.output(tuple(out))
    return graph


def pass_replaces_registered_choices(rank, group):
    called = []

    def by_b(tensor, group=None):
        called.append(tensor.numel())
        return tuned._usual_all_reduce(tensor, group)

    inputs = torch.full((4,), rank + 1.0), torch.full((4096,), rank + 1.0)
    wanted = torch.full((4,), 3.0), torch.full((4096,), 3.0), torch.full((4096,), 2.0)
    graph = graph_of(group)
    assert hooks.replace_collectives(graph) == 0  # no function is registered
    tuned.register("B", "allreduce", by_b)
    assert hooks.replace_collectives(graph) == 1
    graph.lint()
    targets = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    assert len(targets) == 5 and targets[2] == "gentables.all_reduce.default", targets
    out = torch.fx.GraphModule({}, graph)(*inputs)
    assert called == [4096] and all(torch.equal(a, b) for a, b in zip(out, wanted)), (called, out)
    sums = [node for node in graph_of(group).nodes if "all_reduce" in str(node.target)]
    estimates = [hooks.estimate_ms(node) for node in sums]
    assert estimates[0] == 0.001 and abs(estimates[1] - 2.0 * 16384 / 10000 / 1000) < 1e-12, estimates
    wait = [node for node in graph_of(group).nodes if "wait" in str(node.target)][0]
    assert hooks.estimate_ms(wait) is None
    coalesced = graph.call_function(sums[0].target, ([sums[0].args[0], sums[1].args[0]], "sum", group))
    assert hooks.estimate_ms(coalesced) is None
    tuned._implementations.clear()


def custom_op_calls_its_choice(rank):
    called = []

    def named(name):
        def function(tensor, group=None, scale=1):
            called.append((name, tensor.numel(), group is not None))
            return tuned._usual_all_reduce(tensor, group) * scale

        return function

    configs = [CustomOpConfig(named("A"), "A"), CustomOpConfig(named("B"), "B", scale=2)]
    register_custom_op_autotuning("mylib::my_allreduce", configs)
    tuned.name_group("both", dist.group.WORLD)
    assert torch.equal(torch.ops.mylib.my_allreduce(torch.ones(4)), torch.full((4,), 2.0))
    large = torch.ops.mylib.my_allreduce(torch.ones(4096), "both")
    assert torch.equal(large, torch.full((4096,), 4.0))
    assert called == [("A", 4, False), ("B", 4096, True)], called


def again(times, factor=1, called=None):
    def function(tensor, group=None):
        if called is not None:
            called.append(times)
        for _ in range(times):
            out = tuned._usual_all_reduce(tensor, tuned._group_of(group) if isinstance(group, str) else group)
        return out * factor

    return function


# The candidates of Python functions: a wrong one has no time, and the fastest is called from then on.
def measured_candidates_are_chosen(rank):
    def in_place(tensor):
        dist.all_reduce(tensor)
        return tensor

    configs = [CustomOpConfig(in_place), CustomOpConfig(again(60), "A"), CustomOpConfig(again(1), "FAST")]
    configs.append(CustomOpConfig(again(1, 1 + rank), "BAD"))  # wrong on rank 1 alone
    op = register_custom_op_autotuning("mylib::sum_allreduce", configs)
    assert op.choose(400, 2, "float32") == "A"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        times = op.measure(torch.ones(100), samples=5, warm_up=1)
    reasons = [str(of.message) for of in caught if "has no time" in str(of.message)]
    assert len(reasons) == 2 and "IN_PLACE has no time: it changes its input" in reasons[0], reasons
    assert ("BAD has no time: another rank", "BAD has no time: its result")[rank] in reasons[1], reasons
    assert list(times) == ["A", "FAST"] and times["FAST"] < times["A"], times
    assert op.choose(400, 2, "float32") == "FAST" and op.choose(400, 2, "bfloat16") == "A"
    assert op.choose(400, 2) == "FAST"  # of the only measured dtype
    tuned.RANGES[KEY], before = ((None, "BAD"),), tuned.RANGES[KEY]
    assert op.choose(400, 2, "bfloat16") == "BAD"  # not measured
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        op.measure(torch.ones(100, dtype=torch.float64), samples=1, warm_up=0)
    assert op.choose(400, 2) == "A"  # of two dtypes; never the table's choice that measure() left out
    tuned.RANGES[KEY] = before
    both = [None, None]
    dist.all_gather_object(both, times)
    assert both[0] == both[1], both
    refused(ValueError, "rank 1 has", op.measure, torch.ones(100 + rank))

    def raises(tensor):
        raise NotImplementedError

    op = register_custom_op_autotuning("mylib::sum_allreduce", [CustomOpConfig(raises), configs[-1]])
    refused(RuntimeError, "no candidate has the result", op.measure, torch.ones(100))
    refused(RuntimeError, "left out all candidates", op.choose, 400, 2)


# Of three ranks, 0 and 1 measure. In the group of 1 and 2 both call the table's choice: rank 2 has no times.
def times_are_of_their_group(rank, folder):
    dist.init_process_group("gloo", init_method="file://" + folder + "/meet3", rank=rank, world_size=3)
    tuned.RANGES[KEY] = ((None, "A"),)
    tuned.name_group("measured", dist.new_group([0, 1]))
    others, called = dist.new_group([1, 2]), []
    configs = [CustomOpConfig(again(60, called=called), "A"), CustomOpConfig(again(1, called=called), "FAST")]
    op = register_custom_op_autotuning("mylib::sum_allreduce", configs)
    if rank < 2:
        op.measure(torch.ones(100), group="measured", samples=5, warm_up=1)
        op(torch.ones(100), group="measured")
        assert called[-1] == 1, called
    if rank > 0:
        op(torch.ones(100), group=others)
        assert called[-1] == 60, called
    dist.barrier()


# The same in code that Inductor compiles, with a torch that has it.
def compiled_code_calls_the_choice(rank):
    called = []

    def by_b(tensor, group=None):
        called.append(tensor.numel())
        return tuned._usual_all_reduce(tensor, group)

    tuned.register("B", "allreduce", by_b)
    hooks.use_in_compile()
    hooks.use_in_compile()
    import torch.distributed._functional_collectives as functional

    def step(tensor):
        return functional.all_reduce(tensor * 2, "sum", dist.group.WORLD) + 1

    compiled = torch.compile(step)
    for elements, calls in ((4, []), (4096, [4096])):
        out = compiled(torch.full((elements,), rank + 1.0))
        assert torch.equal(out, torch.full((elements,), 7.0)), out
        assert called == calls, (elements, called)
    tuned._implementations.clear()


# The example of torch.library: an op that exists already gets candidates.
def defined_op_gets_candidates(rank):
    @torch.library.custom_op("otherlib::my_allreduce", mutates_args=())
    def my_allreduce(x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the body of an op with candidates is called")

    @my_allreduce.register_fake
    def _(x):
        return torch.empty_like(x)

    def first(x):
        return tuned._usual_all_reduce(x)

    def chunked(x, chunk_size=1):
        return tuned._usual_all_reduce(x) * chunk_size

    configs = [CustomOpConfig(first, "A"), CustomOpConfig(chunked, "B", chunk_size=2)]
    register_custom_op_autotuning(my_allreduce, configs=configs)
    assert torch.equal(my_allreduce(torch.ones(4)), torch.full((4,), 2.0))
    compiled = torch.compile(lambda tensor: torch.ops.otherlib.my_allreduce(tensor + 1) + 1)
    assert torch.equal(compiled(torch.ones(4096)), torch.full((4096,), 9.0))


def work(rank, folder):
    dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=rank, world_size=2)
    tuned.TIMES[KEY] = ((100, {"A": 1.0, "B": 9.0}), (10000, {"A": 100.0, "B": 2.0}))
    tuned.RANGES[KEY] = ((1000, "A"), (None, "B"))
    library = functional_ops()
    group = "group" if library else dist.group.WORLD.group_name
    tuned.name_group("group", dist.group.WORLD)
    pass_replaces_registered_choices(rank, group)
    custom_op_calls_its_choice(rank)
    measured_candidates_are_chosen(rank)
    if library:
        refused(RuntimeError, "torch 2.6 or later is required", hooks.use_in_compile)
    else:
        compiled_code_calls_the_choice(rank)
        defined_op_gets_candidates(rank)
    dist.barrier()


if __name__ == "__main__":
    # Forked processes need not import torch again; no op has run yet.
    mp.start_processes(work, args=(sys.argv[1],), nprocs=2, start_method="fork")
    mp.start_processes(times_are_of_their_group, args=(sys.argv[1],), nprocs=3, start_method="fork")
    times_are_those_of_the_document(sys.argv[1])
    is_the_reference_without_a_group()
    ops_are_found_by_name()
