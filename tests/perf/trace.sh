#!/bin/sh
# The time of the reports of traces as whole processes, and their peak memory: prints figures, judges none.
#
#   GENTABLES_DATA=DIR sh tests/perf/trace.sh [GENTABLES [one|own|big|sweep...]]
#
# GENTABLES: default build/bin/gentables; needs python3 and, below /tmp or $TMPDIR, 6 GB. The inputs are
# derived from one real trace by the scripts of DIR/tools: one: 61 MB, 225,618 events; big: 1 GB; sweep: 16 of
# 61 MB; and own: 61 MB that gentables workload writes, with many more collectives. Beside each figure is the
# time of a widely used analyser, or of the scripts around it, for a set of that size on two cores (-: not
# measured). Each figure is the least of 5 runs, of big and sweep of 2.
. "$(dirname -- "$0")/lib.sh"
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- one own big sweep
data=${GENTABLES_DATA:?is the folder of the real inputs}

# report NAME RUNS SECONDS MEGABYTES COMMAND...: prints the least wall and processor time and the peak memory
# of its runs, and the factor by which it is faster than SECONDS.
report() {
    name=$1 runs=$2 seconds=$3 megabytes=$4
    shift 4
    least_of_all "$runs" "$@" | awk -v name="$name" -v seconds="$seconds" -v megabytes="$megabytes" '{
        printf "  %-36s %7.3f s, %7.3f s on all cores, %6.0f MB", name, $1, $2, $3
        printf "   known: %5s s, %6s MB: %.0f times\n", seconds, megabytes, seconds / $1 }'
}

base=$data/traces/mi300_resnet_rank0of8.json.gz
python3 "$data/tools/make_big.py" "$base" "$work/one.json" 4
for what in "$@"; do
    case $what in
    one)
        echo "one trace of $(du -m "$work/one.json" | cut -f1) MB"
        report "report, CSV" 5 8.0 816 "$gentables" trace report "$work/one.json" --out "$work/out" --csv
        report "report, CSV and xlsx" 5 8.0 816 "$gentables" trace report "$work/one.json" --out "$work/out"
        ;;
    own)
        printf '%s\n' 'return { name = "long", tokens = 16, steps = 360, warm_up = 1, dtype = "float32",' \
            'layers = { { name = "layer", copies = 40, gemms = { { name = "g", n = 32, k = 32 } } } },' \
            'gradients = { collective = "allreduce", bucket_bytes = 4096 } }' >"$work/long.lua"
        "$gentables" workload run --backend host -f "$work/long.lua" -p 2 -c 1 -t 1 \
            --trace "$work/own_%r.json" >"$work/said"
        echo "one trace of our own of $(du -m "$work/own_0.json" | cut -f1) MB"
        report "report, CSV" 5 8.0 816 "$gentables" trace report "$work/own_0.json" --out "$work/out" --csv
        report "the same, --no-collectives" 5 8.0 816 "$gentables" trace report "$work/own_0.json" --out \
            "$work/out" --csv --no-collectives
        ;;
    big)
        python3 "$data/tools/make_big.py" "$base" "$work/big.json" 66
        echo "one trace of $(du -m "$work/big.json" | cut -f1) MB"
        report "report, CSV and xlsx" 2 129 11776 "$gentables" trace report "$work/big.json" --out "$work/out"
        rm "$work/big.json"
        ;;
    sweep)
        python3 "$data/tools/make_sweep.py" "$work/one.json" "$work/sweep" --threads 256,512 --channels 28 \
            --ranks 8 --inject-nccl 400
        echo "a sweep of $(du -sm "$work/sweep" | cut -f1) MB"
        report "pipeline" 2 220 - "$gentables" trace pipeline "$work/sweep" --out "$work/out"
        report "merge of 8 ranks" 2 16 962 "$gentables" trace merge \
            "$work/sweep/256thread/nccl_28channels/torch_profiler" -o "$work/out.json"
        mkdir "$work/batch"
        for rank in 0 1 2 3 4 5 6 7; do
            ln "$work/sweep/256thread/nccl_28channels/torch_profiler/rank$rank"/*.json \
                "$work/batch/rank_$rank.json"
        done
        report "batch report of 8 ranks" 2 32.7 1050 "$gentables" trace report -b "$work/batch" -f rank_ \
            -o "$work/out.xlsx" --xlsx
        ;;
    *) echo "no such input: $what; valid: one, own, big, sweep" >&2 && exit 2 ;;
    esac
done
