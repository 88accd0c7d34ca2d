#!/bin/sh
# The time of the replay of a real training step: the 137 shapes of one rank that make 99% of its GEMMs' time,
# about 830 GFLOP a pass. Prints the wall time, the samples, the time of one pass, and at last `ok` or `short`
# of the mark: 60 s on two cores, with five warm and five cold samples each, or three of a call above 1 s. No
# time makes it fail; exit code 1 if the replay did not run.
#
#   GENTABLES_DATA=DIR tests/perf/replay.sh [BUILD]
set -eu
gentables=${1:-build}/bin/gentables
trace=${GENTABLES_DATA:?names the folder of real inputs}/traces/sampled_rank-0.json.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
began=$(date +%s.%N)
"$gentables" replay "$trace" --device host --out "$work" --csv
ended=$(date +%s.%N)
cat >"$work/sum.lua" <<'LUA'
local path, seconds = arg[1], arg[3] - arg[2]
local pass, timed, fewest, fewest_long, long = 0, 0, math.huge, math.huge, 0
local rows = assert(require("codec.csv").read(path)).rows
for _, row in ipairs(rows) do
  local warm, cold = tonumber(row["warm samples"]), tonumber(row["cold samples"])
  if warm then
    pass = pass + tonumber(row["warm median (us)"]) / 1e6
    timed = timed + 1
    if row.note:find("more than 1 s", 1, true) then
      long, fewest_long = long + 1, math.min(fewest_long, warm, cold)
    else
      fewest = math.min(fewest, warm, cold)
    end
  end
end
print(("%d of %d ops timed in %.1f s; one pass %.2f s; at least %d samples of each kind; %d calls above 1 s")
  :format(timed, #rows, seconds, pass, fewest, long))
local kept = timed == #rows and seconds <= 60 and fewest >= 5 and fewest_long >= 3
print(kept and "ok" or "short of 60 s, all ops, and five samples of each kind")
LUA
"$gentables" lua "$work/sum.lua" "$work/node_replay_report_csvs/gemm_node_replay.csv" "$began" "$ended"
