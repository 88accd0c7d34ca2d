-- The sheet grouped_breakdown: the GPU's time by purpose, in seconds, the mean over ranks. Each GPU event is
-- of one group: the first row below that matches the name of its kernel or its op, in lower case.
local communication = require "lists.communication"
local families = require "trace.ops.families"
local sequences = require "base.sequences"

local rules = {
  { group = "Comms", communicates = true },
  { group = "Memcpy", kernel = { "^memcpy", "^memory_copy_", "^__amd_rocclr_copybuffer" } },
  { group = "Triton", kernel = { "^triton" }, op = { "^triton" } },
  { group = "MoE", op = { "moe" }, kernel = { "moe" } },
  { group = "Attention", op = { "attention", "attn", "flash" },
    kernel = { "fmha", "flash", "attention", "attn", "batchdecode", "batchprefill", "singledecode",
      "singleprefill", "mergestate" } },
  { group = "Conv", op = { "conv" } },
  { group = "GEMM", category = "GEMM", op = { "::linear", "matmul", "gemm" } },
  { group = "Norm", op = { "norm" } },
  { group = "UpSample", op = { "upsample" } },
  { group = "Pad", op = { "_pad", "::pad" } },
  { group = "Concat", op = { "::cat$", "concat", "::stack" }, kernel = { "catarraybatchedcopy" } },
  { group = "Conv", kernel = { "conv", "im2col", "winograd" } },
  { group = "GEMM", kernel = { "gemm", "^cijk_", "^nvjet", "cutlass" } },
  { group = "Norm", kernel = { "norm" } },
  { group = "Elemwise", category = "elementwise", kernel = { "elementwise" } },
}

-- In the order of the sheet; then Total.
local groups = { "Attention", "GEMM", "Conv", "Norm", "UpSample", "Pad", "Elemwise", "Concat", "MoE",
  "Triton", "Comms", "Memcpy", "Other" }

local function holds_any(text, patterns)
  return sequences.any(patterns or {}, function(pattern) return text:find(pattern) end)
end

-- A name in lower case. FlashInfer's kernels and ops are not all attention, as the name of the library is.
local function words_of(name) return (name:lower():gsub("flashinfer", "")) end

-- The group of a kernel (its name) with this parent (the name of the op that launched it, or "").
local function group_of(parent, first_kernel, kernel)
  local op, name = words_of(parent), words_of(kernel)
  local category = parent ~= "" and families.category(parent, first_kernel) or nil
  for _, rule in ipairs(rules) do
    local fits = rule.category ~= nil and rule.category == category
      or rule.communicates and communication.of_kernel(kernel)
    if fits or holds_any(op, rule.op) or holds_any(name, rule.kernel) then return rule.group end
  end
  return "Other"
end

return {
  field = "breakdown",
  group_of = group_of,

  collect = function(rank)
    local out = {}
    local function add(group, time_us) out[group] = (out[group] or 0.0) + time_us end
    for _, row in ipairs(rank.analysis:kernel_rows()) do
      add(group_of(row.parent, row.first_kernel, row.kernel), row.sum)
    end
    for _, row in ipairs(rank.analysis:event_rows()) do
      if row.category == "gpu_memcpy" then add("Memcpy", row.sum) end
      if row.category == "gpu_memset" then add("Other", row.sum) end
    end
    return out
  end,

  make = function(ranks)
    local sheet, total = { name = "grouped_breakdown", columns = { "Group", "Time (s)" }, rows = {} }, 0.0
    for i, group in ipairs(groups) do
      local sum = 0.0
      for _, rank in ipairs(ranks) do sum = sum + (rank.breakdown[group] or 0.0) end
      sheet.rows[i] = { group, sum / #ranks / 1e6 }
      total = total + sheet.rows[i][2]
    end
    sheet.rows[#sheet.rows + 1] = { "Total", total }
    return { sheet }
  end,
}
