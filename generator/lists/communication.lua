-- Kernels that communicate, and bus factors: the one place for "is this kernel a collective?". All sheets of
-- `gentables trace`, all metrics and their messages use it; core.trace reads it with each trace.
local known = require "lists.communication_kernels"

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

-- Adds rows like those of communication_kernels.lua; they come first. Before traces are read.
function communication.add(rows)
  for i, row in ipairs(rows) do table.insert(communication.kernels, i, row) end
  row_of = {}
end

local function is_other(lower)
  for _, beginning in ipairs(communication.others) do
    if lower:sub(1, #beginning) == beginning then return true end
  end
  return false
end

-- The row of `kernels` for a kernel's name; false: it does not communicate.
function communication.of_kernel(kernel)
  local found = row_of[kernel]
  if found ~= nil then return found end
  local lower = kernel:lower()
  found = false
  for _, row in ipairs(is_other(lower) and {} or communication.kernels) do
    if lower:find(row.pattern, 1, true) then
      found = row
      break
    end
  end
  row_of[kernel] = found
  return found
end

-- The operation that a name contains, whoever wrote it; nil: none.
function communication.operation_in(name)
  local letters = name:lower():gsub("[^a-z]", "")
  for _, row in ipairs(communication.operations) do
    if letters:find(row[1], 1, true) then return row[2] end
  end
end

-- The operation of a kernel that communicates; nil: its name has none, as NCCL's generic kernels.
function communication.operation_of_kernel(kernel)
  local row = communication.of_kernel(kernel)
  return row and row.operation or communication.operation_in(kernel:match("^[^(<]*"))
end

local function count_libraries()
  local count, seen = 0, {}
  for _, row in ipairs(known.list) do
    if row.library and not seen[row.library] then count = count + 1 end
    seen[row.library or ""] = true
  end
  return count
end

-- For messages about traces without communication.
communication.NONE = ("no kernel has a name of the %d known libraries; --collectives FILE adds names")
  :format(count_libraries())

return communication
