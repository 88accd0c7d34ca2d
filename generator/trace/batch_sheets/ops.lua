-- The sheets gemm, conv, attn, un_elemwise and bin_elemwise: ops by name and parameters, over all ranks;
-- times with and without the kernels that only move data.
local families = require "trace.ops.families"
local gpus = require "lists.gpus"
local grouping = require "trace.ops.grouping"
local ordering = require "base.ordering"
local perf_model = require "trace.ops.perf_model"
local pooled = require "trace.ops.pooled_statistics"
local sequences = require "base.sequences"

-- The families of ops in each sheet, by the names of their own sheets.
local batch_sheets = {
  { name = "gemm", of = { GEMM = true } },
  { name = "conv", of = { CONV_fwd = true, CONV_bwd = true } },
  { name = "attn", of = { SDPA_fwd = true, SDPA_bwd = true } },
  { name = "un_elemwise", of = { UnaryElementwise = true } },
  { name = "bin_elemwise", of = { BinaryElementwise = true } },
}

local selections = {
  { kind = "modelled", evaluate = perf_model.of, field = "sheet", suffix = "" },
  { kind = "backward", evaluate = perf_model.backward_of, field = "backward_sheet", suffix = "_bwd" },
}

-- The measured values of each instance, and their columns.
local measures = {
  { title = "TB/s", columns = { "mean", "deviation" } },
  { title = "TFLOPS/s", columns = { "mean", "deviation" } },
  { title = "Non-Data-Mov TFLOPS/s", columns = { "mean", "deviation" } },
  { title = "Kernel Time (µs)", columns = { "mean", "deviation", "sum" } },
  { title = "Non-Data-Mov Kernel Time (µs)", columns = { "mean", "deviation", "sum" } },
}
local titles = { deviation = "std" }
local TIME = 4 -- the index of the kernel time

-- The sheet that lists an op (a row of families.lua), or nil.
local function sheet_of(op, field)
  local own = families.family(op)[field]
  for _, sheet in ipairs(batch_sheets) do
    if own and sheet.of[own] then return sheet.name end
  end
end

-- ---- one rank ----------------------------------------------------------------------------------

local function statistics_at(columns, group)
  local out = { count = math.tointeger(columns.count[group]) or 0 }
  for _, name in ipairs { "sum", "mean", "deviation", "rounding", "min", "max" } do
    out[name] = grouping.cell(columns[name][group])
  end
  return out
end

local function collect_one(rank, how, out)
  local selection, combos = rank:select(how.kind)
  local perf_models, sheets_of, flops, bytes = {}, {}, {}, {}
  for combo, name in ipairs(combos.name) do
    local call = rank:call_of(selection, combos, combo)
    local op = families.op_of_call(name, call.dims)
    local sheet = sheet_of(op, how.field)
    local perf = sheet and how.evaluate(op, call)
    if perf then
      perf_models[combo], sheets_of[combo] = perf, sheet
      flops[combo], bytes[combo] = perf.flops / 1e6, perf.bytes and perf.bytes / 1e6
    end
  end
  local map, count, firsts = grouping.by(#combos.name, function(combo)
    local perf, name = perf_models[combo], combos.name[combo] .. how.suffix
    return perf and perf_model.key(sheets_of[combo], name, perf)
  end)
  local groups = selection:group(map, count, { { "time", bytes }, { "time", flops }, { "computing", flops },
    { "time" }, { "computing" } })
  for group = 1, count do
    local combo = firsts[group]
    local perf, measured = perf_models[combo], {}
    for i = 1, #measures do measured[i] = statistics_at(groups[i], group) end
    local name = combos.name[combo] .. how.suffix
    out[#out + 1] = { sheet = sheets_of[combo], name = name,
      key = perf_model.key(sheets_of[combo], name, perf), params = perf_model.cells(perf.params),
      flops = perf.flops, bytes = perf.bytes, spec = perf.spec,
      count = groups.count[group], uid = groups.uid[group], measured = measured }
  end
end

-- ---- all ranks ---------------------------------------------------------------------------------

local function columns_of(params, gpu)
  local columns = { "name" }
  local function add(...) columns[#columns + 1] = table.concat { ... } end
  for _, name in ipairs(params) do add("param: ", name) end
  add "GFLOPS_first"
  add "Data Moved (MB)_first"
  add "FLOPS/Byte_first"
  add "Compute Spec"
  for _, measure in ipairs(measures) do
    for _, column in ipairs(measure.columns) do add(measure.title, "_", titles[column] or column) end
  end
  add "name_count"
  add "UID_first"
  add "kernel_time_sum_cum_pct"
  for _, title in ipairs(gpu and grouping.roofline_columns or {}) do add(title) end
  return columns
end

-- The names of all parameters, in order of first appearance.
local function parameters(rows)
  local names = {}
  for _, row in ipairs(rows) do ordering.add_new(names, sequences.field(row.first.params, "name")) end
  return names
end

local function together(group)
  local row = { first = group[1], measured = {}, count = 0 }
  for _, one in ipairs(group) do row.count = row.count + one.count end
  for i = 1, #measures do
    row.measured[i] = pooled.together(sequences.map(group, function(one) return one.measured[i] end))
  end
  return row
end

local function cells_of(row, params)
  local first, cells = row.first, grouping.row():add(row.first.name)
  for _, name in ipairs(params) do cells:add(perf_model.cell(first.params, name)) end
  local bytes = first.bytes
  cells:add(first.flops / 1e9, bytes and bytes / 2 ^ 20, bytes and bytes > 0 and first.flops / bytes or nil)
  cells:add(first.spec)
  for i, measure in ipairs(measures) do
    for _, column in ipairs(measure.columns) do cells:add(row.measured[i][column]) end
  end
  return cells:add(row.count, first.uid)
end

local function make_one(name, groups, gpu)
  local rows, total, up_to = {}, 0.0, 0.0
  for i, group in ipairs(groups) do
    rows[i] = together(group)
    total = total + rows[i].measured[TIME].sum
  end
  ordering.falling(rows, function(row) return row.measured[TIME].sum end)
  local params = parameters(rows)
  local sheet = { name = name, columns = columns_of(params, gpu), rows = {},
    formats = { kernel_time_sum_cum_pct = "0.00%" }, units = { kernel_time_sum_cum_pct = "share" } }
  for i, row in ipairs(rows) do
    up_to = up_to + row.measured[TIME].sum
    sheet.rows[i] = cells_of(row, params):add(total > 0 and up_to / total or 0.0)
    if gpu then sheet.rows[i]:add(grouping.roofline(gpu, row.first, row.measured[TIME].mean)) end
  end
  return sheet
end

return {
  field = "ops",

  collect = function(rank)
    local out = {}
    for _, how in ipairs(selections) do collect_one(rank, how, out) end
    return out
  end,

  make = function(ranks)
    local gpu = gpus.of_ranks(sequences.field(ranks, "info"))
    local groups, out = pooled.by_key(sequences.field(ranks, "ops"), function(row) return row.key end), {}
    for i, sheet in ipairs(batch_sheets) do
      out[i] = make_one(sheet.name, sequences.filter(groups, function(group)
        return group[1].sheet == sheet.name
      end), gpu)
    end
    return out
  end,
}
