-- Traces of inference and training on an H200 (README.md here): the share of kernel time of ops with a
-- performance model; their rates, which must be possible on that GPU; FLOPs and bytes by hand.
local luaunit = require "luaunit"
local rank = require "trace.ops.rank"
local rank_report = require "trace.reports.rank_report"

local TIME, FLOPS = "Kernel Time (µs)_sum", "GFLOPS"

-- Limits of an H200: dense TFLOP/s by precision (NVIDIA's data sheet; fp32 as TF32, which GEMMs may use),
-- TB/s of its memory, bytes of its L2 cache, and a limit of that, which no data sheet has.
local TFLOPS = { bf16 = 989, fp16 = 989, fp8 = 1979, int8 = 1979, fp32 = 495, fp64 = 67 }
local MEMORY_TBPS, L2_TBPS, L2_BYTES = 4.8, 9.6, 60e6

-- The least share of kernel time with a model, in %. Without one are: aten::index, of which a trace has
-- neither indices nor result; asynchronous assertions; kernels of a CUDA graph, which no op launched.
local shares = { attention = 100, attention_backward = 100, gemms = 100, grouped_mm = 100,
  scaled_grouped_mm = 100, operators = 99.7, llama_train = 100, llama_compiled = 100, mamba2 = 100,
  mixtral = 97.5, graph_replay = 13, reduce_overhead = 0 }

-- { trace, op, text of its Input Dims, GFLOP, MB (2^20 bytes) }; two bytes an element where no width stands.
local rows = 2048 * 1024
local by_hand = {
  { "attention", "_scaled_dot_product_flash_attention", "((4, 32, 1024, 128), (4, 32, 1024, 128)",
    2 * 4 * 32 * 1024 ^ 2 * 256 / 2, 4 * 4 * 32 * 1024 * 128 * 2 },
  { "attention", "_scaled_dot_product_flash_attention", "((4, 32, 1024, 128), (4, 8, 1024, 128)",
    2 * 4 * 32 * 1024 ^ 2 * 256 / 2, (2 * 32 + 2 * 8) * 4 * 1024 * 128 * 2 },
  { "attention", "_scaled_dot_product_efficient_attention", "((4, 32, 1, 128)", 2 * 4 * 32 * 1024 * 256,
    (2 + 2 * 1024) * 4 * 32 * 128 * 2 },
  { "attention", "_scaled_dot_product_cudnn_attention", "((4, 32, 1, 128)", 2 * 4 * 32 * 1024 * 256,
    (2 + 2 * 1024) * 4 * 32 * 128 * 2 },
  { "attention_backward", "_scaled_dot_product_flash_attention_backward", "", 2 * 2 * 16 * 1024 ^ 2 * 320 / 2,
    7 * 2 * 16 * 1024 * 64 * 2 },
  { "attention_backward", "_scaled_dot_product_efficient_attention_backward", "",
    2 * 2 * 16 * 1024 ^ 2 * 256 / 2, 7 * 2 * 16 * 1024 * 64 * 2 },
  { "attention_backward", "_scaled_dot_product_cudnn_attention_backward", "", 2 * 2 * 16 * 1024 ^ 2 * 256 / 2,
    7 * 2 * 16 * 1024 * 64 * 2 },
  { "gemms", "_scaled_mm", "((2048, 4096), (4096, 4096), ()", 2 * 2048 * 4096 ^ 2,
    2048 * 4096 + 4096 ^ 2 + 2048 * 4096 * 2 },
  { "gemms", "_int_mm", "", 2 * 2048 * 4096 ^ 2, 2048 * 4096 + 4096 ^ 2 + 2048 * 4096 * 4 },
  { "grouped_mm", "_grouped_mm", "", 2 * 4096 * 2048 * 4096,
    (4096 * 2048 + 8 * 2048 * 4096 + 4096 * 4096) * 2 },
  { "scaled_grouped_mm", "_scaled_grouped_mm", "", 2 * 4096 * 2048 * 4096,
    4096 * 2048 + 8 * 2048 * 4096 + 4096 * 4096 * 2 },
  { "mixtral", "_grouped_mm", "((4096, 1024), (8, 1024, 3584)", 2 * 4096 * 1024 * 3584,
    (4096 * 1024 + 8 * 1024 * 3584 + 4096 * 3584) * 2 },
  { "mixtral", "_grouped_mm", "((8, 1024), (8, 1024, 3584)", 2 * 8 * 1024 * 3584,
    (8 * 1024 + 8 * 1024 * 3584 + 8 * 3584) * 2 },
  { "operators", "_fused_rms_norm", "", 8 * 1024 * (4096 * 2 + 2) + 2 * 8 * 1024 * 4096,
    (2 * 8 * 1024 * 4096 + 4096) * 2 },
  { "operators", "_log_softmax", "", 5 * 2048 * 32000, 2 * 2048 * 32000 * 4 },
  { "operators", "topk", "", 8 * 1024 * 64, 8 * 1024 * (64 * 2 + 8 * (2 + 8)) },
  { "operators", "index_select", "", 0, 8192 * 4096 * 2 * 2 + 8192 * 8 },
  { "llama_train", "embedding_dense_backward", "", rows, (8192 * 1024 + 3 * rows) * 2 + 2048 * 8 },
  { "llama_train", "nll_loss_backward", "", 2048, 2048 * 8192 * 4 + 2048 * 12 },
  { "llama_train", "cat", "(((4, 16, 512, 32), (4, 16, 512, 32))", 0, 2 * 4 * 16 * 512 * 64 * 2 },
  { "llama_compiled", "triton_poi_fused__unsafe_view_mul_silu_9", "", 2048 * 2816, 2 * 2048 * 2816 * 2 },
  { "llama_compiled", "triton_red_fused__to_copy_add_embedding_mean_mul_pow_rsqrt_0", "", rows,
    2048 * 8 + (2 * rows + 1024) * 2 },
}

-- The rows of unified_perf_summary, as { [title] = cell }.
local made = {}
local function rows_of(name)
  if made[name] then return made[name] end
  local path = ("%s/tests/recorded/traces/%s.json.gz"):format(os.getenv "SOURCE", name)
  for _, sheet in ipairs((rank_report.sheets(assert(rank.open(path))))) do
    if sheet.name == "unified_perf_summary" then
      made[name] = {}
      for i, cells in ipairs(sheet.rows) do
        local row = {}
        for column, title in ipairs(sheet.columns) do row[title] = cells[column] end
        made[name][i] = row
      end
    end
  end
  return assert(made[name], name)
end

local function is_modelled(row) return row.has_perf_model == "True" end

local TestInference = {}

function TestInference.test_share_of_kernel_time_with_a_model()
  for name, least in pairs(shares) do
    local with, all = 0, 0
    for _, row in ipairs(rows_of(name)) do
      all = all + row[TIME]
      if is_modelled(row) then with = with + row[TIME] end
    end
    luaunit.assertTrue(100 * with / all >= least - 1e-9, ("%s: %.2f %%"):format(name, 100 * with / all))
  end
end

function TestInference.test_rates_are_possible()
  local count = 0
  for name in pairs(shares) do
    for _, row in ipairs(rows_of(name)) do
      if is_modelled(row) and row[TIME] > 0 then
        local text = ("%s %s %s: %s TFLOP/s, %s TB/s, %s MB"):format(name, row.name, row["Input Dims"],
          row["TFLOPS/s_max"], row["TB/s_max"], row["Data Moved (MB)"])
        local limit = TFLOPS[(row["Compute Spec"] or "bf16"):match("_(.*)") or "bf16"]
        luaunit.assertTrue(row["TFLOPS/s_max"] <= limit, text)
        local fits = (row["Data Moved (MB)"] or 0) * 2 ^ 20 <= L2_BYTES
        luaunit.assertTrue((row["TB/s_max"] or 0) <= (fits and L2_TBPS or MEMORY_TBPS), text)
        count = count + 1
      end
    end
  end
  luaunit.assertTrue(count > 400, count)
end

function TestInference.test_flops_and_bytes_are_those_of_the_shapes()
  for _, one in ipairs(by_hand) do
    local name = one[2]:find("^triton") and one[2] or "aten::" .. one[2]
    local found = 0
    for _, row in ipairs(rows_of(one[1])) do
      if row.name == name and (row["Input Dims"] or ""):find(one[3], 1, true) == 1 then
        luaunit.assertAlmostEquals(row[FLOPS] * 1e9, one[4], 1e-9 * one[4] + 1e-6, name .. one[3])
        luaunit.assertAlmostEquals(row["Data Moved (MB)"] * 2 ^ 20, one[5], 1e-9 * one[5], name .. one[3])
        found = found + 1
      end
    end
    luaunit.assertTrue(found > 0, one[1] .. ": no " .. name .. one[3])
  end
end

return require "suites" { { "TestInference", TestInference } }
