-- Which matrix products and convolutions of a run mattered: by kernel time over all ranks, until their share
-- of all of their kind reaches 99%, the one that crosses it included.
--
--   replay_ops.collect(rank) -> what choose needs of a rank
--   replay_ops.choose({ what collect gave of each rank... }) -> { gemm = { op... }, conv = { op... },
--     devices, multiprocessors (of each; nil: not told, or not the same), notes, is_traced }
--   replay_ops.nothing(files, chosen) -> what is wrong where nothing was chosen of these { path }
--
-- An op: { name, request, reason (why it has none), params, count, sum, mean, share (cumulative), uid }.
local families = require "trace.families"
local grouping = require "trace.grouping"
local perf_model = require "trace.perf_model"
local pool = require "trace.batch_sheets.pool"
local python = require "trace.python"
local request = require "replay.request"

local replay_ops = { field = "replay" }

local SHARE = 0.99

-- The sheets' words for the families that are replayed; backward convolutions are not.
local kinds = { gemm = "gemm", convolution = "conv" }

-- ---- one rank ------------------------------------------------------------------------------------------

-- Parameters as cells: texts and numbers.
local function cells_of(params)
  local out = {}
  for _, param in ipairs(params) do
    local value = param[2]
    if value ~= python.none and type(value) ~= "number" and type(value) ~= "string" then
      value = python.write(value)
    end
    out[#out + 1] = { name = param[1], value = value ~= python.none and value or nil }
  end
  return out
end

local function texts_of(cells)
  local out = {}
  for i, cell in ipairs(cells) do out[i] = ("%s=%s"):format(cell.name, cell.value) end
  return out
end

-- Whether a kernel's name is of AMD's libraries: where a trace does not name its device, this tells.
local function is_amd(kernels)
  for _, name in ipairs(kernels) do
    if name:find("Cijk_", 1, true) or name:find("miopen", 1, true) then return true end
  end
  return false
end

local function count_up(counts, why, by) counts[why] = (counts[why] or 0) + by end

-- The op of a combo, or nil: it is none that is replayed, or tells too little, which is counted.
local function op_of(rank, selection, combos, combo, left_out)
  local op = families.op(combos.name[combo])
  local kind = op and kinds[op.family]
  if not kind then return nil end
  local call = rank:call(selection, combos, combo)
  local model, why = perf_model.of(op, call)
  if not model then
    count_up(left_out, ("%s: %s"):format(op.name, why), combos.count[combo])
    return nil
  end
  local one, reason = request.of(op, call, model)
  local cells = cells_of(model.params)
  local told = one and request.line(one, "") or table.concat(texts_of(cells), " ")
  return { kind = kind, name = op.name, request = one, reason = reason, params = cells, flops = model.flops,
    is_amd = is_amd(call.kernels()), key = op.name .. "\0" .. told }
end

function replay_ops.collect(rank)
  local selection, combos = rank:select("modelled")
  local found, left_out, backward = {}, {}, 0
  for combo = 1, #combos.name do
    found[combo] = op_of(rank, selection, combos, combo, left_out)
    if combos.name[combo] == "aten::convolution_backward" then backward = backward + combos.count[combo] end
  end
  local map, count, firsts = grouping.by(#combos.name, function(combo)
    return found[combo] and found[combo].key
  end)
  local times, list = selection:group(map, count, { { "time" } })[1], {}
  for group = 1, count do
    local op = found[firsts[group]]
    op.time = { count = math.tointeger(times.count[group]), sum = times.sum[group],
      mean = grouping.cell(times.mean[group]), min = grouping.cell(times.min[group]),
      max = grouping.cell(times.max[group]), deviation = grouping.cell(times.deviation[group]) }
    list[group] = op
  end
  local info = rank.trace:info()
  return { ops = list, left_out = left_out, backward = backward, device = info.device_name,
    multiprocessors = info.multiprocessors }
end

-- No sheet of the batch report is made from it.
function replay_ops.make() return {} end

-- ---- all ranks -----------------------------------------------------------------------------------------

-- The ops of a kind over all ranks, those that mattered first, and none of the others.
local function chosen(entries, kind)
  local all, total = {}, 0.0
  for _, entry in ipairs(entries) do
    local op, times = entry.rows[1], {}
    if op.kind == kind then
      for i, row in ipairs(entry.rows) do times[i] = row.time end
      op.time = pool.together(times)
      total = total + op.time.sum
      all[#all + 1] = op
    end
  end
  pool.sort(all, function(op) return op.time.sum end)
  local out, up_to = {}, 0.0
  for _, op in ipairs(all) do
    if up_to >= SHARE * total or op.time.sum <= 0 then break end
    up_to = up_to + op.time.sum
    op.share = up_to / total
    out[#out + 1] = op
  end
  return out
end

local function distinct_devices(lists)
  local out, seen = {}, {}
  for _, list in ipairs(lists) do
    local name = list.device
    if name and not seen[name] then
      seen[name] = true
      out[#out + 1] = name
    end
  end
  return out
end

-- What all ranks say, or nil.
local function multiprocessors_of(lists)
  local first = lists[1] and lists[1].multiprocessors
  for _, list in ipairs(lists) do
    if list.multiprocessors ~= first then return nil end
  end
  return first
end

-- What stands in no row: counted over ranks.
local function notes_of(lists)
  local counts, order, out, backward = {}, {}, {}, 0
  for _, list in ipairs(lists) do
    backward = backward + list.backward
    for why, count in pairs(list.left_out) do
      if not counts[why] then order[#order + 1] = why end
      count_up(counts, why, count)
    end
  end
  table.sort(order)
  for _, why in ipairs(order) do out[#out + 1] = ("%d ops left out: %s"):format(counts[why], why) end
  if backward > 0 then
    out[#out + 1] = ("%d ops left out: aten::convolution_backward is not replayed"):format(backward)
  end
  return out
end

function replay_ops.choose(lists)
  local ops = {}
  for i, list in ipairs(lists) do ops[i] = list.ops end
  local entries = pool.by_key(ops, function(op) return op.key end)
  return { gemm = chosen(entries, "gemm"), conv = chosen(entries, "conv"), devices = distinct_devices(lists),
    multiprocessors = multiprocessors_of(lists), notes = notes_of(lists), is_traced = true }
end

function replay_ops.nothing(files, found)
  local where = files[1].path .. (#files > 1 and (" and %d more"):format(#files - 1) or "")
  local note = found.notes[1] and (" (%s)"):format(found.notes[1]) or ""
  return ("%s: no GEMM or convolution with shapes and kernels%s, so nothing to replay; profiling with "
    .. "record_shapes would be right"):format(where, note)
end

return replay_ops
