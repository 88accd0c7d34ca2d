-- Jobs that read profiler traces.
local json = require "fuzz.structure.json"
local small_trace = require "small_trace"

local files = { ["in/run/rank0.json"] = small_trace(0), ["in/run/rank1.json"] = small_trace(1) }
local first, second = "in/run/rank0.json", "in/run/rank1.json"

local list = {
  { "report", "trace", "report", first, "--out", "out/reports" },
  { "report of a run", "trace", "report", "in/run", "--out", "out/reports", "--csv", "--jobs", "1" },
  { "merge", "trace", "merge", first, second, "-o", "out/m.json" },
  { "collectives", "trace", "collectives", "in/run", "--out", "out/collectives" },
  { "gemm", "trace", "gemm", "in/run", "--out", "out/gemm" },
  { "overlap", "trace", "overlap", "in/run", "--out", "out/overlap" },
  { "variance", "trace", "variance", "in/run", "--out", "out/variance" },
  { "timestamps", "trace", "timestamps", "in/run", "--out", "out/timestamps", "--all" },
  { "compare", "trace", "compare", first, second, "--out", "out/compare" },
}
for _, row in ipairs(list) do row.partial = true end

for _, metric in ipairs { "step_time", "kernel_time", "communication_overlap", "load_imbalance" } do
  list[#list + 1] = { metric, "metric", metric, "--trace", first, "--trace", second, "--json",
  documented = true }
end

for _, row in ipairs(list) do row.files, row.targets, row.mutate = files, { first }, json.mutate end
return list
