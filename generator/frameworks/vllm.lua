-- The limits of vLLM's all-reduces, for its dictionaries of them. Renders nothing.
--
-- vllm.view(source) gives { sm, capability = "9.0", dtype, read_as, worlds, fused, symmetric_from }:
--   worlds  ascending { tp, custom = bytes below which its custom allreduce is used (0: never), symmetric =
--           the most bytes of torch's symmetric memory, window = { low, high } (nil: NCCL's symmetric memory
--           was not measured): it is used up to low and from high on, misses (of reader_limits.misses) }
--   fused   ascending { tp, most = bytes up to which FlashInfer's fused kernels are used (0: never),
--           one_shot = bytes up to which they are one-shot, misses = { fusion, ... } }
-- vllm.gaps(source): what the file cannot express, as lines.
--
-- vLLM tries NCCL's symmetric memory (if VLLM_USE_NCCL_SYMM_MEM is set), its custom allreduce, torch's
-- symmetric memory and NCCL, in this order. Strategies of gentables stand for the kernels of the same
-- algorithm.
local by_bytes = require "choose.by_bytes"
local facts = require("frameworks.reader_facts").vllm
local reader_limits = require "frameworks.reader_limits"
local lists = require "lists.lists"
local sequences = require "base.sequences"

local vllm = {}

local NCCL_SYMMETRIC, CUSTOM, SYMMETRIC, NCCL = "NCCL_SYMMETRIC", "custom", "symmetric memory", "NCCL"
local ONE_SHOT, TWO_SHOT, UNFUSED = "fused, one-shot", "fused, two-shot", "no fusion"

local PLAIN = { ONESHOT = CUSTOM, TWOSHOT = CUSTOM, NCCL_SYMMETRIC = NCCL_SYMMETRIC, NCCL = NCCL,
  SYMM_MEM = SYMMETRIC }
local FUSED = { ONESHOT = ONE_SHOT, TWOSHOT = TWO_SHOT, NCCL = UNFUSED, NCCL_UNFUSED = UNFUSED,
  NCCL_SYMMETRIC = UNFUSED, ONESHOT_UNFUSED = UNFUSED }

local function sm_of(source) return math.tointeger(source.arch:match("^sm(%d+)$")) end

-- The ways of plain sums on `tp` ranks: name of a strategy -> way.
local function plain_way(source, tp)
  local has_switch = lists.contains(facts.multimem[sm_of(source)] or {}, tp)
  return function(name)
    local way = PLAIN[name] or name == "NVLS_TWOSHOT" and has_switch and SYMMETRIC or nil
    if way == SYMMETRIC and source.axes.dtype ~= facts.symmetric_dtype then return nil end
    return way
  end
end

-- The table of each number of ranks, with the strategies of its ways.
local function tables_of(source, worlds, way_on, fusion)
  return sequences.map(worlds, function(tp)
    local way_of = way_on(tp)
    local function may_win(strategy) return way_of(strategy.name) ~= nil end
    return sequences.find(by_bytes.tp_tables(source, may_win, fusion), function(of) return of.tp == tp end)
  end)
end

-- A table without NCCL's symmetric memory, which is off by default.
local function without_nccl_symmetric(source, tp_table)
  local points = sequences.map(tp_table.points, function(point)
    local badness = sequences.merged(point.badness)
    badness.NCCL_SYMMETRIC = nil
    return next(badness) and { size = point.size, badness = badness } or nil
  end)
  if #points == 0 then return nil end
  return { tp = tp_table.tp, points = points, measured = tp_table.measured,
    segments = by_bytes.segments(points, source.regret) }
end

-- ---- plain sums -------------------------------------------------------------------------------

local function default_answer(size, custom, symmetric)
  if size < custom then return CUSTOM end
  return size <= symmetric and SYMMETRIC or NCCL
end

-- The limit below which a size up to `last` is, among the sizes that the custom allreduce takes.
local function above(last)
  if last == 0 then return 0 end
  return math.min((last // facts.custom_step + 1) * facts.custom_step, facts.custom_most)
end

local function default_limits(source, tp_table, way_of)
  local open = without_nccl_symmetric(source, tp_table)
  if not open then return 0, 0 end
  local ends = reader_limits.ends(open)
  return reader_limits.cheapest(reader_limits.points(open, way_of), { sequences.map(ends, above), ends },
    default_answer)
end

local function has_time(tp_table, name)
  return sequences.any(tp_table.points, function(point) return point.badness[name] ~= nil end)
end

-- The sizes between which NCCL's symmetric memory is not used, both excluded; nil: it was not measured.
local function window_of(tp_table, way_of, answer)
  if not has_time(tp_table, "NCCL_SYMMETRIC") then return nil end
  local firsts = sequences.join { { reader_limits.NEVER }, sequences.field(tp_table.segments, "first") }
  local highs = sequences.map(firsts, function(first) return math.max(first, 1) end)
  local points, lows = reader_limits.points(tp_table, way_of), reader_limits.ends(tp_table)
  local low, high = reader_limits.cheapest(points, { lows, highs }, function(size, low, high)
    return (size <= low or size >= high) and NCCL_SYMMETRIC or answer(size)
  end)
  return { low = low, high = high }
end

local function world_of(source, tp_table)
  local way_of = plain_way(source, tp_table.tp)
  local custom, symmetric = default_limits(source, tp_table, way_of)
  local function by_default(size) return default_answer(size, custom, symmetric) end
  local window = window_of(tp_table, way_of, by_default)
  local function answer(size)
    if window and (size <= window.low or size >= window.high) then return NCCL_SYMMETRIC end
    return by_default(size)
  end
  local cuts = { custom - 1, symmetric, window and window.low, window and window.high - 1 }
  return { tp = tp_table.tp, custom = custom, symmetric = symmetric, window = window,
    misses = reader_limits.misses(tp_table, way_of, answer, cuts, facts.custom_step) }
end

local function worlds_of(source)
  local tables = tables_of(source, facts.worlds, function(tp) return plain_way(source, tp) end)
  return sequences.map(tables, function(tp_table) return world_of(source, tp_table) end)
end

-- ---- fused sums -------------------------------------------------------------------------------

local function fused_way() return function(name) return FUSED[name] end end

local function fused_answer(size, most, one_shot)
  if size > most then return UNFUSED end
  return size <= one_shot and ONE_SHOT or TWO_SHOT
end

-- The limits of one number of ranks. `tables`: { fusion, tp_table }, of which the first one decides.
local function fused_of(tp, tables)
  local first = tables[1].tp_table
  local ends, largest = reader_limits.ends(first), facts.one_shot_most // tp
  local most, one_shot = reader_limits.cheapest(reader_limits.points(first, fused_way()),
    { ends, sequences.map(ends, function(last) return math.min(last, largest) end) }, fused_answer)
  local misses = {}
  for _, of in ipairs(tables) do
    local function answer(size) return fused_answer(size, most, one_shot) end
    for _, miss in ipairs(reader_limits.misses(of.tp_table, fused_way(), answer, { most, one_shot }, 1)) do
      miss.fusion = of.fusion
      misses[#misses + 1] = miss
    end
  end
  return { tp = tp, most = most, one_shot = one_shot, misses = misses }
end

local function fused_worlds(source)
  local of_tp = {}
  for _, fusion in ipairs(lists.epilogues) do
    for _, tp_table in ipairs(tables_of(source, facts.fused_worlds, fused_way, fusion.name)) do
      local tables = of_tp[tp_table.tp] or {}
      tables[#tables + 1], of_tp[tp_table.tp] = { fusion = fusion.name, tp_table = tp_table }, tables
    end
  end
  return sequences.map(facts.fused_worlds, function(tp)
    return of_tp[tp] and fused_of(tp, of_tp[tp]) or nil
  end)
end

-- ---- the view ---------------------------------------------------------------------------------

local views = setmetatable({}, { __mode = "k" }) -- by source

local function view_of(source)
  local sm, worlds = sm_of(source), worlds_of(source)
  local smallest = sequences.find(worlds, function(world) return world.window ~= nil end)
  return { sm = sm, capability = ("%d.%d"):format(sm // 10, sm % 10), dtype = source.axes.dtype,
    read_as = facts.read_as, worlds = worlds, fused = fused_worlds(source),
    symmetric_from = smallest and math.min(smallest.tp, facts.nccl_symmetric_from) }
end

function vllm.view(source)
  views[source] = views[source] or view_of(source)
  return views[source]
end

-- What is missing for a file, as text; nil: nothing.
function vllm.lacks(source)
  local view = vllm.view(source)
  if #view.worlds + #view.fused > 0 then return nil end
  return "no row of ONESHOT, TWOSHOT, NCCL_SYMMETRIC or NCCL on 2, 4, 6 or 8 ranks of one node"
end

-- What its dictionaries have no place for, in any table.
local NO_PLACE = {
  "data types, hidden sizes, eager calls beside graphs, ranks on several nodes, numbers of ranks other " ..
    "than 2, 4, 6 and 8 (fused: 2, 4, 8 and 16): it has no place for them",
  "messages that are no multiple of 16 bytes, and any size from 8 MiB on: its custom allreduce takes none",
  "one limit for all fusions; with FlashInfer's backend mnnvl, one-shot is FlashInfer's own decision",
}

function vllm.gaps(source)
  local view, lines = vllm.view(source), sequences.join { NO_PLACE }
  for _, world in ipairs(sequences.join { view.worlds, view.fused }) do
    for _, miss in ipairs(world.misses) do
      local where = "TP " .. world.tp .. (miss.fusion and ", " .. miss.fusion or "")
      lines[#lines + 1] = reader_limits.miss_in_words(miss, where)
    end
  end
  return lines
end

return vllm
