#!/usr/bin/env python3
"""A table from benchmark CSVs by pandas, as a short script of one's own would make it, for comparison in speed.

    pandas_tables.py OUT FILE...

Each cell gets the strategy with the least time, its time, the runner-up and the margin. OUT gets table.csv, a C array
and the nested vectors of a C++ table. It has no bins, no confidence, no borders and no checks of its input."""
import os
import sys

import pandas

BLOCK = ["world_size", "fusion", "dtype", "op"]
SHAPE = ["hidden_size", "num_tokens"]


def best(cell):
    ordered = cell.sort_values("time (us)")
    times, names = ordered["time (us)"].tolist(), ordered["strategy"].tolist()
    more = len(times) > 1
    return pandas.Series({"strategy": names[0], "time (us)": times[0], "runner_up": names[1] if more else "",
                          "margin": times[1] / times[0] - 1 if more else ""})


def main():
    out, *paths = sys.argv[1:]
    rows = pandas.concat([pandas.read_csv(path) for path in paths])
    table = rows.groupby(BLOCK + SHAPE).apply(best).reset_index()
    os.makedirs(out, exist_ok=True)
    table.to_csv(os.path.join(out, "table.csv"), index=False, float_format="%.4f")
    numbers = {name: i for i, name in enumerate(sorted(table["strategy"].unique()))}
    with open(os.path.join(out, "table.h"), "w") as header, open(os.path.join(out, "table.cpp"), "w") as source:
        for key, block in table.groupby(BLOCK):
            grid = block.pivot(index="hidden_size", columns="num_tokens", values="strategy").replace(numbers)
            lines = ["{" + ", ".join(str(number) for number in row) + "}" for row in grid.values.tolist()]
            name = "_".join(str(part) for part in key)
            header.write("static const int tp%s[%d][%d] = {\n%s};\n" % (name, *grid.shape, ",\n".join(lines)))
            source.write("// %s\n{%s},\n" % (name, ",\n".join(lines)))


if __name__ == "__main__":
    main()
