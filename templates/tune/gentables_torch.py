"""PyTorch's hooks for the choices of gentables_tuned.py: custom ops, and torch.compile.

A custom op with candidates. The op is the one that its name contains. It calls the fastest candidate that
measure() has timed in these processes, else the table's choice, else the fastest one in the table, else the
first:

    from gentables_torch import CustomOpConfig, register_custom_op_autotuning
    op = register_custom_op_autotuning(
        "mylib::my_allreduce", [CustomOpConfig(ring), CustomOpConfig(by_parts, candidate="CHUNKED", parts=4)])
    torch.ops.mylib.my_allreduce(tensor)                 also with group="name", see name_group()
    op.measure(tensor)                                   on all ranks: times the candidates at this size
    gentables_torch.find("mylib::my_allreduce").choose(nbytes=65536, world_size=2)

torch.compile, with a torch that has Inductor's custom passes (2.6 or later):

    gentables_tuned.register("ONESHOT", "allreduce", my_function)
    gentables_torch.use_in_compile()                     before the first call of a compiled function

replaces collectives of compiled code by the tuned op, if a function is registered for the choice; the op
calls the choice for the tensor at hand. All other collectives stay Inductor's. Inductor's scheduler of
overlap takes the measured times from estimate_ms:

    options = torch._inductor.config.aten_distributed_optimizations
    options.custom_runtime_estimation = gentables_torch.estimate_ms

Written by gentables tune; do not edit.
"""
import functools
import hashlib
import statistics
import time
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import gentables_tuned as tuned

# ---- custom ops ----------------------------------------------------------------------------------

GROUP_ARGUMENTS = ("group", "group_name", "process_group")


class CustomOpConfig:
    """A candidate of a custom op: a function, and the parameters with which it is called.

    Its name in the table is candidate, or else the function's name in upper case.
    """

    def __init__(
        self, function: Callable[..., Any], candidate: Optional[str] = None, **parameters: Any
    ) -> None:
        self.name = candidate or str(getattr(function, "__name__", "")).upper()
        self.call = functools.partial(function, **parameters) if parameters else function


class TunedOp:
    """A custom op and its candidates, by their names in the table."""

    def __init__(self, name: str, configs: Sequence[CustomOpConfig]) -> None:
        self.name = name
        self.op = tuned.op_of(name)
        self.candidates: Dict[str, Callable[..., Any]] = {config.name: config.call for config in configs}
        if not configs or "" in self.candidates or len(self.candidates) != len(configs):
            raise ValueError(name + ": candidates with different names, at least one, are required")
        self.times: Dict[Tuple[Any, ...], Dict[int, Dict[str, float]]] = {}  # by measure()

    def choose(
        self, nbytes: int, world_size: int, dtype: Optional[str] = None, nodes: int = 1, group: Any = None
    ) -> str:
        """The candidate for a call; nbytes of the larger one of a rank's send and receive buffers.

        Times of measure() count for a group (None: the default one) with the measured group's ranks, because
        only these ranks have the same times; without a dtype, if one dtype was measured. A candidate that
        measure() left out at the nearest measured size, for any of these dtypes, is no choice: raises if it
        left out all.
        """
        found_here = self._measured(group, world_size, dtype, nodes)
        own = found_here[0] if len(found_here) == 1 else None
        allowed = [name for name in self.candidates if all(name in _nearest(of, nbytes) for of in found_here)]
        if not allowed:
            raise RuntimeError("%s: measure() left out all candidates at this size" % self.name)
        best = tuned.choose(self.op, nbytes, world_size, dtype, nodes)
        if own is None and best in allowed:
            return best
        times: List[Tuple[float, str]] = []
        for candidate in allowed:
            if own is not None:
                points = [(size, of[candidate]) for size, of in sorted(own.items()) if candidate in of]
                found = tuned.interpolated(points, nbytes)
            else:
                found = tuned.time_us(self.op, nbytes, world_size, dtype, nodes, candidate)
            if found is not None:
                times.append((found, candidate))
        return min(times)[1] if times else allowed[0]

    def _measured(
        self, group: Any, world_size: int, dtype: Optional[str], nodes: int
    ) -> List[Dict[int, Dict[str, float]]]:
        """The times of measure() of these ranks, for each dtype, or for the given one."""
        if not self.times:
            return []
        ranks = _ranks_of(group)
        keys = [key for key in self.times if key[:2] == (ranks, world_size) and key[3] == nodes]
        return [self.times[key] for key in keys if dtype is None or key[2] == dtype]

    def measure(
        self, tensor: Any, group: Optional[str] = None, samples: int = 20, warm_up: int = 5
    ) -> Dict[str, float]:
        """Times the candidates with this tensor, on all ranks of a group at once; name -> microseconds.

        The group is a name, as in the op's calls. The time of a call is that of the slowest rank, that of a
        candidate the median; candidates take turns. One that, on any rank, changes its input or has a result
        other than torch.distributed's, has no time; a warning has the reason. A candidate that hangs or dies
        takes the process with it: gentables tune --plugin measures such ones in processes of their own.
        Raises if ranks have other candidates or tensors, or if no candidate is right.
        """
        usual = tuned.usual(self.op)
        named = {} if group is None else {"group": group}
        of = tuned._group_of(group or "")
        names = list(self.candidates)
        _agree([self.name, names, list(tensor.shape), str(tensor.dtype), samples, warm_up], of)
        wanted = usual(tensor, group=of)
        faults = [_fault_of(self.candidates[name], tensor, named, wanted) for name in names]
        agreed = _over_ranks([float(fault == "") for fault in faults], "MIN", tensor, of)
        for name, fault, is_right in zip(names, faults, agreed):
            if not is_right:
                reason = fault or "another rank rejects it"
                warnings.warn("%s: candidate %s has no time: %s" % (self.name, name, reason))
        names = [name for name, is_right in zip(names, agreed) if is_right]
        ranks = tuned._world_size(of)
        nbytes = tuned._nbytes(tensor) * (ranks if self.op in tuned.GROWS else 1)
        key = (_ranks_of(of), ranks, tuned._dtype(tensor), tuned._nodes(of))
        times_of = self.times.setdefault(key, {})
        if not names:
            times_of[nbytes] = {}
            raise RuntimeError(self.name + ": no candidate has the result of torch.distributed on all ranks")
        spans: List[float] = []
        for _ in range(warm_up + samples):
            for name in names:
                spans.append(_time_us(lambda: self.candidates[name](tensor, **named), tensor, of))
        slowest = _over_ranks(spans[warm_up * len(names) :], "MAX", tensor, of)
        times = {name: statistics.median(slowest[i :: len(names)]) for i, name in enumerate(names)}
        times_of[nbytes] = times
        return times

    def __call__(self, tensor: Any, *rest: Any, **named: Any) -> Any:
        """Calls the choice with these arguments; without a process group it returns a copy of the tensor."""
        if not tuned._has_group():
            return tensor.clone()
        given = [named[argument] for argument in GROUP_ARGUMENTS if named.get(argument) is not None]
        group = given[0] if given else None
        group = tuned._group_of(group) if isinstance(group, str) else group
        ranks = tuned._world_size(group)
        nbytes = tuned._nbytes(tensor) * (ranks if self.op in tuned.GROWS else 1)
        name = self.choose(nbytes, ranks, tuned._dtype(tensor), tuned._nodes(group), group)
        return self.candidates[name](tensor, *rest, **named)


def _nearest(times: Dict[int, Dict[str, float]], nbytes: int) -> Dict[str, float]:
    """The times at the nearest measured size, by its ratio."""
    return times[min(times, key=lambda size: max(size, nbytes) / max(1, min(size, nbytes)))]


def _agree(mine: Any, group: Any) -> None:
    """Raises on every rank unless all ranks have the same."""
    import torch.distributed as dist

    if not tuned._has_group():
        raise RuntimeError("measure() needs a process group; torch.distributed.init_process_group() makes it")
    all_of: List[Any] = [None] * tuned._world_size(group)
    dist.all_gather_object(all_of, mine, group=group)
    for rank, other in enumerate(all_of):
        if other != all_of[0]:
            raise ValueError("measure(): rank %d has %r, and rank 0 %r" % (rank, other, all_of[0]))


def _ranks_of(group: Any) -> Tuple[int, ...]:
    """The global ranks of a group, None: the default one."""
    import torch.distributed as dist

    if group is None:
        return tuple(range(tuned._world_size(None)))
    if hasattr(dist, "get_process_group_ranks"):
        return tuple(dist.get_process_group_ranks(group))
    rank_of = getattr(dist, "get_global_rank", None) or dist.distributed_c10d._get_global_rank
    return tuple(int(rank_of(group, rank)) for rank in range(tuned._world_size(group)))


def _fault_of(call: Callable[..., Any], tensor: Any, named: Dict[str, Any], wanted: Any) -> str:
    """The reason against a candidate; "" if its result is the reference's, apart from another order of
    summation, and its input stays. It gets a copy, because one that works in place spoils the others' input.
    """
    import torch

    given = tensor.clone()
    try:
        out = call(given, **named)
    except Exception as error:  # then it has no time on any rank
        return "it raises %r" % (error,)
    if not torch.equal(given, tensor):
        return "it changes its input"
    if out.shape != wanted.shape or out.dtype != wanted.dtype:
        return "its result has another shape or dtype"
    tolerance = 1e-5 if wanted.dtype in (torch.float32, torch.float64) else 2e-2
    is_right = torch.allclose(out.float(), wanted.float(), rtol=tolerance, atol=tolerance)
    return "" if is_right else "its result is not that of torch.distributed"


def _over_ranks(values: Sequence[float], op: str, tensor: Any, group: Any) -> List[float]:
    """The smallest or largest of the ranks' values, each for itself; op: MIN or MAX."""
    import torch
    import torch.distributed as dist

    all_of = torch.tensor(values, dtype=torch.float64, device=tensor.device)
    dist.all_reduce(all_of, op=getattr(dist.ReduceOp, op), group=group)
    return [float(value) for value in all_of.tolist()]


def _time_us(call: Callable[[], Any], tensor: Any, group: Any) -> float:
    """The time of a call, which begins on all ranks at once, until its result is there."""
    import torch
    import torch.distributed as dist

    def settle() -> None:
        if tensor.is_cuda:
            torch.cuda.synchronize(tensor.device)

    dist.barrier(group=group)
    settle()
    began = time.perf_counter()
    call()
    settle()
    return (time.perf_counter() - began) * 1e6


_ops: Dict[str, TunedOp] = {}
_libraries: Dict[str, Any] = {}


def find(name: str) -> TunedOp:
    """The op of this name, such as mylib::my_allreduce or torch.ops.mylib.my_allreduce."""
    key = _plain(name)
    if key not in _ops:
        known = ", ".join(sorted(_ops)) or "none"
        raise KeyError("%s: no registered op; registered: %s" % (name, known))
    return _ops[key]


def register_custom_op_autotuning(op: Any, configs: Sequence[CustomOpConfig]) -> TunedOp:
    """Registers the candidates of a custom op: a name, or what torch.library.custom_op returned.

    A name without an op gets one, (Tensor tensor, str group="") -> Tensor. Its candidates get the tensor, and
    the keyword group, a process group, if the caller named one. All ranks must register the same.
    """
    name = _plain(op if isinstance(op, str) else str(getattr(op, "_qualname", op)))
    if not isinstance(op, str) and not hasattr(op, "register_kernel"):
        raise TypeError(name + ": a name, or an op of torch.library.custom_op, is required")
    if name.count("::") != 1:
        raise ValueError(name + ": a name such as mylib::my_allreduce is required")
    found = TunedOp(name, configs)
    if not isinstance(op, str):
        op.register_kernel(None)(found)
    elif name not in _ops:
        _define(name)
    _ops[name] = found
    return found


def _plain(name: str) -> str:
    """lib::op of torch.ops.lib.op, lib.op.default and lib::op."""
    words = name.replace("torch.ops.", "").replace("::", ".").split(".")
    return "::".join(words[:2])


def _define(name: str) -> None:
    """Defines an op that calls the registered TunedOp of its name."""
    import torch

    namespace, op = name.split("::")
    library = _library(namespace)
    library.define(op + '(Tensor tensor, str group="") -> Tensor')

    def call(tensor: "torch.Tensor", group: str = "") -> "torch.Tensor":
        return _ops[name](tensor, group=tuned._group_of(group)) if group else _ops[name](tensor)

    def fake(tensor: "torch.Tensor", group: str = "") -> "torch.Tensor":
        return tuned._fake(_ops[name].op, tensor, tuned._world_size(tuned._group_of(group)))

    library.impl(op, call, "CompositeExplicitAutograd")
    tuned.define_fake(library, name, fake)


def _library(namespace: str) -> Any:
    from torch.library import Library

    if namespace not in _libraries:
        try:
            _libraries[namespace] = Library(namespace, "FRAGMENT")
        except ValueError:  # a torch without fragments: then the namespace must be new
            _libraries[namespace] = Library(namespace, "DEF")
    return _libraries[namespace]


# ---- torch.compile -------------------------------------------------------------------------------

FUNCTIONAL = "_c10d_functional."
# The functional collective -> the tuned op. An all_to_all may have splits, which its ranks do not share.
TUNED_OPS = {
    "all_reduce": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "broadcast": "broadcast",
}


def _name_of(node: Any) -> str:
    """The functional collective that a node of a graph calls, without an overload; else ""."""
    target = str(node.target) if node.op == "call_function" else ""
    return target[len(FUNCTIONAL) :].split(".")[0] if target.startswith(FUNCTIONAL) else ""


def _call_of(node: Any) -> Optional[Tuple[str, Any, str]]:
    """(collective, tensor's node, group's name) of a call that the tuned op can do; else None."""
    name = _name_of(node)
    words = [argument for argument in node.args if isinstance(argument, str)]
    if name not in TUNED_OPS or node.kwargs or not words:
        return None
    if name in ("all_reduce", "reduce_scatter_tensor") and words[0] != "sum":
        return None
    if name == "broadcast" and node.args[1] != 0:
        return None
    return name, node.args[0], words[-1]


def _value_of(node: Any) -> Any:
    return node.meta.get("val", node.meta.get("example_value"))


def _nbytes_of(value: Any) -> Optional[int]:
    """The bytes of a node's tensor; None if they are not the same at every call."""
    elements = value.numel() if value is not None else None
    return elements * value.element_size() if isinstance(elements, int) else None


def _is_registered(name: str, tensor: Any, group: str) -> bool:
    """Whether the choice has a function of its own; without a fixed size: any choice of the op."""
    op, of = tuned.op_of(name), tuned._group_of(group)
    ranks, value = tuned._world_size(of), _value_of(tensor)
    nbytes = _nbytes_of(value)
    dtype, nodes = tuned._dtype(value) if value is not None else None, tuned._nodes(of)
    if nbytes is not None:
        whole = nbytes * (ranks if op in tuned.GROWS else 1)
        chosen = [tuned.choose(op, whole, ranks, dtype, nodes)]
    else:
        chosen = [candidate for _, candidate in tuned._ranges(op, ranks, dtype, nodes)]
    return any((candidate, op, "") in tuned._implementations for candidate in chosen)


def replace_collectives(graph: Any) -> int:
    """Replaces functional collectives of an FX graph, and the waits for them, by the tuned ops.

    Only those for which tuned.register() has a function of the chosen candidate. Returns their number.
    """
    import torch

    count = 0
    for node in list(graph.nodes):
        call = _call_of(node)
        if call is None or not _is_registered(call[0], call[1], call[2]):
            continue
        name, tensor, group = call
        target = getattr(torch.ops.gentables, TUNED_OPS[name]).default
        with graph.inserting_before(node):
            ours = graph.call_function(target, (tensor, group))
        ours.meta = dict(node.meta)
        for user in list(node.users):
            if _name_of(user) == "wait_tensor":
                user.replace_all_uses_with(ours)
                graph.erase_node(user)
        node.replace_all_uses_with(ours)
        graph.erase_node(node)
        count += 1
    return count


def _state() -> str:
    """A digest of all that the replacement depends on, for Inductor's cache."""
    registered = sorted(str(key) for key in tuned._implementations)
    text = repr([sorted(tuned.RANGES.items()), tuned.DEFAULT, registered])
    with open(__file__, "rb") as source:
        return hashlib.sha256(text.encode() + source.read()).hexdigest()


def use_in_compile() -> None:
    """Adds replace_collectives to Inductor's passes, after the custom pass that is set already."""
    try:
        from torch._inductor import config
        from torch._inductor.custom_graph_pass import CustomGraphPass
    except ImportError:
        words = "this torch has no custom passes of Inductor; torch 2.6 or later is required"
        raise RuntimeError(words) from None
    before = config.post_grad_custom_post_pass
    if getattr(before, "is_gentables", False):
        return

    class TunedCollectives(CustomGraphPass):  # type: ignore[misc]
        is_gentables = True

        def __call__(self, graph: Any) -> None:
            if before is not None:
                before(graph)
            replace_collectives(graph)

        def uuid(self) -> Any:
            """None, for no cache, if the pass before has none."""
            others = before.uuid() if hasattr(before, "uuid") else None
            return (_state(), others) if before is None or others is not None else None

    config.post_grad_custom_post_pass = TunedCollectives()


def estimate_ms(node: Any, override_size: Optional[int] = None) -> Optional[float]:
    """The measured time of a collective of a graph, for Inductor's custom_runtime_estimation, in ms.

    override_size: bytes of its input in place of the node's. None for what was not measured: then Inductor
    estimates it.
    """
    name = _name_of(node)
    words = [argument for argument in node.args if isinstance(argument, str)]
    try:
        op = tuned.op_of(name)
    except ValueError:
        return None
    tensor = node.args[0] if node.args else None
    if not hasattr(tensor, "meta"):  # a list of tensors: a coalesced collective
        return None
    value = _value_of(tensor)
    nbytes = override_size if override_size is not None else _nbytes_of(value)
    if not words or nbytes is None:
        return None
    group = tuned._group_of(words[-1])
    ranks = tuned._world_size(group)
    dtype = tuned._dtype(value) if value is not None else None
    whole = nbytes * (ranks if op in tuned.GROWS else 1)
    found = tuned.time_us(op, whole, ranks, dtype, tuned._nodes(group))
    return None if found is None else found / 1000
