-- The nodes of ranks: consecutive ranks share one. Their number on a node is given (--gpus-per-node), or that
-- of the devices in the traces.
--
--   local places = nodes.of(ranks, per_node, notes)   -- nil: unknown
--   places:node(rank) -> the number of its node, from 0
--   places:span(metadata) -> "intra_node" or "inter_node", and the number of nodes of a collective's group;
--                            nil: the group's ranks are unknown
local fail = require "base.fail"
local sequences = require "base.sequences"

local nodes = {}
nodes.__index = nodes

nodes.option = { name = "gpus-per-node", value = "N", type = "whole",
  help = "consecutive ranks on each node, to distinguish collectives within and between nodes (default: the"
    .. " devices in the traces, if there are several)" }

-- The number of ranks of the run: as in the traces, at least the highest traced one + 1.
function nodes.world_size_of(ranks)
  local size = 0
  for _, rank in ipairs(ranks) do size = math.max(size, rank.world_size or 0, rank.rank + 1) end
  return size
end

-- Whether the ranks fill whole nodes, or a part of a single one.
local function fits(world_size, per_node) return world_size < per_node or world_size % per_node == 0 end

-- The number of devices in each trace; nil: they differ, or are unknown, or each rank has only its own.
local function devices_of(ranks)
  local devices = ranks[1].devices
  local same = sequences.all(ranks, function(rank) return rank.devices == devices end)
  return same and devices and devices > 1 and devices or nil
end

-- ranks: as of rank_sheets.make, at least one; per_node: of --gpus-per-node, or nil. Appends to notes if the
-- traces contradict themselves; raises if per_node does not divide the ranks.
function nodes.of(ranks, per_node, notes)
  local world_size = nodes.world_size_of(ranks)
  if per_node and not fits(world_size, per_node) then
    fail.input("--gpus-per-node %d does not divide the %d ranks; give the ranks on each node", per_node,
      world_size)
  end
  local devices = per_node or devices_of(ranks)
  if not devices then return nil end
  if not fits(world_size, devices) then
    notes[#notes + 1] = ("the traces have %d devices, which do not divide the %d ranks: nodes are unknown;"
      .. " give --gpus-per-node"):format(devices, world_size)
    return nil
  end
  return setmetatable({ per_node = devices, world_size = world_size }, nodes)
end

function nodes:node(rank) return rank // self.per_node end

-- The ranks of a collective's group, in order; nil: unknown, because long lists are cut.
function nodes.members(metadata, world_size)
  local list = metadata.ranks
  if list and list:find("%d") and not list:find("...", 1, true) then
    local out = {}
    for number in list:gmatch("%d+") do out[#out + 1] = math.tointeger(tonumber(number)) end
    return out
  end
  if metadata.group_size ~= world_size then return nil end
  local out = {}
  for rank = 0, world_size - 1 do out[rank + 1] = rank end
  return out
end

function nodes:span(metadata)
  local members = nodes.members(metadata, self.world_size)
  if not members then return nil end
  local count = #sequences.distinct(sequences.map(members, function(rank) return self:node(rank) end))
  return count > 1 and "inter_node" or "intra_node", count
end

return nodes
