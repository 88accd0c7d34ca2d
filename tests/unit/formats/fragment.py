#!/usr/bin/env python3
"""TensorRT-LLM's fragment from its CSVs, by another way than ours: what ours has to equal.

fragment.py DIR SM [DTYPE [OP]]   prints what its own generator would, but for its defects: rows of another dtype or
op do not compete (default: bfloat16, allreduce), AUTO never wins, the first of equal times in the list's order does.
"""
import csv
import os
import sys

TPS = (2, 4, 8)
FUSIONS = ('NONE', 'RESIDUAL_RMS_NORM', 'RESIDUAL_RMS_NORM_QUANT_FP8', 'RESIDUAL_RMS_NORM_QUANT_NVFP4')
HIDDEN = [2 ** i for i in range(7, 14)]
TOKENS = [2 ** i for i in range(15)]
# In the order of generator/lists/lists.lua, which decides between equal times.
NUMBERS = {'ONESHOT': 4, 'TWOSHOT': 5, 'NCCL': 0, 'MIN_LATENCY': 1, 'UB': 2, 'LOWPRECISION': 6, 'MNNVL': 7,
           'NCCL_SYMMETRIC': 8}


def read(path, dtype, op):
    cells = {}
    with open(path, newline='') as file:
        for row in csv.DictReader(file):
            if row['dtype'] != dtype or row.get('op', 'allreduce') != op or row['strategy'] not in NUMBERS:
                continue
            key = (row['fusion'], int(row['hidden_size']), int(row['num_tokens']))
            rank = list(NUMBERS).index(row['strategy'])
            entry = (float(row['time (us)']), rank, NUMBERS[row['strategy']])
            cells[key] = min(cells.get(key, entry), entry)
    return cells


def main(folder, sm, dtype='bfloat16', op='allreduce'):
    out = ['// AllReduce lookup: [tp][fusion][hidden][tokens] = strategy', f'// TP:{list(TPS)}',
           f'// Fusion:{list(FUSIONS)}', f'// Hidden:{HIDDEN}', f'// Tokens:{TOKENS}',
           f'inline AllReduceBestStrategyTableType AllReduceBestStrategyTableSM{sm} = {{']
    tables = []
    for tp in TPS:
        path = f'{folder}/benchmark.tp{tp}.sm{sm}.csv'
        cells = read(path, dtype, op) if os.path.exists(path) else {}
        blocks = []
        for fusion in FUSIONS:
            rows = []
            for hidden in HIDDEN:
                numbers = [str(cells.get((fusion, hidden, tokens), (0, 0, 8))[2]) for tokens in TOKENS]
                rows.append('            {' + ','.join(numbers) + '}')
            blocks.append('        { // Fusion=' + fusion + '\n' + ',\n'.join(rows) + '\n        }')
        tables.append(f'    {{\n        // TP={tp}\n' + ',\n'.join(blocks) + '\n    }')
    print('\n'.join(out) + '\n' + ',\n'.join(tables) + '\n};')


main(*sys.argv[1:])
