"""Reads thresholds.json of gentables, and returns the strategy for a number of bytes and a TP size.

    thresholds = Thresholds.load("tables/sm90/thresholds.json")
    thresholds.strategy(world_size=8, size_bytes=65536)        # "ONESHOT"
    thresholds.custom_max_bytes(world_size=8)                  # 262144: up to 256 KiB no library call
    CUSTOM_ALL_REDUCE_MAX_SIZES["9.0"] = thresholds.vllm_max_sizes(CUSTOM_ALL_REDUCE_MAX_SIZES.get("9.0"))
    dispatch = thresholds.dispatcher(8, {"ONESHOT": one_shot, "TWOSHOT": two_shot}, otherwise=nccl)
    dispatch(tensor)                                           # PyTorch: by the bytes of the tensor
    thresholds.strategy(world_size=16, size_bytes=65536, nodes=2)  # 16 ranks on 2 nodes, 8 on each

Split points are inclusive: a rule covers sizes up to its max_bytes, that size included. An unmeasured TP size
has no rules, and gets the fallback; so does one that was measured on other numbers of nodes only. Requires only
Python 3.8 or later; PyTorch is not imported.
"""

import bisect
import json

VLLM_WORLD_SIZES = (2, 4, 6, 8)  # those of vLLM's custom allreduce
FORMAT = "gentables thresholds"
VERSION = 1


class ThresholdsError(ValueError):
    """An invalid file, or a file of another version."""


def _check(condition, path, message):
    if not condition:
        raise ThresholdsError("%s: %s" % (path, message))


def _is_size(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _read_rules(path, world_size, rules):
    """The ends and strategies of the rules of one TP size."""
    where = "TP size %s" % world_size
    _check(isinstance(rules, list) and rules, path, "%s has no rules" % where)
    ends, strategies = [], []
    for place, rule in enumerate(rules):
        named = isinstance(rule, dict) and isinstance(rule.get("strategy"), str)
        _check(named, path, "%s: no strategy" % where)
        end, is_last = rule.get("max_bytes"), place == len(rules) - 1
        _check((end is None) == is_last, path, "%s: only the last rule has no max_bytes" % where)
        if not is_last:
            ascends = _is_size(end) and (not ends or end > ends[-1])
            _check(ascends, path, "%s: max_bytes has to ascend" % where)
            ends.append(end)
        strategies.append(rule["strategy"])
    return ends, strategies


class Thresholds:
    """The choices for one machine, data type and operation."""

    def __init__(self, document, path="thresholds"):
        _check(isinstance(document, dict) and document.get("format") == FORMAT, path,
               "is no file of thresholds; gentables generate --formats thresholds writes one")
        _check(document.get("version") == VERSION, path,
               "has version %s; version %d is required" % (document.get("version"), VERSION))
        _check(isinstance(document.get("fallback"), str), path, "has no fallback")
        by_nodes = document.get("nodes", {})
        _check(isinstance(by_nodes, dict), path, "nodes is no object")
        self.capability = document.get("capability")
        self.arch, self.dtype = document.get("arch"), document.get("dtype")
        self.fallback = document["fallback"]
        self._rules, self._custom, self._predicted = {}, {}, set()
        self._read_sizes(path, 1, document.get("world_sizes"))
        for nodes, by_tp_size in by_nodes.items():
            _check(nodes.isdigit(), path, "%s is no number of nodes" % nodes)
            self._read_sizes(path, int(nodes), by_tp_size)

    def _read_sizes(self, path, nodes, by_tp_size):
        """Enters the rules of each TP size on this number of nodes."""
        _check(isinstance(by_tp_size, dict), path, "has no world_sizes")
        for name, table in by_tp_size.items():
            _check(name.isdigit() and isinstance(table, dict), path, "%s is no TP size" % name)
            placement, custom = (nodes, int(name)), table.get("custom_max_bytes", 0)
            self._rules[placement] = _read_rules(path, name, table.get("rules"))
            self._custom[placement] = custom
            if "predicted_bytes" in table:
                self._predicted.add(placement)
            _check(_is_size(custom), path, "%s: custom_max_bytes is no size" % name)

    @classmethod
    def load(cls, path):
        """Reads a file. Raises ThresholdsError if the file is invalid."""
        try:
            with open(path, encoding="utf-8") as file:
                return cls(json.load(file), str(path))
        except (OSError, ValueError) as error:
            if isinstance(error, ThresholdsError):
                raise
            raise ThresholdsError("%s: cannot be read: %s" % (path, error)) from error

    def world_sizes(self, nodes=1):
        """The TP sizes that were measured or predicted on this number of nodes, ascending."""
        return sorted(size for on, size in self._rules if on == nodes)

    def is_predicted(self, world_size, nodes):
        """Whether the choices were predicted from times on fewer nodes."""
        return (nodes, world_size) in self._predicted

    def strategy(self, world_size, size_bytes, nodes=1):
        """The name of the strategy for a message of size_bytes on each rank."""
        if (nodes, world_size) not in self._rules:
            return self.fallback
        ends, strategies = self._rules[nodes, world_size]
        return strategies[bisect.bisect_left(ends, size_bytes)]

    def custom_max_bytes(self, world_size, nodes=1):
        """The size up to which, inclusive, every choice is ONESHOT or TWOSHOT, or on several nodes TWOLEVEL or
        TWOLEVEL_SHARDED; 0: not even the smallest."""
        return self._custom.get((nodes, world_size), 0)

    def vllm_max_sizes(self, present=None):
        """The entry of this capability in vLLM's CUSTOM_ALL_REDUCE_MAX_SIZES: {world size: bytes}.

        vLLM uses its custom allreduce for messages below the limit, so each limit is one byte above
        custom_max_bytes. vLLM looks up every world size that it supports, so an unmeasured one has the limit of
        `present`, vLLM's entry, or 1 without one: vLLM then uses its next way.
        No limit is 0: vLLM allocates as many bytes, and fails at 0.
        """
        limits = {size: 1 for size in VLLM_WORLD_SIZES}
        limits.update(present or {})
        for size in VLLM_WORLD_SIZES:
            if (1, size) in self._rules:
                limits[size] = self.custom_max_bytes(size) + 1
        return {size: max(limit, 1) for size, limit in limits.items()}

    def dispatcher(self, world_size, functions, otherwise, nodes=1):
        """A function of one PyTorch tensor that calls functions[strategy](tensor), or otherwise(tensor).

        All ranks of an allreduce have the same shape, so they choose the same strategy.
        """

        def dispatch(tensor):
            size_bytes = tensor.numel() * tensor.element_size()
            return functions.get(self.strategy(world_size, size_bytes, nodes), otherwise)(tensor)

        return dispatch
