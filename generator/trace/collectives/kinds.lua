-- The collectives by their names in PyTorch's traces, one row each.
--   name        the value of "Collective name"
--   full        the elements that are the whole message: "in" or "out"
--   operation   the sheets have its latency and bandwidths, with this bus factor of lists/communication.lua
--   same_sizes  the same on all ranks, so that sizes distinguish collectives
--   pair        send or receive: the other rank's event has the other name
-- To add a collective, add a row.
local collective = require "profile.collective"
local communication = require "lists.communication"

local kinds = {}

kinds.list = {
  { name = "allreduce", full = "in", operation = "AllReduce", same_sizes = true },
  { name = "allreduce_coalesced", full = "in", operation = "AllReduce", same_sizes = true },
  { name = "reducescatter", full = "in", operation = "ReduceScatter", same_sizes = true },
  { name = "_reduce_scatter_base", full = "in", operation = "ReduceScatter", same_sizes = true },
  { name = "reduce_scatter_tensor_coalesced", full = "in", operation = "ReduceScatter",
    same_sizes = true },
  { name = "allgather", full = "out", operation = "AllGather", same_sizes = true },
  { name = "all_gather", full = "out", operation = "AllGather", same_sizes = true },
  { name = "_allgather_base", full = "out", operation = "AllGather", same_sizes = true },
  { name = "allgather_into_tensor_coalesced", full = "out", operation = "AllGather", same_sizes = true },
  { name = "all_gather_into_tensor_coalesced", full = "out", operation = "AllGather", same_sizes = true },
  { name = "all_to_all", full = "in", operation = "AllToAll", same_sizes = true },
  { name = "all_to_allv", full = "in", uneven = true },
  { name = "broadcast", full = "in", same_sizes = true },
  { name = "reduce", full = "in", same_sizes = true },
  { name = "barrier", full = "in" },
  { name = "send", full = "in", pair = true },
  { name = "recv", full = "in", pair = true },
}

local of_name, timed = {}, {}
for _, kind in ipairs(kinds.list) do
  of_name[kind.name] = kind
  if kind.operation then timed[kind.operation] = true end
end

local other = { full = "in" }

-- The name of a collective with this metadata (of t:collectives()). Without a name there, as in replays of
-- graphs and of kernels of most libraries but NCCL, it is the operation in the kernel's name; nil: unknown.
function kinds.name_of(metadata)
  return metadata.name or communication.operation_of_kernel(metadata.kernel)
end

-- The operation, if all ranks of such a collective take part at once, so that the sheets have its latency,
-- waits and skew; else nil.
function kinds.timed_operation(metadata)
  if metadata.name then return kinds.of(metadata.name).operation end
  local operation = communication.operation_of_kernel(metadata.kernel)
  return timed[operation] and operation
end

-- The bytes of elements of this metadata's type, and the same in MB (2^20 bytes); nil: unknown.
function kinds.bytes(metadata, elements)
  local size = collective.element_size(metadata.dtype)
  return size and elements and elements * size or nil
end

function kinds.megabytes(metadata, elements)
  local bytes = kinds.bytes(metadata, elements)
  return bytes and bytes / 2 ^ 20
end

-- The row of a name; if there is none, a row with `full` = "in" alone.
function kinds.of(name) return of_name[name] or other end

return kinds
