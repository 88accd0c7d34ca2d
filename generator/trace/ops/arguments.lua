-- The arguments of an op in a trace, by their index from 0: shapes, types, strides, values. `call` is as in
-- perf_model.lua.
local element_types = require "lists.element_types"
local families = require "trace.ops.families"
local python_literals = require "codec.python_literals"
local sequences = require "base.sequences"

local none = python_literals.none
local arguments = {}

-- ---- Types -----------------------------------------------------------------------------------------------

local function type_of(name) return type(name) == "string" and element_types.of_input(name) or nil end

function arguments.width_of(name)
  local row = type_of(name)
  return row and row.bytes
end

-- The numbers in an element of a type, as traces count elements: 2 for pairs of four bits.
function arguments.packed(name)
  local row = type_of(name)
  return row and row.packed or 1
end

-- By PyTorch's number of a type.
function arguments.width_of_number(number)
  local row = number and element_types.of_number(number)
  return row and row.bytes
end

function arguments.spec_of(op, name)
  local row = type_of(name)
  return row and row.precision and families.family(op).unit .. "_" .. row.precision or nil
end

-- ---- Arguments, by their index from 0 --------------------------------------------------------------------

local function doubles_of(list)
  return sequences.map(list, function(value) return type(value) == "number" and value + 0.0 or value end)
end

-- The shape of an argument: a list of integers, empty for a number; nil: it has none, or it is a list of
-- tensors.
function arguments.shape_of(call, index)
  local shape = call.dims and call.dims[index + 1]
  if type(shape) ~= "table" then return nil end
  for _, size in ipairs(shape) do
    if math.type(size) ~= "integer" or size < 0 then return nil end
  end
  return call.in_doubles and doubles_of(shape) or shape
end

-- The shape of a tensor with at least this many dimensions.
function arguments.tensor_of(call, index, least)
  local shape = arguments.shape_of(call, index)
  return shape and #shape >= least and shape or nil
end

-- The elements of a tensor in memory: an expanded one repeats some along dimensions with a stride of 0; these
-- count once.
function arguments.stored(call, index)
  local shape, strides = arguments.shape_of(call, index), arguments.strides_of(call, index)
  local count = 1
  for i, size in ipairs(shape or {}) do
    if strides == none or strides[i] ~= 0 then count = count * size end
  end
  return shape and count
end

function arguments.has_tensor(call, index) return arguments.tensor_of(call, index, 1) ~= nil end

function arguments.dtype_of(call, index)
  local name = call.types and call.types[index + 1]
  return type(name) == "string" and name or none
end

function arguments.strides_of(call, index)
  local strides = call.strides and call.strides[index + 1]
  return type(strides) == "table" and strides or none
end

-- The value of an argument that is not a tensor: a number, a boolean or a list; nil: unknown.
function arguments.given(call, index)
  local text = call.concrete and call.concrete[index + 1]
  if type(text) ~= "string" or text == "" then return nil end
  if text == "True" or text == "False" then return text == "True" end
  if not text:find("^%[") then
    local number = tonumber(text)
    return number and call.in_doubles and number + 0.0 or number
  end
  local list = {}
  for item in text:sub(2, -2):gmatch("[^,%s]+") do
    local value = tonumber(item)
    if item == "True" or item == "False" then value = item == "True" end
    if value == nil then return nil end
    list[#list + 1] = value
  end
  return call.in_doubles and doubles_of(list) or list
end

function arguments.product(shape, from)
  local result = 1
  for i = from or 1, #shape do result = result * shape[i] end
  return result
end

-- Σ factors[i] * (a term), or nil if one is nil: unknown values are not guessed.
function arguments.sum_of(count, ...)
  local total = 0
  for i = 1, count do
    local term = select(i, ...)
    if not term then return nil end
    total = total + term
  end
  return total
end

function arguments.times(a, b) return a and b and a * b end

return arguments
