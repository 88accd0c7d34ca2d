#!/bin/sh
# The speed of reading benchmark files, in megabytes for each second of CPU time: prints figures, judges none.
#
#   sh tests/perf/read.sh [GENTABLES]         default: build/bin/gentables; needs python3
#
# TensorRT-LLM's columns (make_rows.py, 41 MB), and ours, made from them by gentables import. Each figure is
# the best of some runs.
. "$(dirname -- "$0")/lib.sh"

cat >"$work/read.lua" <<'END'
local rows = require "core.rows"
local bytes, best = 0, math.huge
for _, path in ipairs(arg) do
  local file <close> = assert(io.open(path))
  bytes = bytes + file:seek("end")
end
for _ = 1, 9 do
  local begin = os.clock()
  assert(rows.read { table.unpack(arg) })
  best = math.min(best, os.clock() - begin)
  collectgarbage()
end
print(("%d MB: %d MB/s"):format(bytes // 1000000, bytes / best // 1000000))
END

python3 "$here/make_rows.py" "$work/theirs" large
"$gentables" import "$work"/theirs/*.csv --arch sm90 --out "$work/ours" >/dev/null
printf "TensorRT-LLM's columns, %s\n" "$("$gentables" lua "$work/read.lua" "$work"/theirs/*.csv)"
printf 'ours, %s\n' "$("$gentables" lua "$work/read.lua" "$work"/ours/*.csv)"
