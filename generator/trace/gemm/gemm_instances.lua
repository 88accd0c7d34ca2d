-- Single ops, for analyses of instances instead of sums: the rows of the sheet GEMM, each with its instances.
local per_op = require "trace.sheets.per_op"
local perf_model = require "trace.ops.perf_model"
local rank = require "trace.ops.rank"

local gemm_instances = {}

-- The GEMMs of an open trace, by descending sum of their times: columns, rows (cells as in the sheet GEMM),
-- and instances(row) → one table per instance that has GPU events, in order of the file:
--   { uid, op, start_us, stop_us, time_us, longest_kernel }
-- start and stop: of its first and last GPU event; time: the union of them.
-- All times in µs as the trace counts them.
function gemm_instances.gemm(trace)
  local list, _, selection, map = per_op.of(rank.of(trace), "modelled", perf_model.of, per_op.forward_sheet,
    "GEMM")
  local sheet = list[1] or { columns = {}, rows = {}, groups = {} }
  local function instances(row)
    local name, columns, out = sheet.rows[row][1], selection:instances(map, sheet.groups[row]), {}
    for i, uid in ipairs(columns.uid) do
      out[i] = { uid = uid, op = name, start_us = columns.start[i], stop_us = columns.stop[i],
        time_us = columns.time[i], longest_kernel = columns.kernel[i] }
    end
    return out
  end
  return { columns = sheet.columns, rows = sheet.rows, instances = instances }
end

return gemm_instances
