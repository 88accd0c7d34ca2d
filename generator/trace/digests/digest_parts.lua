-- The parts of a trace that its digest has (trace/runs/trace_source.lua): those of all results over ranks. A
-- sheet over ranks without an option (trace/reports/list.lua) is one of them without a change here.
local sequences = require "base.sequences"

local digest_parts = {}

-- A list of { field, collect }.
function digest_parts.list()
  local own = { require("trace.runs.trace_source").info_part, require "trace.runs.collective_events",
    require("trace.gemm.gemm_instances").part }
  return sequences.join { own, require("trace.reports.list").modules_over_ranks {} }
end

-- The values of parts of a rank (trace/ops/rank.lua): { [field] = value }.
function digest_parts.of(rank, parts)
  local values = {}
  for _, part in ipairs(parts) do values[part.field] = part.collect(rank) end
  return values
end

return digest_parts
