-- Kernels that communicate, and bus factors: the one place for "is this kernel a collective?". All sheets of
-- `gentables trace`, all metrics and their messages use it; core.trace reads it with each trace.
local known = require "lists.communication_kernels"
local sequences = require "base.sequences"

local communication = {}

-- The rows of communication_kernels.lua, behind those that `add` adds.
communication.kernels = table.move(known.list, 1, #known.list, 1, {})
communication.others = known.others

-- The operation of a name: the first row with a text that the letters of the name, in lower case, contain.
communication.operations = {
  { "allreduce", "AllReduce" }, { "crossdevicereduce", "AllReduce" }, { "reducescatter", "ReduceScatter" },
  { "allgather", "AllGather" }, { "alltoall", "AllToAll" }, { "broadcast", "Broadcast" },
  { "sendrecv", "SendRecv" }, { "send", "SendRecv" }, { "recv", "SendRecv" }, { "barrier", "Barrier" },
  { "reduce", "Reduce" }, { "gather", "Gather" }, { "scatter", "Scatter" },
}

local function share_of_others(ranks) return (ranks - 1) / ranks end
local function one() return 1.0 end

-- busbw / algbw by the number of ranks, as nccl-tests has it: what one link carries.
communication.bus_factors = {
  AllReduce = function(ranks) return 2 * share_of_others(ranks) end,
  ReduceScatter = share_of_others, AllGather = share_of_others, AllToAll = share_of_others,
  Broadcast = one, Reduce = one, SendRecv = one,
}

local row_of = {} -- [name of a kernel] = row, or false

-- The rows that `add` added.
communication.added = {}

-- Adds rows like those of communication_kernels.lua; they come first. Before traces are read.
function communication.add(rows)
  for i, row in ipairs(rows) do
    table.insert(communication.kernels, i, row)
    table.insert(communication.added, i, row)
  end
  row_of = {}
end

local function is_other(lower)
  return sequences.any(communication.others, function(text) return lower:sub(1, #text) == text end)
end

-- The row of `kernels` for a kernel's name; false: it does not communicate.
function communication.of_kernel(kernel)
  local found = row_of[kernel]
  if found ~= nil then return found end
  local lower = kernel:lower()
  found = sequences.find(is_other(lower) and {} or communication.kernels, function(row)
    return lower:find(row.pattern, 1, true)
  end) or false
  row_of[kernel] = found
  return found
end

-- The operation that a name contains, whoever wrote it; nil: none.
function communication.operation_in(name)
  local letters = name:lower():gsub("[^a-z]", "")
  return sequences.first(communication.operations, function(row)
    return letters:find(row[1], 1, true) and row[2]
  end)
end

-- The operation of a kernel that communicates; nil: its name has none, as NCCL's generic kernels.
function communication.operation_of_kernel(kernel)
  local row = communication.of_kernel(kernel)
  return row and row.operation or communication.operation_in(kernel:match("^[^(<]*"))
end

local function count_libraries() return #sequences.distinct(sequences.field(known.list, "library")) end

-- For messages about traces without communication.
communication.NONE = ("no kernel has a name of the %d known libraries; --collectives FILE adds names")
  :format(count_libraries())

return communication
