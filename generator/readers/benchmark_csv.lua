-- Benchmark CSV (TensorRT-LLM's generations B to D, its --benchmark mode, ours) as records; see rows/rows.h.
-- If all files of an import are benchmark files, rows/regroup.lua reads them instead.
local fail = require "base.fail"
local rows = require "core.rows"

return function(source)
  local records = fail.unless(rows.records(source.path))
  for _, record in ipairs(records) do record.samples = record.samples or 0 end
  return { rows = records, no_time = {}, facts = {} }
end
