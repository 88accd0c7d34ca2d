#!/bin/sh
# How long the replay of a real training step takes: the 137 shapes of one rank that make 99% of its GEMMs'
# time, about 830 GFLOP a pass. Prints the wall time, the samples, and the time of one pass; fails on nothing.
#
#   GENTABLES_DATA=DIR tests/perf/replay.sh [BUILD]
#
# The mark is 60 s on two cores, with five warm and five cold samples each.
set -eu
gentables=${1:-build}/bin/gentables
trace=${GENTABLES_DATA:?names the folder of real inputs}/traces/sampled_rank-0.json.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
began=$(date +%s.%N)
"$gentables" replay "$trace" --device host --out "$work" --csv
ended=$(date +%s.%N)
cat >"$work/sum.lua" <<'LUA'
local path, began, ended = ...
local csv = require "csv"
local pass, timed, fewest, long = 0, 0, math.huge, 0
local rows = assert(csv.read(path)).rows
for _, row in ipairs(rows) do
  local warm, cold = tonumber(row["warm samples"]), tonumber(row["cold samples"])
  if warm then
    pass = pass + tonumber(row["warm median (us)"]) / 1e6
    timed = timed + 1
    local is_long = row.note:find("more than 1 s", 1, true) ~= nil
    if is_long then long = long + 1 else fewest = math.min(fewest, warm, cold) end
  end
end
print(("%d of %d ops timed in %.1f s; one pass %.2f s; at least %d samples of each kind; %d calls above 1 s")
  :format(timed, #rows, ended - began, pass, fewest, long))
LUA
"$gentables" lua "$work/sum.lua" "$work/node_replay_report_csvs/gemm_node_replay.csv" "$began" "$ended"
