#!/bin/sh
# --formats sqlite: each sheet of a trace verb is a table of one database, equal to its CSV value by value;
# views answer the usual questions; files are written whole or not at all. Wrong use ends in one line.
# Needs: zlib sqlite
. "$SOURCE/tests/lib.sh"

needs python3

# Two ranks, that communicate for 40 and 30 µs: rank 0 hides 10 of them behind a GEMM, rank 1 hides none.
python3 - "$WORK" <<'PYTHON'
import json
import os
import sys


def trace(rank):
    events = []

    def event(category, name, pid, tid, ts, dur, **args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
                       "args": args})

    def op(name, kernel, start, duration, dims, stream, **more):
        number = len(events) + 1
        launch = {"correlation": number, "External id": number}
        event("cpu_op", name, 1, 1, 100 * number, 9,
              **{"External id": number, "Input Dims": dims, "Input type": ["float"] * len(dims)})
        event("cuda_runtime", "cudaLaunchKernel", 1, 1, 100 * number + 1, 2, **launch)
        event("kernel", kernel, 0, stream, start, duration, stream=stream, **launch, **more)

    for i in range(3):
        op("aten::mm", "gemm", 10000 + 1000 * i, 20 + 5 * i, [[4, 8], [8, 2]], 7)
    op("record_param_comms", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", [12020, 12031][rank], 40 - 10 * rank,
       [], 9, **{"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024,
                 "Group size": 2, "dtype": "Float", "Process Group Name": "0",
                 "Process Group Ranks": "[0, 1]"})
    return {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}


for threads in 256, 512:
    for rank in 0, 1:
        folder = "%s/sweep/%dthread/nccl_28channels/torch_profiler/rank%d" % (sys.argv[1], threads, rank)
        os.makedirs(folder)
        with open(folder + "/trace_rank_%d.json" % rank, "w") as file:
            json.dump(trace(rank), file)
PYTHON
sweep=$WORK/sweep
run=$sweep/256thread/nccl_28channels
equal() { # FOLDER: the databases in it equal the CSVs.
    python3 "$SOURCE/tests/unit/trace/sheets/databases.py" "$1" >"$WORK/checked" 2>&1 ||
        die "$1: $(tail -n 1 "$WORK/checked")"
}
query() { # DATABASE SQL: prints its rows.
    python3 -c 'import sqlite3, sys
for row in sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True).execute(sys.argv[2]): print(row)' "$@"
}
answers() { # ROW DATABASE SQL: this is the only row.
    [ "$(query "$2" "$3")" = "$1" ] || die "$2: $3: $(query "$2" "$3")"
}

# Every verb that writes sheets.
both="--formats csv,sqlite"
trace() {
    # shellcheck disable=SC2086 # words
    succeeds trace "$@" $both
}
trace report "$SOURCE/tests/recorded/traces/llama_train.json.gz" --out "$WORK/recorded"
trace report "$run" --out "$WORK/report"
mkdir "$WORK/batch"
cp "$run"/torch_profiler/rank*/*.json "$WORK/batch"
trace report -b "$WORK/batch" -f trace --all-kernels
trace collectives "$run" --out "$WORK/collectives"
trace gemm "$run" --out "$WORK/gemm"
trace variance "$run" --out "$WORK/variance"
trace timestamps "$run" --out "$WORK/variance"
trace overlap "$run" --out "$WORK/variance"
set -- "$WORK"/report/256thread/individual_reports/*_csvs
trace compare "$1" "$2" --out "$WORK/compare"
count=$(find "$WORK/compare/compare_csvs" -name '*.csv' | wc -l)
[ "$(cat "$stdout")" = "written   $WORK/compare/compare.sqlite: $count tables
written   $WORK/compare/compare_csvs/: $count CSVs" ] || die "trace compare prints $(cat "$stdout")"
for folder in recorded report batch collectives gemm variance compare; do equal "$WORK/$folder"; done
trace pipeline "$sweep" --without plots,merge --out "$WORK/pipeline"
equal "$WORK/pipeline"
[ ! -e "$WORK/pipeline/tracelens_analysis/256thread/individual_reports/perf_28ch_rank0.xlsx" ] ||
    die "a workbook with --formats csv,sqlite"

# The views: rank 0 hides 10 of 40 µs, rank 1 none of 30.
one=$WORK/report/256thread/individual_reports/perf_28ch_rank0.sqlite
exposed='SELECT rank, round(exposed_ms * 1000), round(communication_ms * 1000) FROM exposed_communication'
answers '(0, 30.0, 40.0)' "$one" "$exposed"
set -- "$WORK"/batch/*.sqlite
answers "(0, 30.0, 40.0)
(1, 30.0, 30.0)" "$1" "$exposed"
answers "('gemm', 75.0, 3, 30.0)
('ncclDevKernel_AllReduce_Sum_f32_RING_LL', 40.0, 1, 40.0)" "$one" \
    'SELECT kernel, time_us, calls, longest_us FROM top_kernels'
answers "('gemm', 150.0, 6, 30.0)
('ncclDevKernel_AllReduce_Sum_f32_RING_LL', 70.0, 2, 40.0)" "$1" \
    'SELECT kernel, time_us, calls, longest_us FROM top_kernels'
answers "(0, 'allreduce', '0', 1, 40.0, 40.0)
(1, 'allreduce', '0', 1, 30.0, 30.0)" "$WORK"/collectives/256thread/collective_reports/*.sqlite \
    'SELECT * FROM collective_time'

# A trace without the number of its rank has that of its name, also in a pipeline.
mkdir "$WORK/named"
sed 's/"distributedInfo": {[^}]*}, //' "$run/torch_profiler/rank0/trace_rank_0.json" \
    >"$WORK/named/x_rank5.json"
trace report "$WORK/named/x_rank5.json" --out "$WORK/named/report"
trace pipeline "$WORK/named" --without merge,plots,collectives,variance --out "$WORK/named/out"
for base in report/x_rank5 out/tracelens_analysis/individual_reports/perf_rank5; do
    base=$WORK/named/$base
    answers '(5, 30.0, 40.0)' "$base.sqlite" "$exposed"
    answers '(5,)' "$base.sqlite" 'SELECT rank FROM nccl_summary_long'
done

# Units, and numbers as numbers.
unit="SELECT unit FROM column_list WHERE sheet = 'kernel_summary' AND \"column\" ="
answers "('us',)" "$one" "$unit 'Kernel duration (µs)_sum'"
answers "('%',)" "$one" "$unit 'Percent of total time (%)'"
answers "(None,)" "$one" "$unit 'Kernel duration (µs)_count'"
answers "('integer', 'real', 'text')" "$one" 'SELECT DISTINCT typeof("param: M"),
    typeof("Kernel Time (µs)_sum"), typeof(name) FROM GEMM'

# The same input gives the same bytes.
succeeds trace report "$run" --out "$WORK/again" --format sqlite
cmp "$one" "$WORK/again/256thread/individual_reports/perf_28ch_rank0.sqlite" || die "other bytes"
[ "$(find "$WORK/again" -type f | grep -vc 'sqlite$')" = 0 ] || die "more than databases"

# A full disk leaves the old file; 8 are 4 KiB.
rank0=$run/torch_profiler/rank0/trace_rank_0.json
mkdir "$WORK/full"
echo old >"$WORK/full/trace_rank_0.sqlite"
cp "$rank0" "$WORK/trace_rank_0.json"
ends_with 1 sh -c 'ulimit -f 8; exec "$0" trace report "$@"' "$GENTABLES" "$WORK/trace_rank_0.json" \
    --out "$WORK/full" --formats sqlite
one_line 'trace_rank_0.sqlite: cannot be written: File too large; the old file is unchanged'
[ "$(cat "$WORK/full/"*)" = old ] || die "the old file is gone"

# Wrong use, and a program without SQLite, which reads no trace.
rejects 'formats: "pdf" is not one of csv, xlsx, sqlite' trace report "$rank0" --out "$WORK/bad" --formats pdf
rejects 'formats: "xlsx" is not one of csv, sqlite' trace variance "$run" --out "$WORK/bad" --formats xlsx
rejects 'sqlite: databases are not read; give the folder of CSVs beside it' trace compare "$one" "$one" \
    --out "$WORK/bad"
parts=$(dirname "$GENTABLES")/..
mkdir -p "$WORK/bare/bin" "$WORK/bare/lib"
cp "$GENTABLES" "$WORK/bare/bin"
ln -s "$(realpath "$parts/share")" "$WORK/bare/share"
cp -R "$parts/lib/gentables" "$WORK/bare/lib/gentables"
rm "$WORK/bare/lib/gentables/core/sqlite.so"
without='built without SQLite and writes no databases; install it .* use --formats csv'
for verb in report collectives gemm variance pipeline; do
    ends_in_one_line 2 "$without" "$WORK/bare/bin/gentables" trace "$verb" "$WORK/bad.json" \
        --out "$WORK/bad" --formats sqlite
done
ends_in_one_line 2 "$without" "$WORK/bare/bin/gentables" trace report -b "$WORK/bad.json" --formats sqlite
[ ! -e "$WORK/bad" ] || die "output of a refused command"
