-- The matrix products and convolutions of a run with the most kernel time over all ranks, until their share
-- of all of their kind reaches 99 %; the op that crosses 99 % is included.
--
--   chosen_ops.collect(rank) -> the input of choose from one rank
--   chosen_ops.choose({ the result of collect for each rank, with its path... }) -> { gemm = { op... },
--     conv = { op... }, devices, multiprocessors (of each; nil: unknown, or they differ), is_traced,
--     left_out = { ops without a row, and the reason, as a text... }, notes = { the same with paths... } }
--   chosen_ops.nothing(files, chosen) -> the message if no op of these { path } was chosen
--
-- An op: { name, request, reason (if it has none), computed_in, is_converted (between its operands' type and
-- that one, in its time), params, time = { count, sum, mean... }, share (cumulative) }.
local families = require "trace.ops.families"
local grouping = require "trace.ops.grouping"
local ordering = require "base.ordering"
local perf_model = require "trace.ops.perf_model"
local pooled = require "trace.ops.pooled_statistics"
local request = require "replay.request"
local sequences = require "base.sequences"

local chosen_ops = { field = "replay" }

local SHARE = 0.99

-- The sheets' words for the families that are replayed.
local kinds = { gemm = "gemm", convolution = "conv", convolution_backward = "conv" }

-- ---- one rank ------------------------------------------------------------------------------------------

local function texts_of(cells)
  return sequences.map(cells, function(cell) return ("%s=%s"):format(cell.name, cell.value) end)
end

-- Whether a kernel's name is of AMD's libraries, which identifies the device if a trace does not name it.
local function is_amd(kernels)
  return sequences.any(kernels, function(name)
    return name:find("Cijk_", 1, true) or name:find("miopen", 1, true)
  end)
end

local MIXED = "more than one type" -- of an op's calls: their times cannot be separated

-- The type in which an op was really computed, and whether elements were converted for it. It is in our own
-- traces or, in older ones, in the kernel's name. GPUs of other traces may compute float32 in TF32, which
-- names of kernels show.
local function computed_in(one, kernels, types)
  local dtype = one and request.value(one, "dtype")
  if types[dtype or ""] then return types[dtype], true end
  for _, name in ipairs(kernels) do
    if name:find("^openblas_.*_sgemm_of_") then return "float32", true end
    local is_tf32 = name:lower():find("tf32", 1, true) or name:find("tensorop_s1688", 1, true)
    if dtype == "float32" and is_tf32 then return "TF32", false end
  end
  return dtype, false
end

-- Counts ops of this name that are left out, by the reason.
local function leave_out(left_out, why, name, count)
  local one = left_out[why] or { count = 0, names = {} }
  one.count, one.names[name], left_out[why] = one.count + count, true, one
end

-- The op of a combo, or nil: it is of a kind that is not replayed, or lacks facts; the latter is counted.
local function op_of(rank, selection, combos, combo, left_out, types)
  local op = families.op(combos.name[combo])
  local kind = op and kinds[op.family]
  if not kind then return nil end
  local call = rank:call_of(selection, combos, combo)
  local perf, why = perf_model.of(op, call)
  if not perf then
    leave_out(left_out, why, op.name, combos.count[combo])
    return nil
  end
  local one, reason = request.of(op, call, perf)
  local cells, flops = perf_model.cells(perf.params), one and one.flops or perf.flops
  local gradients = one and request.value(one, "gradients")
  if gradients then cells[#cells + 1] = { name = "gradients", value = gradients } end
  local text = one and request.line(one, "") or table.concat(texts_of(cells), " ")
  local kernels = call.kernels()
  local type, is_converted = computed_in(one, kernels, types)
  return { kind = kind, name = op.name, request = one, reason = reason, params = cells, flops = flops,
    computed_in = type, is_converted = is_converted, is_amd = is_amd(kernels),
    key = op.name .. "\0" .. text }
end

-- Adds the type in which the same op was computed elsewhere.
local function join_types(op, other)
  if other.computed_in ~= op.computed_in then op.computed_in = MIXED end
end

-- Types that the trace computes in other types, in the words of a request.
local function types_of(info)
  local out = {}
  for name, other in pairs(info.computed_in or {}) do
    local from, to = request.type_named(name), request.type_named(other)
    if from and to then out[from] = to end
  end
  return out
end

function chosen_ops.collect(rank)
  local selection, combos = rank:select("modelled")
  local info, found, left_out = rank.trace:info(), {}, {}
  local types = types_of(info)
  for combo = 1, #combos.name do
    found[combo] = op_of(rank, selection, combos, combo, left_out, types)
  end
  local map, count, firsts = grouping.by(#combos.name, function(combo)
    return found[combo] and found[combo].key
  end)
  for combo, op in pairs(found) do
    if map[combo] then join_types(found[firsts[map[combo]]], op) end
  end
  local times, list = selection:group(map, count, { { "time" } })[1], {}
  for group = 1, count do
    local op = found[firsts[group]]
    op.time = { count = math.tointeger(times.count[group]), sum = times.sum[group],
      mean = grouping.cell(times.mean[group]), min = grouping.cell(times.min[group]),
      max = grouping.cell(times.max[group]), deviation = grouping.cell(times.deviation[group]) }
    list[group] = op
  end
  return { ops = list, left_out = left_out, device = info.device_name,
    multiprocessors = info.multiprocessors }
end

-- No sheet of the batch report is made from it.
function chosen_ops.make() return {} end

-- ---- all ranks -----------------------------------------------------------------------------------------

-- The chosen ops of a kind over all ranks, those with the most time first.
local function chosen(entries, kind)
  local all, total = {}, 0.0
  for _, rows in ipairs(entries) do
    local op, times = rows[1], {}
    if op.kind == kind then
      for i, row in ipairs(rows) do
        times[i] = row.time
        join_types(op, row)
      end
      op.time = pooled.together(times)
      total = total + op.time.sum
      all[#all + 1] = op
    end
  end
  ordering.falling(all, function(op) return op.time.sum end)
  local out, up_to = {}, 0.0
  for _, op in ipairs(all) do
    if up_to >= SHARE * total or op.time.sum <= 0 then break end
    up_to = up_to + op.time.sum
    op.share = up_to / total
    out[#out + 1] = op
  end
  return out
end

-- The number that all ranks have in common, or nil.
local function multiprocessors_of(lists)
  local first = lists[1] and lists[1].multiprocessors
  local differs = sequences.any(lists, function(list) return list.multiprocessors ~= first end)
  return not differs and first or nil
end

-- A way out for ops that are left out, by the reason; other reasons have none.
local WAYS_OUT = { [perf_model.NO_SHAPES] = "; profile with record_shapes" }

local function paths_in_words(paths)
  return #paths == 1 and paths[1] or ("%s and %d more"):format(paths[1], #paths - 1)
end

-- The reasons for which ops of any rank have no row: { [reason] = { count, names, paths } }.
local function causes_of(lists)
  local causes = {}
  for _, list in ipairs(lists) do
    for why, one in pairs(list.left_out) do
      local cause = causes[why] or { count = 0, names = {}, paths = {} }
      causes[why] = cause
      cause.count = cause.count + one.count
      for name in pairs(one.names) do cause.names[name] = true end
      table.insert(cause.paths, list.path)
    end
  end
  return causes
end

-- Adds a note on ranks without any op, if other ranks have some: the chosen ops are of the others.
local function add_silent(notes, lists)
  local silent = sequences.map(lists, function(list)
    return #list.ops == 0 and not next(list.left_out) and list.path or nil
  end)
  if #silent == 0 or #silent == #lists then return end
  notes[#notes + 1] = ("%s: no GEMM or convolution with kernels there; the chosen ops are of the other"
    .. " ranks"):format(paths_in_words(silent))
end

-- The ops without a row, a line for each cause: without the paths of their traces, and with them.
local function left_out_of(lists)
  local causes, left_out, notes = causes_of(lists), {}, {}
  for i, why in ipairs(ordering.sorted_keys(causes)) do
    local cause = causes[why]
    left_out[i] = ("%d ops left out: %s: %s"):format(cause.count,
      table.concat(ordering.sorted_keys(cause.names), ", "), why)
    notes[i] = ("%s: %s%s"):format(paths_in_words(cause.paths), left_out[i], WAYS_OUT[why] or "")
  end
  add_silent(notes, lists)
  return left_out, notes
end

function chosen_ops.choose(lists)
  local entries = pooled.by_key(sequences.field(lists, "ops"), function(op) return op.key end)
  local left_out, notes = left_out_of(lists)
  return { gemm = chosen(entries, "gemm"), conv = chosen(entries, "conv"),
    devices = sequences.distinct(sequences.field(lists, "device")),
    multiprocessors = multiprocessors_of(lists), left_out = left_out, notes = notes,
    is_traced = true }
end

function chosen_ops.nothing(files, found)
  local where = files[1].path .. (#files > 1 and (" and %d more"):format(#files - 1) or "")
  local note = found.left_out[1] and (" (%s)"):format(found.left_out[1]) or ""
  return ("%s: no GEMM or convolution with shapes and kernels%s: no op to replay; profile with "
    .. "record_shapes"):format(where, note)
end

return chosen_ops
