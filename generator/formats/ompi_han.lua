-- The data of the file for Open MPI's coll/han, which does a collective over several nodes in two levels, or
-- leaves it to another component, by message size. Renders nothing.
--
-- A choice of a single algorithm is one of coll/tuned; its rules (ompi.lua) choose the algorithm. MPI's own
-- decision over several nodes is that of coll/tuned before Open MPI 5.0, and of coll/han since.
local by_bytes = require "sizes.by_bytes"
local lists = require "lists.lists"
local ompi = require "formats.ompi"
local rank_placement = require "lists.rank_placement"

local ompi_han = {}

-- The collectives that coll/han of Open MPI 4.1 takes over beside an allreduce, by the numbers in its files.
local OTHERS = { { name = "allgather", number = 0 }, { name = "allgatherv", number = 1 },
  { name = "bcast", number = 7 }, { name = "gather", number = 9 }, { name = "reduce", number = 11 },
  { name = "scatter", number = 15 } }

local function is_han(strategy) return strategy.ompi_component == "han" end

local function may_win(strategy) return is_han(strategy) or ompi.can_name(strategy) end

local function component_of(strategy, usual)
  if is_han(strategy) then return "han" end
  return strategy.ompi_algorithm and "tuned" or usual
end

-- A rule for each run of segments with the same component.
local function rules_of(tp_table, usual)
  local rules = {}
  for _, segment in ipairs(tp_table.segments) do
    local component = component_of(segment.strategy, usual)
    if not rules[1] or rules[#rules].component ~= component then
      rules[#rules + 1] = { first = segment.first, component = component }
    end
  end
  return rules
end

-- The model for jobs on `nodes` nodes: { tp_tables (empty on one node, where coll/han does nothing), nodes,
-- usual = the component of unmeasured communicators, communicators = { { size, measured, rules = { { first,
-- component }... } }... }, others = { { name, number }... } of the collectives that stay with `usual` }.
function ompi_han.view(source, nodes)
  local spans = rank_placement.spans(nodes)
  local usual = ompi.is_since(source, "5.0") and "han" or "tuned"
  local tp_tables = spans and by_bytes.tp_tables(source, may_win, nil, nodes) or {}
  local communicators = ompi.communicators(tp_tables, false,
    function(tp_table) return rules_of(tp_table, usual) end, { first = 0, component = usual })
  return { tp_tables = tp_tables, nodes = nodes, usual = usual, communicators = communicators,
    others = usual == "tuned" and OTHERS or {} }
end

-- The measurements that are missing, as text; nil: none.
function ompi_han.lacks(source)
  for name in pairs(require("formats.model").measured(source)) do
    if is_han(lists.find("strategies", name)) then return nil end
  end
  return "no row of MPI_HAN; measure it on several nodes: gentables sweep, with nodes in the spec"
end

return ompi_han
