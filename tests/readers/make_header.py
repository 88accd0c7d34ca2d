#!/usr/bin/env python3
"""Tables of TensorRT-LLM in the layouts that are about, with numbers drawn from a seed.
make_header.py DIR   printed.cpp (as the generator prints one), shipped.h (two, as clang-format wraps them),
                     joined.h (two on a line, block comments), sm90.csv and sm100.csv (what they say)"""
import os
import random
import sys

TOKENS = [2 ** i for i in range(15)]
HIDDEN = [2 ** i for i in range(7, 14)]
FUSIONS = ('NONE', 'RESIDUAL_RMS_NORM', 'RESIDUAL_RMS_NORM_QUANT_FP8', 'RESIDUAL_RMS_NORM_QUANT_NVFP4')
NAMES = {0: 'NCCL', 4: 'ONESHOT', 5: 'TWOSHOT', 8: 'NCCL_SYMMETRIC'}
HEADER = ('arch,world_size,fusion,dtype,op,mode,hidden_size,num_tokens,strategy,time (us),runner_up,margin,'
          'state,confidence,expected loss,worst loss (us),basis\n')
TYPE = 'inline AllReduceBestStrategyTableType AllReduceBestStrategyTableSM'
USES = ('\ninline const std::unordered_map<int, AllReduceBestStrategyTableType> AllReduceBestStrategyTable\n'
        '    = {{90, AllReduceBestStrategyTableSM90}, {100, AllReduceBestStrategyTableSM100}};\n')
rnd = random.Random(5)


def draw():
    return [[[[rnd.choice(list(NAMES)) for _ in TOKENS] for _ in HIDDEN] for _ in FUSIONS] for _ in range(3)]


def printed(sm, table):
    worlds = []
    for t, world in enumerate(table):
        fusions = []
        for f, fusion in enumerate(world):
            rows = ['            {' + ','.join(map(str, row)) + '}' for row in fusion]
            fusions.append('        { // Fusion=' + FUSIONS[f] + '\n' + ',\n'.join(rows) + '\n        }')
        worlds.append(f'    {{\n        // TP={2 << t}\n' + ',\n'.join(fusions) + '\n    }')
    comments = ('// AllReduce lookup: [tp][fusion][hidden][tokens] = strategy\n// TP:[2, 4, 8]\n'
                f'// Fusion:{list(FUSIONS)}\n// Hidden:{HIDDEN}\n// Tokens:{TOKENS}\n')
    return comments + TYPE + f'{sm} = {{\n' + ',\n'.join(worlds) + '\n};\n'


def shipped(sm, table):
    worlds = []
    for t, world in enumerate(table):
        fusions = []
        for f, fusion in enumerate(world):
            rows = ['{' + ', '.join(map(str, row)) + '}' for row in fusion]
            pairs = [', '.join(rows[i:i + 2]) for i in range(0, len(rows), 2)]
            fusions.append('           {// Fusion=' + FUSIONS[f] + '\n               '
                           + ',\n               '.join(pairs) + '}')
        worlds.append(f'{{    // TP={2 << t}\n' + ',\n'.join(fusions) + '}')
    return '\n' + TYPE + f'{sm}\n    = {{' + ',\n        '.join(worlds) + '};\n'


def canonical(sm, table):
    out = HEADER
    for t, world in enumerate(table):
        for f, fusion in enumerate(world):
            for h, row in enumerate(fusion):
                for n, number in enumerate(row):
                    out += (f'sm{sm},{2 << t},{FUSIONS[f]},bfloat16,allreduce,unknown,{HIDDEN[h]},{TOKENS[n]},'
                            f'{NAMES[number]},,,,,,,,\n')
    return out


def main(folder):
    tables = {90: draw(), 100: draw()}
    texts = {'printed.cpp': printed(90, tables[90])}
    texts['shipped.h'] = ('#pragma once\nconstexpr int kTpSizeChoice = 3;\n'
                          + ''.join(shipped(sm, table) for sm, table in tables.items()) + USES)
    braces = str.maketrans('[]', '{}')
    texts['joined.h'] = ' '.join(TYPE + f'{sm}={str(table).translate(braces)}; /* = {{ */'
                                 for sm, table in tables.items()) + USES
    for sm, table in tables.items():
        texts[f'sm{sm}.csv'] = canonical(sm, table)
    for name, text in texts.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(text)


main(sys.argv[1])
