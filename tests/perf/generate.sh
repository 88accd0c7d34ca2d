#!/bin/sh
# The time of `gentables generate` and `gentables diff`, as a multiple of reading the same bytes: prints
# figures, judges none.
#
#   sh tests/perf/generate.sh [GENTABLES [SIZES]]   default: build/bin/gentables "small large"; needs python3
#
# And, by turns, processor times: of each format and of all, as a multiple of the table's; of the small table
# in three formats, beside a script for pandas (pandas_tables.py), if python3 has pandas.
#
# The rows are make_rows.py's: 3 files of 1,680 rows, and of 168,000 (41 MB). Each figure is the least of
# some runs.
. "$(dirname -- "$0")/lib.sh"

# report NAME MICROSECONDS REFERENCE: prints one line, with the ratio.
report() {
    awk -v name="$1" -v time="$2" -v reference="$3" \
        'BEGIN { printf "  %-46s %9.2f ms   %6.2f x wc -l\n", name, time / 1000, time / reference }'
}

cat >"$work/select.lua" <<'END'
local paths = {}
for i, tp in ipairs { 2, 4, 8 } do paths[i] = ("%s/benchmark.tp%d.sm90.csv"):format(arg[1], tp) end
assert(require("core.choose").select(assert(require("core.rows").read(paths))))
END
cat >"$work/reader.py" <<'END'
import csv, sys
best = {}
for path in sys.argv[1:]:
    with open(path, newline='') as file:
        for row in csv.reader(file):
            key = (row[0], row[6], row[4], row[3], row[1])
            if key not in best or row[8] < best[key]:
                best[key] = row[8]
END

# by_turns NAME=COMMAND...: processor times, the least of 6 turns, and each as a multiple of the first one.
by_turns() {
    python3 - "$out" "$@" <<'END'
import resource, shutil, subprocess, sys
out, commands = sys.argv[1], [text.partition("=") for text in sys.argv[2:]]
def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
least = {}
for _ in range(6):
    for name, _, command in commands:
        shutil.rmtree(out, ignore_errors=True)
        before = used()
        subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        least[name] = min(least.get(name, 1e9), used() - before)
first = least[commands[0][0]]
for name, time in least.items():
    print("  %-46s %9.0f ms   %6.2f x %s" % (name, 1000 * time, time / first, commands[0][0]))
END
}

for size in ${2:-small large}; do
    data=$work/$size
    python3 "$here/make_rows.py" "$data" "$size"
    runs=40
    if [ "$size" = large ]; then runs=8; fi
    echo "$size: $(cat "$data"/*.csv | wc -lc | awk '{ print $1 - 3 " rows, " $2 " bytes" }')"
    reference=$(least "$runs" wc -l "$data"/*.csv)
    report "wc -l" "$reference" "$reference"
    report "python3's csv reader and a dictionary" \
        "$(least 2 python3 "$work/reader.py" "$data"/*.csv)" "$reference"
    report "gentables --version" "$(least "$runs" "$gentables" --version)" "$reference"
    report "rows to the selected table" \
        "$(least "$runs" "$gentables" lua "$work/select.lua" "$data")" "$reference"
    for formats in table trtllm,c,table; do
        report "generate --formats $formats" "$(least "$runs" "$gentables" generate --data-dir "$data" \
            --arch sm90 --formats "$formats" --out "$out")" "$reference"
    done
    report "generate, all formats" "$(least "$runs" "$gentables" generate --data-dir "$data" \
        --arch sm90 --out "$out")" "$reference"
    # Against the table of other rows, with other choices in most cells, and against itself.
    python3 "$here/make_rows.py" "$work/other" "$size" 2
    "$gentables" generate --data-dir "$work/other" --arch sm90 --formats table --out "$work/old" >/dev/null
    "$gentables" generate --data-dir "$data" --arch sm90 --formats table --out "$work/new" >/dev/null
    for old in old new; do
        report "diff, against the $old one" "$(least "$runs" sh -c '"$@" || [ $? = 1 ]' sh \
            "$gentables" diff "$work/$old/table.csv" "$work/new/table.csv")" "$reference"
        report "diff --rows, against the $old one" "$(least "$runs" sh -c '"$@" || [ $? = 1 ]' sh \
            "$gentables" diff "$work/$old/table.csv" "$work/new/table.csv" --rows "$data")" "$reference"
    done
    generate="'$gentables' generate --data-dir '$data' --arch sm90 --out '$out'"
    echo "$size, processor times by turns"
    if [ "$size" = large ]; then
        set -- "table=$generate --formats table"
        for formats in c trtllm thresholds pytorch vllm sglang flashinfer picture report; do
            set -- "$@" "$formats=$generate --formats $formats"
        done
        by_turns "$@" "all formats=$generate"
    elif python3 -c 'import pandas' 2>/dev/null; then
        by_turns "trtllm,c,table=$generate --formats trtllm,c,table" \
            "pandas=python3 '$here/pandas_tables.py' '$out' '$data'/*.csv"
    fi
done
