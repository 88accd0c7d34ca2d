#!/usr/bin/env python3
"""What TensorRT-LLM's generator does with a folder of CSVs, from its description: the first smallest time of all
rows of a (world_size, fusion, hidden_size, num_tokens), AUTO dropped, dtype and op no keys, 8 elsewhere.
heuristic.py DIR SM   writes DIR/gen_heuristic_code/generated_lookup_table.cpp"""
import csv
import os
import sys

NUMBER = {'NCCL': 0, 'NCCL_SYMMETRIC': 8, 'ONESHOT': 4, 'TWOSHOT': 5}
TP = [2, 4, 8]
FUSION = ['NONE', 'RESIDUAL_RMS_NORM', 'RESIDUAL_RMS_NORM_QUANT_FP8', 'RESIDUAL_RMS_NORM_QUANT_NVFP4']
HIDDEN = [128 << i for i in range(7)]
TOKENS = [1 << i for i in range(15)]


def winners(folder, sm):
    best = {}
    for tp in TP:
        with open(f'{folder}/benchmark.tp{tp}.sm{sm}.csv', newline='', encoding='utf-8') as file:
            for row in csv.DictReader(file):
                key = (int(row['world_size']), row['fusion'], int(row['hidden_size']), int(row['num_tokens']))
                time = float(row['time (us)'])
                if row['strategy'] != 'AUTO' and (key not in best or time < best[key][0]):
                    best[key] = (time, row['strategy'])
    return {key: NUMBER.get(name, 8) for key, (_, name) in best.items()}


def main(folder, sm):
    best = winners(folder, sm)
    text = '// AllReduce lookup: [tp][fusion][hidden][tokens] = strategy\n'
    for name, values in (('TP', TP), ('Fusion', FUSION), ('Hidden', HIDDEN), ('Tokens', TOKENS)):
        text += f'// {name}:{values}\n'
    text += f'inline AllReduceBestStrategyTableType AllReduceBestStrategyTableSM{sm} = {{\n'
    for tp in TP:
        text += f'    {{\n        // TP={tp}\n'
        for fusion in FUSION:
            text += f'        {{ // Fusion={fusion}\n'
            for hidden in HIDDEN:
                row = ','.join(str(best.get((tp, fusion, hidden, tokens), 8)) for tokens in TOKENS)
                text += '            {' + row + '}' + (',' if hidden != HIDDEN[-1] else '') + '\n'
            text += '        }' + (',' if fusion != FUSION[-1] else '') + '\n'
        text += '    }' + (',' if tp != TP[-1] else '') + '\n'
    os.makedirs(f'{folder}/gen_heuristic_code', exist_ok=True)
    with open(f'{folder}/gen_heuristic_code/generated_lookup_table.cpp', 'w', encoding='utf-8') as file:
        file.write(text + '};\n')


main(*sys.argv[1:])
