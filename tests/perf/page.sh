#!/bin/sh
# The page of trace pipeline for eight ranks: its size, the time to write it, and the time to open it as a
# multiple of that of a blank page: prints figures, judges none.
#
#   GENTABLES_DATA=DIR sh tests/perf/page.sh [GENTABLES [TURNS]]
#
# GENTABLES: default build/bin/gentables; needs python3 and chromium. The traces are derived from a real one
# by the scripts of DIR/tools: 8 ranks of 15 MB. The browser, without a window, opens the blank page and the
# page by turns, 15 unless TURNS has another number; the order changes with each turn. The figures are medians
# of the turns: of wall time, and of processor time, which other work disturbs less.
. "$(dirname -- "$0")/lib.sh"
data=${GENTABLES_DATA:?is the folder of the real inputs}

python3 "$data/tools/make_big.py" "$data/traces/mi300_resnet_rank0of8.json.gz" "$work/one.json" 1
python3 "$data/tools/make_sweep.py" "$work/one.json" "$work/sweep" --threads 256 --channels 28 --ranks 8 \
    --inject-nccl 400
analysis=$work/made/tracelens_analysis
"$gentables" trace pipeline "$work/sweep" --out "$work/made" --csv --without merge plots >/dev/null
page=$analysis/overview.html
printf '<!DOCTYPE html><meta charset="utf-8"><title>blank</title>\n' >"$work/blank.html"

rewrite() {
    rm "$page"
    "$gentables" trace pipeline "$work/sweep" --out "$work/made" --csv --without merge plots
}
written=$(least 3 rewrite)
again=$(least 3 "$gentables" trace pipeline "$work/sweep" --out "$work/made" --csv --without merge plots)
awk -v bytes="$(wc -c <"$page")" -v written="$written" -v again="$again" 'BEGIN {
    printf "  the page of 8 ranks: %.3f MB\n", bytes / 1e6
    printf "  to write it, all else present: %.3f s, of which", written / 1e6
    printf " %.3f s without it\n", again / 1e6 }'
python3 - "$work" "$work/blank.html" "$page" "${2:-15}" <<'END_OF_PROGRAM'
import resource, statistics, subprocess, sys, time
work, blank, page, turns = *sys.argv[1:4], int(sys.argv[4])
def processor():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
def open_page(path):
    begin, before = time.perf_counter(), processor()
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,800",
                    f"--user-data-dir={work}/profile", f"--screenshot={work}/page.png", f"file://{path}"],
                   stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin, processor() - before
open_page(blank) # makes the profile
times = {blank: [], page: []}
for turn in range(turns):
    for path in (blank, page) if turn % 2 == 0 else (page, blank):
        times[path].append(open_page(path))
for kind, name in enumerate(("wall time", "processor time")):
    of_blank, of_page = [[one[kind] for one in times[path]] for path in (blank, page)]
    ratios = sorted(b / a for a, b in zip(of_blank, of_page))
    blank_time, page_time = statistics.median(of_blank), statistics.median(of_page)
    print(f"  to open it, {name}, {turns} turns: {page_time:.2f} s, a blank one {blank_time:.2f} s: "
          f"{page_time / blank_time:.2f} x, single turns {ratios[0]:.2f} to {ratios[-1]:.2f} x")
END_OF_PROGRAM
