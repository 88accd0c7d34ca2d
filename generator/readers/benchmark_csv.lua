-- Benchmark CSV (TensorRT-LLM's generations B to D, its --benchmark mode, ours) as records; see rows/rows.h.
-- Where all files are such, import does not come by here: see rows/regroup.lua.
local fail = require "base.fail"
local rows = require "core.rows"

return function(source)
  local records = fail.unless(rows.records(source.path))
  for _, record in ipairs(records) do record.samples = record.samples or 0 end
  return { rows = records, no_time = {}, facts = {} }
end
