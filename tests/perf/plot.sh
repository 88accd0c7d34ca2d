#!/bin/sh
# The time of pictures, as a multiple of gnuplot's time for blank ones of the same size: prints figures,
# judges none.
#
#   sh tests/perf/plot.sh [GENTABLES]     default: build/bin/gentables; needs python3 and gnuplot
#
# The rows are make_rows.py's: 4 fusions x 3 TP sizes x 3 documented pictures at 300 dpi, 15 x 7 cells and 4
# strategies each; then all kinds. The variance is made up: 320 rows, five pictures. Each figure is the least
# of 3 runs.
. "$(dirname -- "$0")/lib.sh"

# The sizes of the pictures below a folder, drawn blank, by one gnuplot for each core.
cat >"$work/blank.py" <<'END'
import concurrent.futures, os, pathlib, struct, subprocess, sys
def draw(path):
    width, height = struct.unpack(">II", open(path, "rb").read(24)[16:])
    script = f'set terminal pngcairo size {width},{height}\nset output "/dev/null"\nplot x\n'
    subprocess.run(["gnuplot", "-d", "/dev/stdin"], input=script.encode(), check=True)
with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    list(pool.map(draw, pathlib.Path(sys.argv[1]).rglob("*.png")))
END

# report NAME FOLDER COMMAND...: prints one line, with the ratio. FOLDER gets the pictures.
report() {
    name=$1
    folder=$2
    shift 2
    time=$(least 3 "$@" 2>/dev/null)
    count=$(find "$folder" -name '*.png' | wc -l)
    blank=$(least 3 python3 "$work/blank.py" "$folder" 2>/dev/null)
    awk -v name="$name" -v count="$count" -v time="$time" -v blank="$blank" 'BEGIN {
        printf "  %-28s %3d pictures %8.2f s   %5.2f x blank ones\n", name, count, time / 1e6, time / blank
    }'
}

python3 "$here/make_rows.py" "$work/rows" small
set -- "$gentables" plot --data-dir "$work/rows" --arch sm90 --out
report "plot, the documented kinds" "$work/three" "$@" "$work/three"
report "plot, all kinds" "$work/all" "$@" "$work/all" --kinds all

python3 - "$work/variance.csv" <<'END'
import random, sys
random.seed(1)
with open(sys.argv[1], "w") as out:
    print("threads,channel,rank,kernel_name,time_diff_us", file=out)
    for threads in 256, 512:
        for channel in 28, 42, 56, 70:
            for rank in range(8):
                for _ in range(5):
                    print(f"{threads},{channel},{rank},gemm,{random.lognormvariate(2, 1)}", file=out)
END
report "trace plots" "$work/variance" "$gentables" trace plots "$work/variance.csv" \
    --out "$work/variance"
