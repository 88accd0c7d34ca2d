-- A collective by its kernel and metadata: name, bytes and ranks. The names are those of
-- lists/communication.lua, and of a user's file.
local communication = require "lists.communication"
local element_types = require "lists.element_types"
local fail = require "base.fail"
local file = require "core.file"
local lua_data = require "codec.lua_data"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

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

-- ---- kernels of a user's file -----------------------------------------------------------------

local KEYS = { "pattern", "operation", "library", "algorithm", "source" }
local operations = sequences.set(sequences.field(communication.operations, 2))

local function check_keys(where, row)
  for key, value in pairs(row) do
    if not sequences.any(KEYS, function(name) return key == name end) then
      fail.input("%s: unknown key %s; valid keys: %s", where, tostring(key), table.concat(KEYS, ", "))
    end
    if type(value) ~= "string" then
      fail.input("%s: %s is %s; valid is a text", where, key, tostring(value))
    end
  end
end

-- The row `index` of a file, its pattern in lower case.
local function check(path, index, row)
  local where = ("%s: row %d"):format(path, index)
  if type(row) ~= "table" then
    fail.input('%s is %s; write { pattern = "my_allreduce", operation = "AllReduce" }', where, tostring(row))
  end
  check_keys(where, row)
  if not (row.pattern or ""):find("%S") then
    fail.input("%s has no pattern, the text that names of kernels contain", where)
  end
  if row.operation and not operations[row.operation] then
    fail.input("%s: unknown operation %s; valid: %s", where, row.operation,
      table.concat(ordering.sorted_keys(operations), ", "))
  end
  return { pattern = row.pattern:lower(), operation = row.operation, library = row.library,
    algorithm = row.algorithm }
end

-- Reads the rows of the file at `path`, a Lua file that returns a list of them; from then on they come before
-- the program's own. nil: no file. Raises an error with the path, and the line or row.
function collective.add_kernels(path)
  if not path then return end
  local given = lua_data.run(path, fail.unless(file.read(path)))
  if #given == 0 then fail.input('%s:1: has no rows; write return { { pattern = "my_allreduce" } }', path) end
  communication.add(sequences.map(given, function(row, i) return check(path, i, row) end))
end

collective.option = { name = "collectives", value = "FILE",
  help = "kernels that communicate, beside the known ones: a Lua file with rows { pattern, operation }" }

return collective
