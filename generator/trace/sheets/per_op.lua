-- A sheet for each family of ops with performance models: work, bytes and speed, by name and parameters. Its
-- rows are all such ops, also those that launched nothing; of families with `outermost` (families.lua) only
-- the outermost.
local families = require "trace.ops.families"
local grouping = require "trace.ops.grouping"
local ordering = require "base.ordering"
local perf_model = require "trace.ops.perf_model"

local per_op = {}

local rates = { "mean", "median", "deviation", "min", "max" }
local titles = { deviation = "std" }

-- The performance models of combos, the sheet of each, and the reasons for combos without a model: { [reason]
-- = number of ops }. If the model returns no reason, or sheet_of(op) no sheet, the combo is not counted.
local function perf_models_of(rank, selection, combos, evaluate, sheet_of)
  local perf_models, sheets, left_out = {}, {}, {}
  for combo, name in ipairs(combos.name) do
    local call = rank:call_of(selection, combos, combo)
    local op = families.op_of_call(name, call.dims)
    local perf, why
    sheets[combo] = sheet_of(op)
    if sheets[combo] then perf, why = evaluate(op, call) end
    if perf then
      perf_models[combo] = perf
    elseif why then
      local reason = ("%s: %s"):format(name, why)
      left_out[reason] = (left_out[reason] or 0) + combos.count[combo]
    end
  end
  return perf_models, sheets, left_out
end

-- Groups of combos, and all facts of each: a table from which rows are written.
local function grouped(selection, combos, perf_models, sheets)
  local map, count, firsts = grouping.by(#combos.name, function(combo)
    local perf = perf_models[combo]
    return perf and perf_model.key(sheets[combo], combos.name[combo], perf)
  end)
  local flops, bytes = grouping.rates(perf_models)
  local groups = selection:group(map, count, { { "time" }, { "time", flops }, { "time", bytes } })
  local whole, brief = selection:details(map, count)
  return { map = map, count = count, firsts = firsts, groups = groups, whole = whole, brief = brief }
end

-- The names of all parameters of a sheet, in order of first appearance.
local function parameters(numbers, at, perf_models)
  local names = {}
  for _, group in ipairs(numbers) do
    for _, param in ipairs(perf_models[at.firsts[group]].params) do ordering.add_new(names, { param[1] }) end
  end
  return names
end

local function columns_of(params, gpu)
  local columns = { "name" }
  local function add(...)
    for i = 1, select("#", ...) do columns[#columns + 1] = (select(i, ...)) end
  end
  for _, name in ipairs(params) do add("param: " .. name) end
  add("GFLOPS_first", "Data Moved (MB)_first", "FLOPS/Byte_first")
  for _, unit in ipairs { "TB/s_", "TFLOPS/s_" } do
    for _, rate in ipairs(rates) do add(unit .. (titles[rate] or rate)) end
  end
  add("process_name_first", "process_label_first", "thread_name_first", "Compute Spec",
    "kernel_details__summarize_kernel_stats", "trunc_kernel_details", "Input Dims_first", "Input type_first",
    "Input Strides_first", "Concrete Inputs_first")
  for _, rate in ipairs(rates) do add("Kernel Time (µs)_" .. (titles[rate] or rate)) end
  add("Kernel Time (µs)_sum", "name_count", "UID_first")
  if gpu then add(table.unpack(grouping.roofline_columns)) end
  return columns
end

local function row_of(rank, combos, at, perf_models, params, group)
  local combo, groups = at.firsts[group], at.groups
  local perf = perf_models[combo]
  local row = grouping.row():add(combos.name[combo])
  local cells = perf_model.cells(perf.params)
  for _, name in ipairs(params) do row:add(perf_model.cell(cells, name)) end
  local bytes = perf.bytes
  row:add(perf.flops / 1e9, bytes and bytes / 2 ^ 20, bytes and bytes > 0 and perf.flops / bytes or nil)
  for _, spec in ipairs { 3, 2 } do
    for _, rate in ipairs(rates) do row:add(grouping.cell(groups[spec][rate][group])) end
  end
  row:add(table.unpack(rank:track(combos.track[combo]), 1, 3))
  row:add(perf.spec, at.whole[group], at.brief[group])
  row:add(rank:arguments(combos.arguments[combo], true))
  for _, rate in ipairs(rates) do row:add(grouping.cell(groups[1][rate][group])) end
  row:add(groups[1].sum[group], groups.count[group], groups.uid[group])
  if at.gpu then row:add(grouping.roofline(at.gpu, perf, grouping.cell(groups[1].mean[group]))) end
  return row
end

-- Appends each sheet that lists a group to `list`; sheets: the one of each combo.
local function append(list, rank, combos, at, perf_models, sheets)
  local order, numbers = grouping.order(at.groups[1].sum, at.groups.uid, at.count), {}
  for group = 1, at.count do numbers[group] = group end
  for _, of_sheet in ipairs(ordering.groups(numbers, function(group) return sheets[at.firsts[group]] end)) do
    local name = of_sheet.key
    local params = parameters(of_sheet, at, perf_models)
    local sheet = { name = name, columns = columns_of(params, at.gpu), rows = {}, groups = {} }
    for _, group in ipairs(order) do
      if sheets[at.firsts[group]] == name then
        sheet.rows[#sheet.rows + 1] = row_of(rank, combos, at, perf_models, params, group)
        table.insert(sheet.groups, group)
      end
    end
    list[#list + 1] = sheet
  end
end

local function add_counts(to, from)
  for reason, count in pairs(from) do to[reason] = (to[reason] or 0) + count end
end

-- The number of ops with a performance model that ran nothing on the GPU.
local function count_idle(combos, perf_models)
  local count = 0
  for combo in pairs(perf_models) do
    if combos.kernels[combo] == 0 then count = count + combos.count[combo] end
  end
  return count
end

-- The sheets of one selection. options: only = a sheet's name (nil: all); gpu = of rank:gpu(), for the
-- columns of its roofline (nil: without). Also returns the reasons for ops
-- without a model ({ [reason] = number of ops }); selection and map, for the instances of a row (sheet.groups
-- has the group of each row); and the number of ops that ran nothing on the GPU.
function per_op.of(rank, kind, evaluate, sheet_of, options)
  local selection, combos = rank:select(kind)
  local function wanted(op)
    local sheet = sheet_of(op)
    return (options.only == nil or sheet == options.only) and sheet or nil
  end
  local perf_models, sheets, left_out = perf_models_of(rank, selection, combos, evaluate, wanted)
  local at = grouped(selection, combos, perf_models, sheets)
  at.gpu = options.gpu
  local list = {}
  append(list, rank, combos, at, perf_models, sheets)
  return list, left_out, selection, at.map, count_idle(combos, perf_models)
end

local function forward_sheet(op) return families.family(op).sheet end
local function backward_sheet(op) return families.family(op).backward_sheet end

per_op.forward_sheet = forward_sheet

local function add_left_out(notes, left_out, idle, nested)
  for _, reason in ipairs(ordering.sorted_keys(left_out)) do
    notes[#notes + 1] = { "left out", left_out[reason], nil, reason }
  end
  if idle > 0 then
    notes[#notes + 1] = { "without GPU events", idle, nil,
      "ops that launched nothing count with a time of 0 in the sheets of their families" }
  end
  if nested > 0 then
    notes[#notes + 1] = { "nested ops", nested, nil, "ops below another one of their sheet, as div in div: "
      .. "both are listed, so the times of that sheet add up to more than the GPU's time" }
  end
end

-- The sheets of all ops and of their backward.
function per_op.make(rank, _, notes)
  local options = { gpu = rank:gpu() }
  local list, left_out, _, _, idle = per_op.of(rank, "modelled", perf_model.of, forward_sheet, options)
  local backward, backward_left_out = per_op.of(rank, "backward", perf_model.backward_of, backward_sheet,
    options)
  table.move(backward, 1, #backward, #list + 1, list)
  add_counts(left_out, backward_left_out)
  table.sort(list, ordering.by("name"))
  local _, combos = rank:select("modelled")
  add_left_out(notes, left_out, idle, combos.nested)
  return list
end

return per_op
