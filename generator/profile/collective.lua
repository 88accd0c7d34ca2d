-- What is known of a collective: which kernels communicate, the collective's name, bytes and ranks. The names
-- are NCCL's, whoever wrote the kernel or its metadata.
local collective = {}

-- A kernel communicates if its name holds one of these, in any case.
local communicating = { "nccl", "rccl", "cross_device_reduce" }

-- What a name, in small letters without anything else, has to hold; the first that fits.
local names = {
  { "allreduce", "AllReduce" }, { "crossdevicereduce", "AllReduce" }, { "reducescatter", "ReduceScatter" },
  { "allgather", "AllGather" }, { "alltoall", "AllToAll" }, { "broadcast", "Broadcast" },
  { "sendrecv", "SendRecv" }, { "send", "SendRecv" }, { "recv", "SendRecv" }, { "barrier", "Barrier" },
  { "reduce", "Reduce" }, { "gather", "Gather" }, { "scatter", "Scatter" },
}

-- Where kernel and metadata do not say it: NCCL's generic kernels.
collective.unknown = "unknown"

-- Bytes per element, by PyTorch's names of types.
local sizes = { Byte = 1, Char = 1, Bool = 1, Short = 2, Int = 4, Long = 8, Half = 2, BFloat16 = 2, Float = 4,
  Double = 8, ComplexHalf = 4, ComplexFloat = 8, ComplexDouble = 16, Float8_e4m3fn = 1, Float8_e5m2 = 1,
  Float8_e4m3fnuz = 1, Float8_e5m2fnuz = 1, Float8_e8m0fnu = 1, Float4_e2m1fn_x2 = 1, UInt16 = 2,
  UInt32 = 4, UInt64 = 8 }

-- busbw / algbw by the number of ranks, as nccl-tests has it: what one link carries.
local bus_factors = {
  AllReduce = function(n) return 2 * (n - 1) / n end,
  ReduceScatter = function(n) return (n - 1) / n end,
  AllGather = function(n) return (n - 1) / n end,
  AllToAll = function(n) return (n - 1) / n end,
  Broadcast = function() return 1.0 end,
  Reduce = function() return 1.0 end,
  SendRecv = function() return 1.0 end,
}

local is_communication = {} -- [name of a kernel]

function collective.is_communication(kernel)
  local known = is_communication[kernel]
  if known == nil then
    known = false
    for _, part in ipairs(communicating) do
      known = known or kernel:lower():find(part, 1, true) ~= nil
    end
    is_communication[kernel] = known
  end
  return known
end

local function name_in(text)
  local letters = text:lower():gsub("[^a-z]", "")
  for _, name in ipairs(names) do
    if letters:find(name[1], 1, true) then return name[2] end
  end
end

-- Bytes of one element of a type as metadata name it; nil: unknown.
function collective.element_size(dtype) return dtype and sizes[(dtype:gsub("^c10::", ""))] end

-- The full message: what all ranks have after a gather, and else what one rank puts in. nil: not told.
local function bytes_of(name, told)
  local gathers = name == "AllGather" or name == "Gather"
  local elements = gathers and told.out_elements or told.in_elements
  local size = collective.element_size(told.dtype)
  return size and elements >= 0 and elements * size or nil
end

-- { name, group, group_size, bytes } of a kernel; `told` is the metadata of core.activity, or nil.
function collective.describe(kernel, told)
  local by_kernel = name_in(kernel:match("^[^(<]*"))
  if not told then return { name = by_kernel or collective.unknown } end
  local name = name_in(told.name) or by_kernel or collective.unknown
  return { name = name, group = told.group, group_size = told.group_size > 0 and told.group_size or nil,
    bytes = bytes_of(name, told) }
end

-- What to multiply algbw with; nil: not known for this collective or number of ranks.
function collective.bus_factor(name, group_size)
  local factor = bus_factors[name]
  return factor and group_size and factor(group_size)
end

return collective
