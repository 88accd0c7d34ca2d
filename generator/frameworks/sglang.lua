-- The limits of SGLang's custom all-reduce, version 2, for graphs and for eager calls. Renders nothing.
--
-- sglang.view(source) gives { capability = "9.0", major, minor, dtype, read_as, misses_text (of
-- reader_limits.lua), worlds }: worlds ascending { tp, graph, eager }, each { push = bytes up to which it
-- pushes in one shot (0: never), pull = bytes up to which it pulls in two, multicast = { first, last } (nil:
-- never), within which the switch adds, misses (of ways:misses() in ways_lua.c), mode = that of its rows,
-- untimed = the ways without a time, which are off }.
-- sglang.lacks(source), sglang.gaps(source): see formats/list.lua.
--
-- SGLang tries the push, multicast and the pull in this order, and then NCCL. It has two more ways, a pull in
-- one shot and a Lamport one in two, of which gentables has no kernel: the file leaves them off.
local by_bytes = require "sizes.by_bytes"
local facts = require("frameworks.reader_facts").sglang
local lists = require "lists.lists"
local reader_limits = require "frameworks.reader_limits"
local sequences = require "base.sequences"

local sglang = {}

local PUSH, PULL, MULTICAST, NCCL = "one-shot push", "two-shot pull", "multicast", "NCCL"
local WAYS = { ONESHOT = PUSH, TWOSHOT = PULL, NVLS_TWOSHOT = MULTICAST, NCCL = NCCL,
  NCCL_SYMMETRIC = NCCL }
local MODES = { "graph", "eager" }

local function way_on(major, tp)
  local has_multicast = lists.contains(facts.multicast[major] or {}, tp)
  return function(name) return (WAYS[name] ~= MULTICAST or has_multicast) and WAYS[name] or nil end
end

-- Sizes above the workspace go to NCCL, whatever the limits.
local function answer_of(size, push, pull, first, last)
  if size > facts.workspace then return NCCL end
  if size <= push then return PUSH end
  if last > 0 and size >= first and size <= last then return MULTICAST end
  return size <= pull and PULL or NCCL
end

-- The ways in their order by size: after a gap for NCCL before multicast no pull can follow, as it has one
-- limit.
local STATES = {
  { way = PUSH, after = {} }, { way = PULL, after = { 1 } }, { way = NCCL, after = { 1, 2 } },
  { way = MULTICAST, after = { 1, 2 } }, { way = MULTICAST, after = { 3 } }, { way = PULL, after = { 4 } },
  { way = NCCL, after = { 1, 2, 4, 5, 6 } },
}

-- The limits of a table: push, pull, and the first and last size of multicast; 0: never.
local function cheapest_limits(source, tp_table, ways)
  local states = sequences.map(STATES, function(state)
    local is_off = state.way ~= NCCL and not ways:has(state.way)
    return { way = state.way, after = state.after, is_off = is_off }
  end)
  local path, count = ways:path(states, by_bytes.regret(source), facts.workspace)
  local function range(...) return reader_limits.range_of(tp_table, ways, path, count, ...) end
  local push, multicast, before, after = range(1), range(4, 5), range(2), range(6)
  local pull = after or before
  return push and push.last or 0, pull and pull.last or 0, multicast and multicast.first or 0,
    multicast and multicast.last or 0
end

-- The limits of a table.
local function limits_of(source, tp_table, way_of)
  local ways = tp_table.sizes:ways(way_of)
  local push, pull, first, last = cheapest_limits(source, tp_table, ways)
  local function answer(size) return answer_of(size, push, pull, first, last) end
  local cuts = { push, pull, first - 1, last, facts.workspace }
  return { push = push, pull = pull, multicast = last > 0 and { first = first, last = last } or nil,
    misses = ways:misses(reader_limits.answers(answer, cuts), facts.step), mode = tp_table.mode,
    untimed = sequences.filter({ PUSH, PULL, MULTICAST }, function(way) return not ways:has(way) end) }
end

-- The tables of a mode: number of ranks -> table.
local function tables_in(source, mode, major)
  local tables = {}
  local function ways(tp) return way_on(major, tp) end
  for _, tp_table in ipairs(reader_limits.tables(source, facts.worlds[major] or {}, ways, nil, mode)) do
    tables[tp_table.tp] = tp_table
  end
  return tables
end

-- Whether any of SGLang's own ways was measured: without a time its own limits stay.
local function has_own_time(limits) return #limits.untimed < 3 end

local views = setmetatable({}, { __mode = "k" }) -- by source

local function view_of(source)
  local sm = math.tointeger(source.arch:match("^sm(%d+)$"))
  local major, minor = sm // 10, sm % 10
  local tables = {}
  for _, mode in ipairs(MODES) do tables[mode] = tables_in(source, mode, major) end
  local worlds = sequences.map(facts.worlds[major] or {}, function(tp)
    local graph, eager, way_of = tables.graph[tp], tables.eager[tp], way_on(major, tp)
    if not (graph or eager) then return nil end
    local world = { tp = tp, graph = limits_of(source, graph or eager, way_of),
      eager = limits_of(source, eager or graph, way_of) }
    return (has_own_time(world.graph) or has_own_time(world.eager)) and world or nil
  end)
  return { capability = ("%d.%d"):format(major, minor), major = major, minor = minor, worlds = worlds,
    dtype = source.axes.dtype, read_as = facts.read_as, misses_text = reader_limits.misses_text }
end

function sglang.view(source)
  views[source] = views[source] or view_of(source)
  return views[source]
end

function sglang.lacks(source)
  if #sglang.view(source).worlds > 0 then return nil end
  return "no time of ONESHOT, TWOSHOT or NVLS_TWOSHOT on one node, on a GPU of capability 9 or 10"
end

-- What its tables have no place for, in any table.
local NO_PLACE = {
  "torch's symmetric memory and FlashInfer's fusions: their limits in SGLang are not in this file",
  "data types, hidden sizes, fusions, several nodes: it has no place for them",
  "a lower bound, except of multicast; messages that are no multiple of 16 bytes; more than 16 MiB, " ..
    "unless SGLANG_CUSTOM_ALL_REDUCE_V2_MAX_SIZE_KB is raised",
}

function sglang.gaps(source)
  local lines = sequences.join { NO_PLACE }
  for _, world in ipairs(sglang.view(source).worlds) do
    for _, mode in ipairs(MODES) do
      local of = world[mode]
      if of.mode ~= mode then
        local words = "TP %d, %s: it has the limits of rows of mode %s"
        lines[#lines + 1] = words:format(world.tp, mode, of.mode)
      end
      if #of.untimed > 0 then
        lines[#lines + 1] = ("TP %d, %s: off, as they were not measured: %s"):format(world.tp, mode,
          table.concat(of.untimed, ", "))
      end
      sequences.append(lines,
        reader_limits.misses_in_words(of.misses, ("TP %d, %s"):format(world.tp, mode)))
    end
  end
  return lines
end

return sglang
