#!/bin/sh
# What the workloads promise on the host, as ratios of one run: the small one's overlapped step over its
# serial one (at most 1.05), what is hidden of the communication of the mixture of experts (at least 0.6), by
# each way to wait, and what tracing costs (below 2 %).
#
# usage: tests/perf/workload.sh BUILD [RANKS]
#   medians of 20 interleaved rounds, with their 95 % intervals. Nothing fails on a time.
set -eu
build=${1:?usage: workload.sh BUILD [RANKS]}
ranks=${2:-2}
printf '%-7s %-6s %-7s %26s %26s %26s\n' workload wait by 'overlapped / serial' hidden 'tracing (%)'
for line in 'small futex own' 'small yield own' 'dense futex own' 'moe futex own' 'moe yield own' \
    'moe futex mpi' 'moe spin own'; do
    # shellcheck disable=SC2086
    set -- $line
    "$build/bin/gentables" workload run -f "$1" -p "$ranks" --wait "$2" --transport "$3" --json \
        --steps "${STEPS:-20}" --patience "${PATIENCE:-120}" >"${TMPDIR:-/tmp}/workload.$$" || continue
    # shellcheck disable=SC2016
    "$build/bin/gentables" lua /dev/stdin "${TMPDIR:-/tmp}/workload.$$" "$@" <<'END'
local ratios = require("json").decode(require("core.file").read(arg[1])).ratios
local function show(name, scale, format)
  local ratio = ratios[name]
  return (format .. " (" .. format .. " to " .. format .. ")"):format(ratio.median * scale, ratio.low * scale,
    ratio.high * scale)
end
print(("%-7s %-6s %-7s %26s %26s %26s"):format(arg[2], arg[3], arg[4],
  show("overlapped_to_serial", 1, "%.3f"), show("hidden", 1, "%.2f"), show("tracing", 100, "%.1f")))
END
    rm -f "${TMPDIR:-/tmp}/workload.$$"
done
