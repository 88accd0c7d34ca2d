#!/usr/bin/env python3
"""Makes a run of a mixture-of-experts model with gate logs.

make_gate_logs.py DIR [FOLDERS LAYERS STEPS EXPERTS]; by default 50 folders of 32 layers of 250 steps of 8 experts: 1,600 files, 50 MB. The same bytes every time.
"""
import json
import os
import random
import sys

root = sys.argv[1]
folders, layers, steps, experts = (int(word) for word in sys.argv[2:6] or (50, 32, 250, 8))
random.seed(1)
os.makedirs(root)
with open(f"{root}/workload.yaml", "w") as card:
    card.write("workload:\n  model:\n    phase: inference\n    moe: true\n")
for folder in range(folders):
    path = f"{root}/baseline_gates_logs/gates_logs_{folder:03d}"
    os.makedirs(path)
    for layer in range(layers):
        num_tokens = [random.randint(64, 400) for _ in range(steps)]
        loads = []
        for count in num_tokens:
            weights = [random.random() + 0.2 for _ in range(experts)]
            loads.append([float(round(2 * count * weight / sum(weights))) for weight in weights])
        log = {"step": list(range(steps)), "num_tokens": num_tokens, "expert_loads": loads}
        with open(f"{path}/gate_logs_{layer}.json", "w") as out:
            json.dump(log, out, indent=2)
