#!/bin/sh
# Whether the workloads meet their marks on the host, as ratios of one run: the small one's overlapped step is
# at most 1.05 of its serial one, at least 0.6 of the communication of the mixture of experts is hidden if its
# threads sleep or yield, and tracing costs less than 2 % of a step. The other rows have no mark: they show
# the effect of another way to wait, or of MPI.
#
# usage: workload.sh BUILD [RANKS]
#   medians of 20 (STEPS) interleaved rounds, with their 95 % intervals. Last: ok, or `short` with the missed
#   marks. No time makes it fail; exit code 1 if a workload did not run.
set -eu
build=${1:?usage: workload.sh BUILD [RANKS]}
ranks=${2:-2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/row.lua" <<'END'
local path, workload, wait, by, marks, shorts = table.unpack(arg)
local ratios = require("codec.json").decode(require("core.file").read(path)).ratios
local kept = { overlapped_to_serial = function(median) return median <= 1.05 end,
  hidden = function(median) return median >= 0.6 end, tracing = function(median) return median < 0.02 end }
local function show(name, scale, format)
  local ratio = ratios[name]
  local verdict = " "
  if marks:find(name, 1, true) then
    verdict = kept[name](ratio.median) and "+" or "-"
    if verdict == "-" then
      local file = assert(io.open(shorts, "a"))
      file:write(("%s, %s, %s: %s %.3f\n"):format(workload, wait, by, name, ratio.median))
      file:close()
    end
  end
  return (format .. " (" .. format .. " to " .. format .. ") %s"):format(ratio.median * scale,
    ratio.low * scale, ratio.high * scale, verdict)
end
print(("%-7s %-6s %-5s %26s %26s %26s"):format(workload, wait, by, show("overlapped_to_serial", 1, "%.3f"),
  show("hidden", 1, "%.2f"), show("tracing", 100, "%.1f")))
END

code=0
printf '%-7s %-6s %-5s %26s %26s %26s\n' workload wait by 'overlapped / serial  ' 'hidden  ' 'tracing (%)  '
while read -r workload wait by marks; do
    if ! "$build/bin/gentables" workload run --backend host -f "$workload" -p "$ranks" --wait "$wait" \
        --transport "$by" --json \
        --steps "${STEPS:-20}" --patience "${PATIENCE:-120}" >"$work/run" </dev/null; then
        code=1
        continue
    fi
    "$build/bin/gentables" lua "$work/row.lua" "$work/run" "$workload" "$wait" "$by" "$marks" "$work/short"
done <<'END'
small futex own overlapped_to_serial,tracing
small yield own overlapped_to_serial,tracing
dense futex own tracing
moe futex own hidden,tracing
moe yield own hidden,tracing
moe futex mpi none
moe spin own none
END
echo "+ keeps its mark (overlapped / serial at most 1.05, hidden at least 0.6, tracing below 2 %), - does not"
if [ -e "$work/short" ]; then
    sed 's/^/short: /' "$work/short"
elif [ "$code" = 0 ]; then
    echo ok
fi
exit "$code"
