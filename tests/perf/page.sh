#!/bin/sh
# The page of trace pipeline for eight ranks: its size, the time to write it, and the time to open it as a
# multiple of that of a blank page: prints figures, judges none.
#
#   GENTABLES_DATA=DIR sh tests/perf/page.sh [GENTABLES]
#
# GENTABLES: default build/bin/gentables; needs python3 and chromium. The traces are derived from a real one
# by the scripts of DIR/tools: 8 ranks of 15 MB. Each time is the least of 7 runs of the browser, without a
# window.
. "$(dirname -- "$0")/lib.sh"
data=${GENTABLES_DATA:?is the folder of the real inputs}

python3 "$data/tools/make_big.py" "$data/traces/mi300_resnet_rank0of8.json.gz" "$work/one.json" 1
python3 "$data/tools/make_sweep.py" "$work/one.json" "$work/sweep" --threads 256 --channels 28 --ranks 8 \
    --inject-nccl 400
analysis=$work/made/tracelens_analysis
"$gentables" trace pipeline "$work/sweep" --out "$work/made" --csv --without merge plots >/dev/null
page=$analysis/overview.html
printf '<!DOCTYPE html><meta charset="utf-8"><title>blank</title>\n' >"$work/blank.html"

open_page() {
    chromium --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size=1280,800 \
        --screenshot="$work/page.png" "file://$1" 2>/dev/null
}
rewrite() {
    rm "$page"
    "$gentables" trace pipeline "$work/sweep" --out "$work/made" --csv --without merge plots
}
# Sets blank and opened: the least times of 7 runs of each, by turns, in microseconds.
open_both() {
    blank=999999999 opened=$blank
    for _ in 1 2 3 4 5 6 7; do
        time=$(least 1 open_page "$work/blank.html")
        [ "$time" -ge "$blank" ] || blank=$time
        time=$(least 1 open_page "$page")
        [ "$time" -ge "$opened" ] || opened=$time
    done
}
open_page "$work/blank.html" # makes the profile
open_both
written=$(least 3 rewrite)
again=$(least 3 "$gentables" trace pipeline "$work/sweep" --out "$work/made" --csv --without merge plots)
awk -v bytes="$(wc -c <"$page")" -v blank="$blank" -v opened="$opened" -v written="$written" \
    -v again="$again" 'BEGIN {
    printf "  the page of 8 ranks: %.3f MB\n", bytes / 1e6
    printf "  to write it, all else present: %.3f s, of which %.3f s without it\n", written / 1e6, again / 1e6
    printf "  to open it: %.2f s, a blank one %.2f s: %.2f x\n", opened / 1e6, blank / 1e6, opened / blank }'
