-- A collective by its kernel and metadata: name, bytes and ranks. The names are those of
-- lists/communication.lua.
local communication = require "lists.communication"
local element_types = require "lists.element_types"

local collective = {}

-- If neither kernel nor metadata contain it: NCCL's generic kernels.
collective.unknown = "unknown"

-- Bytes of one element of a type as metadata name it; nil: unknown.
function collective.element_size(dtype)
  local row = dtype and element_types.of_metadata(dtype)
  return row and row.bytes
end

-- The bytes of the full message: after a gather, the result on each rank; else the input of one rank. nil:
-- unknown.
local function bytes_of(name, metadata)
  local gathers = name == "AllGather" or name == "Gather"
  local elements = gathers and metadata.out_elements or metadata.in_elements
  local size = collective.element_size(metadata.dtype)
  return size and elements >= 0 and elements * size or nil
end

-- { name, group, group_size, bytes } of a kernel; `metadata` of the kernel from core.activity, or nil.
function collective.describe(kernel, metadata)
  local by_kernel = communication.operation_of_kernel(kernel)
  if not metadata then return { name = by_kernel or collective.unknown } end
  local name = communication.operation_in(metadata.name) or by_kernel or collective.unknown
  return { name = name, group = metadata.group,
    group_size = metadata.group_size > 0 and metadata.group_size or nil, bytes = bytes_of(name, metadata) }
end

-- The factor from algbw to busbw; nil: unknown for this collective or number of ranks.
function collective.bus_factor(name, group_size)
  local factor = communication.bus_factors[name]
  return factor and group_size and factor(group_size)
end

return collective
