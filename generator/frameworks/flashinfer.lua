-- One-shot or two-shot for each call of FlashInfer's fused allreduce, by ranges of sizes; and the sizes at
-- which another strategy than these is best. Renders nothing.
--
-- flashinfer.view(source) gives { capability = "9.0", dtype, read_as, largest, fusions }: fusions { name,
-- patterns = FlashInfer's names, worlds ascending { tp, shots, best } }; shots and best are ranges that
-- follow each other, as lists { last = bytes, inclusive (false: no end), is }: `is` whether one shot is
-- better than two, and whether any of them is the best of all strategies.
-- flashinfer.lacks(source), flashinfer.gaps(): see formats/list.lua.
local by_bytes = require "sizes.by_bytes"
local facts = require("frameworks.reader_facts").flashinfer
local lists = require "lists.lists"
local sequences = require "base.sequences"

local flashinfer = {}

local OWN = { ONESHOT = true, TWOSHOT = true }

local function is_own(strategy) return OWN[strategy.name] == true end
local function is_any() return true end

local function ranges_of(tp_table, names)
  local last, is = tp_table.sizes:ranges(names)
  return { last = last, is = is }
end

local function worlds_of(source, fusion)
  local best_of = {}
  for _, tp_table in ipairs(by_bytes.tp_tables(source, is_any, fusion)) do
    best_of[tp_table.tp] = ranges_of(tp_table, OWN)
  end
  return sequences.map(by_bytes.tp_tables(source, is_own, fusion), function(tp_table)
    if not lists.contains(facts.worlds, tp_table.tp) then return nil end
    return { tp = tp_table.tp, shots = ranges_of(tp_table, { ONESHOT = true }),
      best = best_of[tp_table.tp] or { last = {}, is = {} } }
  end)
end

local views = setmetatable({}, { __mode = "k" }) -- by source

local function view_of(source)
  local sm = math.tointeger(source.arch:match("^sm(%d+)$"))
  local fusions = sequences.map(lists.fusions, function(fusion)
    local worlds = facts.patterns[fusion.name] and worlds_of(source, fusion.name) or {}
    if #worlds == 0 then return nil end
    return { name = fusion.name, patterns = facts.patterns[fusion.name], worlds = worlds }
  end)
  return { capability = ("%d.%d"):format(sm // 10, sm % 10), dtype = source.axes.dtype,
    read_as = facts.read_as, largest = facts.largest, fusions = fusions }
end

function flashinfer.view(source)
  views[source] = views[source] or view_of(source)
  return views[source]
end

function flashinfer.lacks(source)
  if #flashinfer.view(source).fusions > 0 then return nil end
  return "no row of ONESHOT or TWOSHOT on 2, 4, 8 or 16 ranks of one node"
end

-- What a call cannot express, as lines.
function flashinfer.gaps()
  return {
    "data types, hidden sizes, eager calls beside graphs, several nodes: its ranges are of bytes alone",
    ("one shot of more than %d bytes, all ranks together: FlashInfer runs two"):format(facts.largest),
    "the backend mnnvl: one-shot is its own decision, as its workspace may be too small",
    "the tuning cache of its path over PCIe, and the routes of its CuTe DSL kernels: rows have none of " ..
      "their variants, blocks and threads",
  }
end

return flashinfer
