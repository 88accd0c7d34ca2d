-- Models of ops that only move elements: joins, and rows or elements by index. They compute nothing, except
-- those that add.
local arguments = require "trace.ops.arguments"
local element_types = require "lists.element_types"

local none = require("codec.python_literals").none
local width_of, dtype_of = arguments.width_of, arguments.dtype_of
local shape_of, given, stored = arguments.shape_of, arguments.given, arguments.stored
local product, sum_of, times = arguments.product, arguments.sum_of, arguments.times

-- ---- Joins -----------------------------------------------------------------------------------------------

-- The bytes of an element, from the name of a kernel, since a trace has no types for lists of tensors:
-- CatArrayBatchedCopy<...OpaqueType<2u>...> or <float...>; nil: unknown.
local function width_in_kernels(call)
  for _, name in ipairs(call.kernels()) do
    local bytes = name:match("CatArrayBatchedCopy[%w_]*<[^<>]*OpaqueType<(%d+)u?>")
    if bytes then return math.tointeger(tonumber(bytes)) end
    local type = name:match("CatArrayBatchedCopy[%w_]*<([%w:]+)[,>]")
    local row = type and element_types.of_input(type)
    if row then return row.bytes end
  end
end

-- The elements of all tensors of a list; nil: the trace lacks a shape.
local function elements_of(call, list)
  if type(list) ~= "table" or #list == 0 then return nil end
  local count = 0
  for _, shape in ipairs(list) do
    if type(shape) ~= "table" then return nil end
    local elements = call.in_doubles and 1.0 or 1
    for _, size in ipairs(shape) do elements = elements * size end
    count = count + elements
  end
  return count
end

-- aten::cat, and its overload with the result before the list.
local function concatenation(_, call)
  local result = dtype_of(call, 1) == "TensorList"
  local count = elements_of(call, call.dims[result and 2 or 1])
  if not count then return nil, "the shapes of its list are not in the trace" end
  local width = result and width_of(dtype_of(call, 0)) or width_in_kernels(call)
  return { params = { { "num_elems", count }, { "tensors", #call.dims[result and 2 or 1] } }, flops = 0,
    bytes = times(2 * count, width) }
end

-- ---- By index --------------------------------------------------------------------------------------------

local function with_params(x, index, dtype, perf)
  perf.params = { { "op_shape", x }, { "index_shape", index }, { "dtype", dtype } }
  return perf
end

-- Reads the elements that the index selects, and writes them; op.by_row: it selects rows along a dimension.
local function gather(op, call)
  local x, index = shape_of(call, 0), shape_of(call, op.index)
  if not x or not index then return nil, "its input or its index has no shape" end
  local dtype, count = dtype_of(call, 0), product(index)
  if op.by_row then
    local dimension = given(call, op.index - 1)
    local size = dimension and x[math.tointeger(dimension < 0 and #x + dimension + 1 or dimension + 1)]
    if not size or size == 0 then return nil, "its dimension is unknown" end
    count = product(x) // size * count
  end
  return with_params(x, index, dtype, { flops = 0, bytes = sum_of(2, times(2 * count, width_of(dtype)),
    times(stored(call, op.index), width_of(dtype_of(call, op.index)))) })
end

-- Writes the elements that the index selects, from a tensor of as many or one value; op.adds: it reads them
-- before. op.counts_source: the index selects rows, so that the source has the number of elements.
local function scatter(op, call)
  local x, index, source = shape_of(call, 0), shape_of(call, op.index), shape_of(call, op.source)
  if not x or not index then return nil, "its input or its index has no shape" end
  local dtype, is_tensor = dtype_of(call, 0), source ~= nil and #source > 0
  local count = product(op.counts_source and source or index)
  local passes = 1 + (is_tensor and 1 or 0) + (op.adds and 1 or 0)
  return with_params(x, index, dtype, { flops = op.adds and count or 0,
    bytes = sum_of(2, times(passes * count, width_of(dtype)),
      times(stored(call, op.index), width_of(dtype_of(call, op.index)))) })
end

-- Writes values at indices, which a trace lacks, so that they do not count. A single value, or a single
-- row of values, may be written at any number of places.
local function index_put(_, call)
  local x, values = shape_of(call, 0), shape_of(call, 2)
  if not x or not values then return nil, "its input or its values have no shape" end
  if product(values) == 1 and product(x) > 1 or values[1] == 1 and (x[1] or 1) > 1 then
    return nil, "its indices are not in the trace"
  end
  local dtype, adds = dtype_of(call, 0), given(call, 3) == true
  local count = product(values)
  return with_params(x, none, dtype, { flops = adds and count or 0,
    bytes = times((adds and 3 or 2) * count, width_of(dtype)) })
end

-- Adds rows of gradients to those that the index selects, of a table that is filled with zeros before.
local function embedding_backward(_, call)
  local rows, index, size = shape_of(call, 0), shape_of(call, 1), given(call, 2)
  if not rows or #rows == 0 or not index or not size then return nil, "its gradient has no shape" end
  local dtype, count, width = dtype_of(call, 0), product(rows), width_of(dtype_of(call, 0))
  return with_params({ size, rows[#rows] }, index, dtype, { flops = count,
    bytes = sum_of(2, times(size * rows[#rows] + 3 * count, width),
      times(product(index), width_of(dtype_of(call, 1)))) })
end

-- Counts elements in bins.
local function histogram(_, call)
  local x, bins = shape_of(call, 0), given(call, 1)
  if not x or not bins then return nil, "its input has no shape" end
  local dtype = dtype_of(call, 0)
  return with_params(x, { bins }, dtype,
    { flops = product(x), bytes = times(product(x) + bins, width_of(dtype)) })
end

-- One element to the host.
local function scalar(_, call)
  local x, dtype = shape_of(call, 0), dtype_of(call, 0)
  if not x then return nil, "its input has no shape" end
  return with_params(x, none, dtype, { flops = 0, bytes = times(2, width_of(dtype)) })
end

return { models = { concatenation = concatenation, gather = gather, scatter = scatter, index_put = index_put,
  embedding_backward = embedding_backward, histogram = histogram, scalar = scalar } }
