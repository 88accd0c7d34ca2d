-- communicationOverhead: compares the kernels of two runs, without (--csv1) and with (--csv2) load balancing
-- of experts (EPLB), as text and as kernel_comparison_results.json, which other tools read too.
--
-- profile/kernel_kinds.lua sorts kernels by name. The JSON lacks figures of a kind that a run does not have
-- (its counts and sums are 0); only figures of both runs are compared.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local kernel_kinds = require "profile.kernel_kinds"
local kernel_summary = require "profile.kernel_summary"
local fail_as_documented = require "serving.documented_failure"
local sequences = require "base.sequences"

local in_ms, in_us = kernel_kinds.in_ms, kernel_kinds.in_us
local ratio, max_min_ratio = kernel_kinds.ratio, kernel_kinds.max_min_ratio

local results_name = "kernel_comparison_results.json"

local runs = { { label = "EPLB OFF", option = "csv1" }, { label = "EPLB ON", option = "csv2" } }

-- A verdict holds if the share of improved figures, of all compared ones, is above its percentage.
local verdicts = { { percent = 60, text = "significant benefit" }, { percent = 40, text = "mixed results" } }
local otherwise = "overhead may outweigh benefits"

local nothing = {}

local function top_json(top)
  return json.array(sequences.map(top, function(kernel)
    return json.object { { "name", kernel.name }, { "total_ms", in_ms(kernel.total_ns) },
      { "pct", kernel.time_pct }, { "instances", kernel.instances } }
  end))
end

local function collectives_json(kinds)
  return json.object(sequences.map(kernel_kinds.collectives, function(name)
    local sum = kinds.sums[name]
    return { name, sum and json.object { { "total_ms", in_ms(sum.total_ns) },
      { "time_pct", sum.time_pct }, { "instances", sum.instances }, { "avg_us", in_us(sum.avg_ns) },
      { "min_us", in_us(sum.min_ns) }, { "max_us", in_us(sum.max_ns) } } }
  end))
end

-- One run of the results: the documented keys, then ours.
local function side_json(label, kinds)
  local sums = kinds.sums
  local moe, nccl, attention = sums.moe, sums.nccl, sums.attention
  local fused, to_all = kinds.fused_moe or nothing, sums.AllToAll or nothing
  local all_reduce = sums.AllReduce or nothing
  return json.object {
    { "label", label },
    { "moe_kernels", moe.kernels },
    { "moe_total_time_ms", in_ms(moe.total_ns) },
    { "moe_time_pct", moe.time_pct },
    { "moe_instances", moe.instances },
    { "fused_moe_total_ms", in_ms(fused.total_ns) },
    { "fused_moe_avg_us", in_us(fused.avg_ns) },
    { "fused_moe_med_us", in_us(fused.med_ns) },
    { "fused_moe_min_us", in_us(fused.min_ns) },
    { "fused_moe_max_us", in_us(fused.max_ns) },
    { "fused_moe_std_us", in_us(fused.std_ns) },
    { "fused_moe_instances", fused.instances },
    { "fused_moe_cv", ratio(fused.std_ns, fused.avg_ns) },
    { "fused_moe_max_min_ratio", max_min_ratio(fused) },
    { "fused_moe_med_mean_ratio", ratio(fused.med_ns, fused.avg_ns) },
    { "nccl_kernels", nccl.kernels },
    { "nccl_total_time_ms", in_ms(nccl.total_ns) },
    { "nccl_time_pct", nccl.time_pct },
    { "nccl_instances", nccl.instances },
    { "alltoall_total_ms", in_ms(to_all.total_ns) },
    { "alltoall_instances", to_all.instances },
    { "alltoall_avg_us", in_us(to_all.avg_ns) },
    { "alltoall_min_us", in_us(to_all.min_ns) },
    { "alltoall_max_us", in_us(to_all.max_ns) },
    { "alltoall_max_min_ratio", max_min_ratio(to_all) },
    { "allreduce_total_ms", in_ms(all_reduce.total_ns) },
    { "allreduce_instances", all_reduce.instances },
    { "attention_total_ms", in_ms(attention.total_ns) },
    { "attention_time_pct", attention.time_pct },
    { "top5_kernels", top_json(kinds.top) },
    { "total_kernel_time_ms", in_ms(sums.all.total_ns) },
    { "total_kernel_instances", sums.all.instances },
    { "fused_moe_kernels", kinds.fused_moe_kernels },
    { "communication_compute_ratio", kernel_kinds.communication_per_compute(kinds) },
    { "collectives", collectives_json(kinds) },
  }
end

-- The figures that are compared; less is better. `value` gets the kinds of a run; it returns nil if the run
-- has none.
local function of_fused(name, get)
  return { name = "fused_moe " .. name, value = function(kinds) return get(kinds.fused_moe or nothing) end }
end

local function of_sum(name, kind, get)
  local function value(kinds)
    local sum = kinds.sums[kind]
    return sum and sum.kernels > 0 and get(sum) or nil
  end
  return { name = name, value = value }
end

local function total_ms(kernels) return in_ms(kernels.total_ns) end

local compared = {
  of_fused("total (ms)", total_ms),
  of_fused("average (us)", function(kernel) return in_us(kernel.avg_ns) end),
  of_fused("maximum (us)", function(kernel) return in_us(kernel.max_ns) end),
  of_fused("std. deviation (us)", function(kernel) return in_us(kernel.std_ns) end),
  of_fused("CV (deviation/average)", function(kernel) return ratio(kernel.std_ns, kernel.avg_ns) end),
  of_fused("maximum/minimum", max_min_ratio),
  of_sum("NCCL total (ms)", "nccl", total_ms),
  of_sum("AllToAll total (ms)", "AllToAll", total_ms),
  of_sum("AllToAll maximum/minimum", "AllToAll", max_min_ratio),
  of_sum("AllReduce total (ms)", "AllReduce", total_ms),
}

local function judge(before, after)
  if after == before then return "unchanged" end
  return after < before and "improved" or "worse"
end

local function verdict_of(counts)
  if counts.total == 0 then return "nothing to compare: they share no kernel of MoE or NCCL" end
  for _, verdict in ipairs(verdicts) do
    if counts.improved * 100 > counts.total * verdict.percent then return verdict.text end
  end
  return otherwise
end

-- { rows = { { name, before, after, result }... }, counts, verdict } of the figures that both runs have.
local function compare(baseline, eplb)
  local rows, counts = {}, { total = 0, improved = 0, unchanged = 0, worse = 0 }
  for _, figure in ipairs(compared) do
    local before, after = figure.value(baseline), figure.value(eplb)
    if before and after then
      local result = judge(before, after)
      rows[#rows + 1] = { name = figure.name, before = before, after = after, result = result }
      counts.total, counts[result] = counts.total + 1, counts[result] + 1
    end
  end
  return { rows = rows, counts = counts, verdict = verdict_of(counts) }
end

local function comparison_json(comparison)
  local figures = sequences.map(comparison.rows, function(row)
    return json.object { { "name", row.name }, { "baseline", row.before }, { "eplb", row.after },
      { "result", row.result } }
  end)
  local counts = comparison.counts
  return json.object { { "improved_count", counts.improved }, { "total_count", counts.total },
    { "unchanged_count", counts.unchanged }, { "worse_count", counts.worse },
    { "verdict", comparison.verdict }, { "figures", json.array(figures) } }
end

local function read(path)
  if not file.exists(path) then
    fail_as_documented("Error: CSV file not found: " .. path,
      "%s does not exist; give a kernel summary", path)
  end
  return kernel_kinds.of(kernel_summary.read(path))
end

local function write(folder, text)
  fail.unless_done(file.make_folder(folder))
  fail.unless_done(file.write(folder:gsub("/*$", "", 1) .. "/" .. results_name, text))
end

return {
  run = function(args)
    local sides = sequences.map(runs, function(run)
      return { label = run.label, path = args[run.option], kinds = read(args[run.option]) }
    end)
    local comparison = compare(sides[1].kinds, sides[2].kinds)
    local results = json.encode(json.object {
      { "baseline", side_json(sides[1].label, sides[1].kinds) },
      { "eplb", side_json(sides[2].label, sides[2].kinds) },
      { "comparison", comparison_json(comparison) },
    }) .. "\n"
    write(args.out or ".", results)
    local text = args.json and results or require("serving.communication_overhead_text")(sides, comparison)
    io.stdout:write(text)
  end,
}
