-- The sheet unified_perf_summary: every GPU event but communication once, under the most specific op.
local families = require "trace.ops.families"
local grouping = require "trace.ops.grouping"
local perf_model = require "trace.ops.perf_model"
local python_literals = require "codec.python_literals"
local sequences = require "base.sequences"

local columns = { "name", "op category", "process_name", "process_label", "thread_name", "Input Dims",
  "Input type", "Input Strides", "Concrete Inputs", "ex_UID", "operation_count", "total_duration_us",
  "mean_duration_us", "std_duration_us", "GFLOPS", "Data Moved (MB)", "FLOPS/Byte", "Compute Spec",
  "TB/s_mean", "TB/s_std", "TFLOPS/s_mean", "TFLOPS/s_std", "Kernel Time (µs)_mean", "Kernel Time (µs)_std",
  "Kernel Time (µs)_sum", "duration_us_median", "duration_us_min", "duration_us_max", "TB/s_median",
  "TB/s_min", "TB/s_max", "TFLOPS/s_median", "TFLOPS/s_min", "TFLOPS/s_max", "Kernel Time (µs)_median",
  "Kernel Time (µs)_min", "Kernel Time (µs)_max", "kernel_details_summary", "trunc_kernel_details",
  "perf_params", "has_perf_model", "Percentage (%)", "Cumulative Percentage (%)" }

-- The performance model of an op, or of its backward.
local function model_of(rank, selection, combos, combo)
  local name = combos.model_name[combo]
  if not families.op(name) or combos.kernel[combo] ~= "" then return nil end
  local is_backward = name ~= combos.name[combo]
  local evaluate = is_backward and perf_model.backward_of or perf_model.of
  local call = rank:call_of(selection, combos, combo)
  return (evaluate(families.op_of_call(name, call.dims), call))
end

local function name_of(combos, combo)
  if combos.kernel[combo] == "" then return combos.name[combo] end
  return ("%s->%s (Synthetic Op)"):format(combos.name[combo], combos.kernel[combo])
end

-- { 'name': value, … }
local function dictionary(params)
  local out = {}
  for i, param in ipairs(params) do
    out[i] = python_literals.text(param[1]) .. ": " .. python_literals.write(param[2])
  end
  return "{" .. table.concat(out, ", ") .. "}"
end

local function key_of(rank, combos, combo, category, perf)
  return table.concat({ combos.name[combo], combos.kernel[combo], category,
    rank:track(combos.track[combo]).key, combos.arguments[combo], perf and perf.spec or "" }, "\0")
end

-- The groups with their statistics: duration, time, TB/s, TFLOP/s.
local function measured(selection, map, count, perf_models)
  local flops, bytes = grouping.rates(perf_models)
  local groups = selection:group(map, count,
    { { "duration" }, { "time" }, { "time", bytes }, { "time", flops } })
  return groups, groups[1], groups[2], groups[3], groups[4]
end

local function row_of(rank, combos, combo, category, perf, groups, group, whole, brief)
  local duration, time, bandwidth, speed = groups[1], groups[2], groups[3], groups[4]
  local cell = grouping.cell
  local row = grouping.row():add(name_of(combos, combo), category)
  row:add(table.unpack(rank:track(combos.track[combo]), 1, 3))
  row:add(rank:arguments(combos.arguments[combo])):add(groups.uid[group], groups.count[group])
  row:add(duration.sum[group], cell(duration.mean[group]), cell(duration.deviation[group]))
  local bytes = perf and perf.bytes
  row:add(perf and perf.flops / 1e9, bytes and bytes / 2 ^ 20)
  row:add(bytes and bytes > 0 and perf.flops / bytes or nil, perf and perf.spec)
  for _, values in ipairs { bandwidth, speed, time } do
    row:add(cell(values.mean[group]), cell(values.deviation[group]))
  end
  row:add(time.sum[group])
  for _, values in ipairs { duration, bandwidth, speed, time } do
    row:add(cell(values.median[group]), cell(values.min[group]), cell(values.max[group]))
  end
  return row:add(whole, brief,perf and dictionary(perf.params), perf and "True" or "False")
end

return {
  make = function(rank)
    local gpu = rank:gpu()
    local selection, combos = rank:select("unified")
    local perf_models, categories = {}, {}
    for combo = 1, #combos.name do
      perf_models[combo] = model_of(rank, selection, combos, combo)
      categories[combo] = rank:category(combos, combo)
    end
    local map, count, firsts = grouping.by(#combos.name, function(combo)
      return key_of(rank, combos, combo, categories[combo], perf_models[combo])
    end)
    local groups, _, time = measured(selection, map, count, perf_models)
    local whole, brief = selection:details(map, count)
    local total, up_to, rows = grouping.total(time.sum), 0, {}
    for _, group in ipairs(grouping.order(time.sum, groups.uid, count)) do
      local combo = firsts[group]
      local row = row_of(rank, combos, combo, categories[combo], perf_models[combo], groups, group,
        whole[group], brief[group])
      up_to = up_to + time.sum[group]
      row:add(grouping.percent(time.sum[group], total), grouping.percent(up_to, total))
      if gpu then
        row:add(grouping.roofline(gpu, perf_models[combo], grouping.cell(time.mean[group])))
      end
      rows[#rows + 1] = row
    end
    return { { name = "unified_perf_summary", rows = rows,
      columns = sequences.join { columns, gpu and grouping.roofline_columns or {} } } }
  end,
}
