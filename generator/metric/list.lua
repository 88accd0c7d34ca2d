-- The list of metrics: one row each; help, --list and the verb's dispatch are made from it.
--
-- How to add a metric: a file in generator/metric/ and a row here:
--   name     what the command line calls it
--   unit     of the number that it prints; "" where it prints more than a number
--   takes    what it reads: "trace" (folders: --trace), "summaries" (two kernel summaries: --csv1, --csv2),
--            "activity" (profiler files: --trace, a torch trace or an nsys SQLite export each)
--   module   the file, which returns { run = function(args, row) ... end }: prints the metric, returns the
--            exit code (nil is 0)
--   better   "less" or "more", where one of them is better
--   formula  in words that one can compute by hand
--   source   where the formula or the figure comes from
--   key      serving metrics: what it is called in the result files
--   label    serving metrics: how errors and pictures call it
local list = {}

local vllm = "result files of vLLM's serving benchmark"

local function mean_of(key) return "unweighted mean over the result files of " .. key end

local function serving(name, unit, key, better, label)
  return { name = name, unit = unit, takes = "trace", module = "metric.serving", key = key,
    better = better, label = label or name, formula = mean_of(key), source = vllm }
end

list.metrics = {
  serving("TTFT", "ms", "mean_ttft_ms", "less"),
  serving("median_TTFT", "ms", "median_ttft_ms", "less"),
  serving("p99_TTFT", "ms", "p99_ttft_ms", "less"),
  serving("TPOT", "ms", "mean_tpot_ms", "less"),
  serving("median_TPOT", "ms", "median_tpot_ms", "less"),
  serving("p99_TPOT", "ms", "p99_tpot_ms", "less"),
  serving("ITL", "ms", "mean_itl_ms", "less"),
  serving("median_ITL", "ms", "median_itl_ms", "less"),
  serving("p99_ITL", "ms", "p99_itl_ms", "less"),
  serving("request_throughput", "requests/s", "request_throughput", "more", "Request throughput"),
  serving("output_throughput", "tokens/s", "output_throughput", "more", "Output throughput"),
  serving("input_throughput", "tokens/s", "input_throughput", "more", "Input throughput"),
  { name = "token_to_expert_assignment", unit = "", takes = "trace", module = "metric.experts",
    formula = "load per expert over all gate logs, its entropy -sum p log2 p (normalised: / log2 of the " ..
      "experts), coefficient of variation (population deviation / mean), largest / smallest load that is " ..
      "not 0; the coefficient of variation per step and per layer too",
    source = "gate logs of a mixture-of-experts model: gates_logs_*/gate_logs_LAYER.json" },
  { name = "communicationOverhead", unit = "", takes = "summaries", module = "metric.communication_overhead",
    formula = "two kernel summaries: NCCL and MoE times, NCCL total / fused_moe total, figures that improved",
    source = "CUDA GPU kernel summaries of Nsight Systems: GUI exports, nsys stats CSVs, SQLite exports" },
}

-- The row of a metric, or nil.
function list.find(name)
  for _, row in ipairs(list.metrics) do
    if row.name == name then return row end
  end
end

-- All names, in the order of the list.
function list.names()
  local names = {}
  for i, row in ipairs(list.metrics) do names[i] = row.name end
  return names
end

return list
