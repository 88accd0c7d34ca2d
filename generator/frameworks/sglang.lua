-- The limits of SGLang's custom all-reduce, version 2, for graphs and for eager calls. Renders nothing.
--
-- sglang.view(source) gives { capability = "9.0", major, minor, dtype, read_as, worlds }: worlds ascending {
-- tp, graph, eager }, each { push = bytes up to which it pushes in one shot (0: never), pull = bytes up to
-- which it pulls in two, multicast = { first, last } (nil: never), within which the switch adds, misses (of
-- reader_limits.misses), mode = that of its rows }.
-- sglang.lacks(source), sglang.gaps(source): see formats/list.lua.
--
-- SGLang tries the push, multicast and the pull in this order, and then NCCL. It has two more ways, a pull in
-- one shot and a Lamport one in two, of which gentables has no kernel: the file leaves them off.
local by_bytes = require "choose.by_bytes"
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
  return function(name)
    local way = WAYS[name]
    if way == MULTICAST and not has_multicast then return nil end
    return way
  end
end

-- Sizes above the workspace go to NCCL, whatever the limits.
local function answer_of(size, push, pull, first, last)
  if size > facts.workspace then return NCCL end
  if size <= push then return PUSH end
  if last > 0 and size >= first and size <= last then return MULTICAST end
  return size <= pull and PULL or NCCL
end

-- The first sizes of segments with multicast.
local function firsts_of(tp_table, way_of)
  return sequences.join { { 0 }, sequences.map(tp_table.segments, function(segment)
    return way_of(segment.strategy.name) == MULTICAST and segment.first or nil
  end) }
end

-- The limits of a table.
local function limits_of(tp_table, way_of)
  local function ends_of(way) return reader_limits.ends_of(tp_table, way_of, way) end
  local push, pull, first, last = reader_limits.cheapest(reader_limits.points(tp_table, way_of),
    { ends_of(PUSH), ends_of(PULL), firsts_of(tp_table, way_of), ends_of(MULTICAST) }, answer_of)
  local function answer(size) return answer_of(size, push, pull, first, last) end
  local cuts = { push, pull, first - 1, last, facts.workspace }
  return { push = push, pull = pull, multicast = last > 0 and { first = first, last = last } or nil,
    misses = reader_limits.misses(tp_table, way_of, answer, cuts, facts.step), mode = tp_table.mode }
end

-- The tables of a mode: number of ranks -> table.
local function tables_in(source, mode, major)
  local axes = sequences.merged(source.axes, { mode = mode })
  local in_mode = setmetatable({ axes = axes }, { __index = source })
  local tables = {}
  for _, tp in ipairs(facts.worlds[major] or {}) do
    local way_of = way_on(major, tp)
    local function may_win(strategy) return way_of(strategy.name) ~= nil end
    tables[tp] = sequences.find(by_bytes.tp_tables(in_mode, may_win), function(of) return of.tp == tp end)
  end
  return tables
end

local function has_own_kernel(limits) return limits.push > 0 or limits.pull > 0 or limits.multicast ~= nil end

local views = setmetatable({}, { __mode = "k" }) -- by source

local function view_of(source)
  local sm = math.tointeger(source.arch:match("^sm(%d+)$"))
  local major, minor = sm // 10, sm % 10
  local tables = {}
  for _, mode in ipairs(MODES) do tables[mode] = tables_in(source, mode, major) end
  local worlds = sequences.map(facts.worlds[major] or {}, function(tp)
    local graph, eager, way_of = tables.graph[tp], tables.eager[tp], way_on(major, tp)
    if not (graph or eager) then return nil end
    local world = { tp = tp, graph = limits_of(graph or eager, way_of),
      eager = limits_of(eager or graph, way_of) }
    return (has_own_kernel(world.graph) or has_own_kernel(world.eager)) and world or nil
  end)
  return { capability = ("%d.%d"):format(major, minor), major = major, minor = minor, worlds = worlds,
    dtype = source.axes.dtype, read_as = facts.read_as }
end

function sglang.view(source)
  views[source] = views[source] or view_of(source)
  return views[source]
end

function sglang.lacks(source)
  if #sglang.view(source).worlds > 0 then return nil end
  return "no number of ranks on one node for which ONESHOT, TWOSHOT or NVLS_TWOSHOT is the best " ..
    "somewhere, on a GPU of capability 9 or 10"
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
      for _, miss in ipairs(of.misses) do
        lines[#lines + 1] = reader_limits.miss_in_words(miss, ("TP %d, %s"):format(world.tp, mode))
      end
    end
  end
  return lines
end

return sglang
