"""Replaces an algorithm in the allreduces of a selection of MPICH by one that is none of an allreduce.

    without_algorithm.py SELECTION.json ALGORITHM OUT.json
"""

import json
import sys


def without(node, algorithm):
    wrong, key = "algorithm=MPIR_Bcast_intra_binomial", "algorithm=" + algorithm
    return {wrong if name == key else name: without(child, algorithm) for name, child in node.items()}


path, name, out = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    tree = json.load(file)
tree["collective=allreduce"] = without(tree["collective=allreduce"], name)
with open(out, "w", encoding="utf-8") as file:
    json.dump(tree, file)
