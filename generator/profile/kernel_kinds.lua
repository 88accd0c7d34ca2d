-- Kinds of kernels, by their names, and their sums: MoE, fused MoE, each collective of NCCL, attention. It
-- reads no files; kernel_summary.lua does.
local communication = require "lists.communication"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local kernel_kinds = {}

-- The listed operations of NCCL's kernels; "other" has all others.
kernel_kinds.collectives = { "AllReduce", "ReduceScatter", "AllGather", "AllToAll", "SendRecv", "Broadcast",
  "Reduce", "other" }

local top_count = 5

local words = { moe = { "moe", "expert" }, attention = { "attention", "flash", "attn" } }

-- Whether one of the words is in a text.
local function holds_any(text, list)
  return sequences.any(list, function(word) return text:find(word, 1, true) end)
end

local is_listed = sequences.set(kernel_kinds.collectives)

local function collective_of(kernel)
  local name = communication.operation_of_kernel(kernel)
  return is_listed[name] and name or "other"
end

-- The sum of the kernels of a kind. The average is that of averages, weighted by the calls, because averages
-- have more digits than totals.
local function new_sum()
  return { kernels = 0, total_ns = 0, instances = 0, weighted_ns = 0 }
end

local function add(sum, kernel)
  sum.kernels = sum.kernels + 1
  sum.total_ns = sum.total_ns + kernel.total_ns
  sum.instances = sum.instances + kernel.instances
  sum.weighted_ns = sum.weighted_ns + kernel.avg_ns * kernel.instances
  sum.avg_ns = sum.kernels == 1 and kernel.avg_ns or sum.weighted_ns / sum.instances
  sum.min_ns = math.min(sum.min_ns or kernel.min_ns, kernel.min_ns)
  sum.max_ns = math.max(sum.max_ns or kernel.max_ns, kernel.max_ns)
end

-- Adds a kernel to all of its kinds.
local function classify(kinds, kernel)
  local sums, lower = kinds.sums, kernel.name:lower()
  add(sums.all, kernel)
  if holds_any(lower, words.moe) then add(sums.moe, kernel) end
  if lower:find("fused_moe", 1, true) then
    kinds.fused_moe = kinds.fused_moe or kernel
    kinds.fused_moe_kernels = kinds.fused_moe_kernels + 1
  end
  local row = communication.of_kernel(kernel.name)
  if row and row.library == "NCCL" then
    local name = collective_of(kernel.name)
    sums[name] = sums[name] or new_sum()
    add(sums[name], kernel)
    add(sums.nccl, kernel)
  end
  -- Writing to the key-value cache in flash attention's layout is not attention.
  if holds_any(lower, words.attention) and not lower:find("reshape_and_cache_flash", 1, true) then
    add(sums.attention, kernel)
  end
end

-- The largest totals of a summary; equal ones in the order of the file.
local function largest(kernels)
  local top = ordering.falling(table.move(kernels, 1, #kernels, 1, {}), function(one) return one.total_ns end)
  return table.move(top, 1, math.min(top_count, #top), 1, {})
end

-- The facts of a run with this kernel_summary:
--   sums                 by kind: all, moe, attention, nccl, and NCCL's collectives, by name
--   fused_moe            the first kernel of that kind, or nil
--   fused_moe_kernels    their number
--   top                  the largest kernels
function kernel_kinds.of(summary)
  local sums = { all = new_sum(), moe = new_sum(), nccl = new_sum(), attention = new_sum() }
  local kinds = { sums = sums, fused_moe_kernels = 0, top = largest(summary.kernels) }
  for _, kernel in ipairs(summary.kernels) do classify(kinds, kernel) end
  for _, sum in pairs(sums) do sum.time_pct = sum.total_ns / summary.total_ns * 100 end
  return kinds
end

function kernel_kinds.in_ms(ns) return ns and ns / 1e6 end

function kernel_kinds.in_us(ns) return ns and ns / 1e3 end

-- a / b, or nil if one is unknown or b is 0.
function kernel_kinds.ratio(a, b)
  if not a or not b or b == 0 then return nil end
  return a / b
end

function kernel_kinds.max_min_ratio(kernel) return kernel_kinds.ratio(kernel.max_ns, kernel.min_ns) end

function kernel_kinds.communication_per_compute(kinds)
  return kinds.fused_moe and kernel_kinds.ratio(kinds.sums.nccl.total_ns, kinds.fused_moe.total_ns)
end

return kernel_kinds
