-- Kernels that communicate, and bus factors: the one place for "is this kernel a collective?".
--
-- How to add a library's kernels: a row in `kernels`. All sheets of `gentables trace`, all metrics and their
-- messages use it; core.trace reads it when it is loaded.
local communication = {}

-- A kernel belongs to the first row with a `pattern`, a plain text in lower case, that is in its name in
-- lower case.
--   library     the library that has the kernel
--   operation   a name of `operations`; absent: the kernel's name contains it
--   algorithm   absent: unknown, or the kernel's name contains it
communication.kernels = {
  { library = "NCCL", pattern = "nccl" },
  { library = "RCCL", pattern = "rccl" },
  { library = "vLLM", pattern = "cross_device_reduce_1stage", operation = "AllReduce",
    algorithm = "ONESHOT" },
  { library = "vLLM", pattern = "cross_device_reduce_2stage", operation = "AllReduce",
    algorithm = "TWOSHOT" },
  { library = "vLLM", pattern = "cross_device_reduce", operation = "AllReduce" },
}

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

-- The row of `kernels` for a kernel's name; false: it does not communicate.
function communication.of_kernel(kernel)
  local found = row_of[kernel]
  if found == nil then
    local lower = kernel:lower()
    found = false
    for _, row in ipairs(communication.kernels) do
      if lower:find(row.pattern, 1, true) then
        found = row
        break
      end
    end
    row_of[kernel] = found
  end
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

-- The patterns, for messages: "a, b or c".
function communication.patterns_text()
  local patterns = {}
  for _, row in ipairs(communication.kernels) do
    if not row.algorithm then table.insert(patterns, row.pattern) end
  end
  local last = table.remove(patterns)
  return table.concat(patterns, ", ") .. " or " .. last
end

return communication
