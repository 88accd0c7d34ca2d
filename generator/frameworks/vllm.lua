-- The limits of vLLM's all-reduces, for its dictionaries of them. Renders nothing.
--
-- vllm.view(source) gives { sm, capability = "9.0", dtype, read_as, misses_text (of reader_limits.lua),
-- worlds, fused, symmetric_from }:
--   worlds  ascending { tp, custom = bytes below which its custom allreduce is used (0: never; nil: not
--           measured), symmetric = the most bytes of torch's symmetric memory (nil: not measured), window =
--           { low, high } (nil: NCCL's symmetric memory was not measured): it is used up to low and from high
--           on, misses = { { fusion, of = of ways:misses() in ways_lua.c }... } }
--   fused   ascending { tp, most = bytes up to which FlashInfer's fused kernels are used (0: never),
--           one_shot = bytes up to which they are one-shot, misses }, of the ranks on which such a kernel was
--           measured
-- vllm.gaps(source): what the file cannot express, as lines.
--
-- vLLM tries NCCL's symmetric memory (if VLLM_USE_NCCL_SYMM_MEM is set), its custom allreduce, torch's
-- symmetric memory and NCCL, in this order. Strategies of gentables stand for the kernels of the same
-- algorithm.
local by_bytes = require "sizes.by_bytes"
local facts = require("frameworks.reader_facts").vllm
local reader_limits = require "frameworks.reader_limits"
local lists = require "lists.lists"
local sequences = require "base.sequences"

local vllm = {}

local NCCL_SYMMETRIC, CUSTOM, SYMMETRIC, NCCL = "NCCL_SYMMETRIC", "custom", "symmetric memory", "NCCL"
local DEFAULT = "without NCCL_SYMMETRIC"
local ONE_SHOT, TWO_SHOT, UNFUSED = "fused, one-shot", "fused, two-shot", "no fusion"

local PLAIN = { ONESHOT = CUSTOM, TWOSHOT = CUSTOM, NCCL_SYMMETRIC = NCCL_SYMMETRIC, NCCL = NCCL,
  SYMM_MEM = SYMMETRIC }
local FUSED = { ONESHOT = ONE_SHOT, TWOSHOT = TWO_SHOT, NCCL = UNFUSED, NCCL_UNFUSED = UNFUSED,
  NCCL_SYMMETRIC = UNFUSED, ONESHOT_UNFUSED = UNFUSED }

local function sm_of(source) return math.tointeger(source.arch:match("^sm(%d+)$")) end

-- The ways of plain sums: number of ranks -> function, name of a strategy -> way.
local function plain_ways(source)
  return function(tp)
    local has_switch = lists.contains(facts.multimem[sm_of(source)] or {}, tp)
    return function(name)
      local way = PLAIN[name] or name == "NVLS_TWOSHOT" and has_switch and SYMMETRIC or nil
      if way == SYMMETRIC and source.axes.dtype ~= facts.symmetric_dtype then return nil end
      return way
    end
  end
end

-- ---- plain sums -------------------------------------------------------------------------------

local function default_answer(size, custom, symmetric)
  if size < custom then return CUSTOM end
  return size <= symmetric and SYMMETRIC or NCCL
end

-- The limit below which a size up to `last` is, among the sizes that the custom allreduce takes.
local function above(last)
  return math.min((last // facts.custom_step + 1) * facts.custom_step, facts.custom_most)
end

-- States that follow each other (see ways_lua.c), the first one up to the size `most`, with `beyond` above; a
-- way without a time is never used, but for the last one.
local function in_order(ways, names, most, beyond)
  return sequences.map(names, function(way, i)
    local after = {}
    for earlier = 1, i - 1 do after[earlier] = earlier end
    local is_off = i < #names and not ways:has(way)
    return { way = way, after = after, is_off = is_off, most = i == 1 and most or nil, beyond = beyond }
  end)
end

-- The limits of the custom allreduce and of torch's symmetric memory, without NCCL's symmetric memory, which
-- is off by default; nil: not measured.
local function default_limits(source, tp_table, way_of)
  local regret = by_bytes.regret(source)
  local open = tp_table.sizes:without(NCCL_SYMMETRIC, regret)
  if not open then return nil, nil end
  local ways = open:ways(way_of)
  local states = in_order(ways, { CUSTOM, SYMMETRIC, NCCL }, facts.custom_most - 1, NCCL)
  local path, count = ways:path(states, regret)
  local function limit(state, way)
    if not ways:has(way) then return nil end
    local range = reader_limits.range_of(tp_table, ways, path, count, state)
    return range and range.last or 0
  end
  local custom, symmetric = limit(1, CUSTOM), limit(2, SYMMETRIC)
  return custom and (custom > 0 and above(custom) or 0), symmetric
end

-- The sizes between which NCCL's symmetric memory is not used, both excluded; nil: it was not measured.
-- `answers`: those of vLLM without it.
local function window_of(source, tp_table, ways, answers)
  if not ways:has(NCCL_SYMMETRIC) then return nil end
  local either = ways:beside(NCCL_SYMMETRIC, answers, DEFAULT)
  local states = { { way = NCCL_SYMMETRIC, after = {} }, { way = DEFAULT, after = { 1 } },
    { way = NCCL_SYMMETRIC, after = { 2 } } }
  local path, count = either:path(states, by_bytes.regret(source))
  local low = reader_limits.range_of(tp_table, either, path, count, 1)
  local high = reader_limits.range_of(tp_table, either, path, count, 3)
  local is_last = low and path[1].last == count -- it is best at every size
  return { low = low and low.last or 0, high = is_last and low.last + 1 or high and math.max(high.first, 1)
    or reader_limits.NEVER }
end

local function world_of(source, tp_table, way_of)
  local custom, symmetric = default_limits(source, tp_table, way_of)
  local ways, default_cuts = tp_table.sizes:ways(way_of), { (custom or 0) - 1, symmetric or 0 }
  local function by_default(size) return default_answer(size, custom or 0, symmetric or 0) end
  local window = window_of(source, tp_table, ways, reader_limits.answers(by_default, default_cuts))
  local function answer(size)
    if window and (size <= window.low or size >= window.high) then return NCCL_SYMMETRIC end
    return by_default(size)
  end
  local cuts = sequences.join { default_cuts, window and { window.low, window.high - 1 } or {} }
  local misses = ways:misses(reader_limits.answers(answer, cuts), facts.custom_step)
  return { tp = tp_table.tp, custom = custom, symmetric = symmetric, window = window,
    misses = { { fusion = "NONE", of = misses } } }
end

local function worlds_of(source)
  local way_on = plain_ways(source)
  return sequences.map(reader_limits.tables(source, facts.worlds, way_on), function(tp_table)
    return world_of(source, tp_table, way_on(tp_table.tp))
  end)
end

-- ---- fused sums -------------------------------------------------------------------------------

local function fused_way(name) return FUSED[name] end

local function fused_answer(size, most, one_shot)
  if size > most then return UNFUSED end
  return size <= one_shot and ONE_SHOT or TWO_SHOT
end

-- The limits of one number of ranks. `tables`: { fusion, tp_table }, of which the first one decides; nil:
-- they have no fused kernel.
local function fused_of(source, tp, tables)
  local first = tables[1].tp_table
  local ways = first.sizes:ways(fused_way)
  local states = in_order(ways, { ONE_SHOT, TWO_SHOT, UNFUSED }, facts.one_shot_most // tp, TWO_SHOT)
  if states[1].is_off and states[2].is_off then return nil end
  local path, count = ways:path(states, by_bytes.regret(source))
  local one = reader_limits.range_of(first, ways, path, count, 1)
  local all = reader_limits.range_of(first, ways, path, count, 1, 2)
  local one_shot, most = one and math.min(one.last, facts.one_shot_most // tp) or 0, all and all.last or 0
  local misses = {}
  for _, of in ipairs(tables) do
    local function answer(size) return fused_answer(size, most, one_shot) end
    local answers = reader_limits.answers(answer, { most, one_shot })
    misses[#misses + 1] = { fusion = of.fusion, of = of.tp_table.sizes:ways(fused_way):misses(answers, 1) }
  end
  return { tp = tp, most = most, one_shot = one_shot, misses = misses }
end

local function fused_ways() return fused_way end

local function fused_worlds(source)
  local of_tp = {}
  for _, fusion in ipairs(lists.epilogues) do
    for _, tp_table in ipairs(reader_limits.tables(source, facts.fused_worlds, fused_ways, fusion.name)) do
      local tables = of_tp[tp_table.tp] or {}
      tables[#tables + 1], of_tp[tp_table.tp] = { fusion = fusion.name, tp_table = tp_table }, tables
    end
  end
  return sequences.map(facts.fused_worlds, function(tp)
    return of_tp[tp] and fused_of(source, tp, of_tp[tp]) or nil
  end)
end

-- ---- the view ---------------------------------------------------------------------------------

local views = setmetatable({}, { __mode = "k" }) -- by source

local function view_of(source)
  local sm, worlds = sm_of(source), worlds_of(source)
  local smallest = sequences.find(worlds, function(world) return world.window ~= nil end)
  return { sm = sm, capability = ("%d.%d"):format(sm // 10, sm % 10), dtype = source.axes.dtype,
    read_as = facts.read_as, misses_text = reader_limits.misses_text, worlds = worlds,
    fused = fused_worlds(source),
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
  for _, world in ipairs(view.worlds) do
    for _, of in ipairs { { CUSTOM, world.custom }, { SYMMETRIC, world.symmetric } } do
      if not of[2] then
        local words = "TP %d: %s was not measured, so vLLM keeps its own limit"
        lines[#lines + 1] = words:format(world.tp, of[1])
      end
    end
  end
  for _, world in ipairs(sequences.join { view.worlds, view.fused }) do
    for _, group in ipairs(world.misses) do
      local where = "TP " .. world.tp .. (group.fusion ~= "NONE" and ", " .. group.fusion or "")
      sequences.append(lines, reader_limits.misses_in_words(group.of, where))
    end
  end
  return lines
end

return vllm
