-- Single ops, for analyses of instances instead of sums: the rows of the sheet GEMM, each with its instances.
local per_op = require "trace.sheets.per_op"
local perf_model = require "trace.ops.perf_model"
local sequences = require "base.sequences"

local gemm_instances = {}

-- The numbers of texts in a list of distinct ones, `texts`, which grows.
local function numbers_of(list, texts, number_of)
  return sequences.map(list, function(text)
    if not number_of[text] then
      texts[#texts + 1] = text
      number_of[text] = #texts
    end
    return number_of[text]
  end)
end

-- The part (trace/runs/trace_source.lua): { columns, rows (of the sheet GEMM), kernels (their distinct
-- names), instances = for each row the columns { uid, start, stop, time, kernel (number in kernels) } }.
gemm_instances.part = { field = "gemms", collect = function(rank)
  local list, _, selection, map = per_op.of(rank, "modelled", perf_model.of, per_op.forward_sheet,
    { only = "GEMM" })
  local sheet = list[1] or { columns = {}, rows = {}, groups = {} }
  local kernels, number_of, instances = {}, {}, {}
  for row, group in ipairs(sheet.groups) do
    instances[row] = selection:instances(map, group)
    instances[row].kernel = numbers_of(instances[row].kernel, kernels, number_of)
  end
  return { columns = sheet.columns, rows = sheet.rows, kernels = kernels, instances = instances }
end }

-- The GEMMs of a trace (trace/runs/trace_source.lua), by descending sum of their times: columns, rows (cells
-- as in the sheet GEMM), and instances(row) -> one table per instance that has GPU events, in order of the
-- file:
--   { uid, op, start_us, stop_us, time_us, longest_kernel }
-- start and stop: of its first and last GPU event; time: the union of them.
-- All times in µs as the trace counts them.
function gemm_instances.gemm(source)
  local found = source:get(gemm_instances.part)
  local function instances(row)
    local name, columns, out = found.rows[row][1], found.instances[row], {}
    for i, uid in ipairs(columns.uid) do
      out[i] = { uid = uid, op = name, start_us = columns.start[i], stop_us = columns.stop[i],
        time_us = columns.time[i], longest_kernel = found.kernels[columns.kernel[i]] }
    end
    return out
  end
  return { columns = found.columns, rows = found.rows, instances = instances }
end

return gemm_instances
