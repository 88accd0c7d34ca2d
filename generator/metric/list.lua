-- The list of metrics: one row each; help, --list and the verb's dispatch are made from it.
--
-- How to add a metric: a file in generator/metric/ and a row here:
--   name     its name on the command line
--   unit     of the number that it prints; "" if it prints more than one number
--   takes    its input: "trace" (folders: --trace), "summaries" (two kernel summaries: --csv1, --csv2),
--            "activity" (profiler files: --trace, a torch trace or an nsys SQLite export each)
--   module   the file, which returns { run = function(args, row) ... end }: prints the metric, returns the
--            exit code (nil is 0); metric/kernel_time.lua is a short example
--   better   "less" or "more": the better direction, if there is one
--   formula  in words, for a computation by hand
--   source   the origin of the formula or the figure
--   key      serving metrics: its name in the result files
--   label    serving metrics: its name in errors and pictures

local sequences = require "base.sequences"

local list = {}

local vllm = "result files of vLLM's serving benchmark"

local profiles = "torch-profiler traces, nsys SQLite exports"
local of_each_rank = profiles .. "; of several ranks the mean"
local traced_shapes = "torch-profiler traces with shapes"
local traced_bytes = "torch-profiler traces with the metadata of collectives"

-- A metric of GPU activity: its file has its name.
local function activity(name, unit, better, formula, source)
  return { name = name, unit = unit, takes = "activity", module = "metric." .. name, better = better,
    formula = formula, source = source or of_each_rank }
end

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
  activity("step_time", "ms", "less", "mean of the marks of steps on the host (ProfilerStep#N, NVTX step N)"),
  activity("total_time", "ms", "less", "last end - first start of kernels, copies and memsets"),
  activity("kernel_time", "ms", "less", "sum of the kernels' durations"),
  activity("communication_time", "ms", "less",
    "sum of the durations of kernels that communicate, by their names; --collectives FILE adds names"),
  activity("communication_fraction", "share", "less", "communication_time / kernel_time"),
  activity("communication_overlap", "share", "more",
    "time with communication and another kernel / time with communication"),
  activity("gpu_utilisation", "share", "more", "time with at least one kernel / total_time"),
  activity("dominant_kernel_share", "share", nil, "largest sum of one kernel name / kernel_time"),
  activity("moe_share", "share", nil, "sum of kernels with moe or expert in their name / kernel_time"),
  activity("mfu", "share", "more", "sum of 2*M*N*K over aten::mm, addmm, bmm, baddbmm, _scaled_mm / " ..
    "(total_time * --peak-tflops)", traced_shapes),
  activity("memory_bandwidth", "GB/s", "more",
    "bytes / time of the copies with known bytes; not of kernels"),
  activity("memory_bound_share", "share", nil, "time of kernels below the roofline's ridge / kernel_time",
    "roofline data; rejected without it"),
  activity("load_imbalance", "ratio", "less",
    "largest / smallest time with at least one kernel, over two or more ranks", profiles),
  activity("stragglers", "share", "less",
    "(largest - smallest) / largest communication_time, over two or more ranks", profiles),
  activity("collective_calls", "", nil, "kernels of each collective over all ranks, and their time",
    profiles),
  activity("collective_volume", "", nil,
    "bytes of each collective over all ranks: Out msg nelems of gathers, else In msg nelems, * size of dtype",
    traced_bytes),
  activity("collective_bandwidth", "", "more", "algbw = bytes / time, the shortest over the ranks; " ..
    "busbw = algbw * 2(n-1)/n (AllReduce), (n-1)/n (ReduceScatter, AllGather, AllToAll), 1 (else)",
    traced_bytes),
  activity("hockney", "", nil, "least squares of time = alpha + beta * bytes per collective and ranks, " ..
    "three or more sizes", traced_bytes),
}

-- The row of a metric, or nil.
function list.find(name) return sequences.named(list.metrics, name) end

-- All names, in the order of the list.
function list.names() return sequences.field(list.metrics, "name") end

return list
