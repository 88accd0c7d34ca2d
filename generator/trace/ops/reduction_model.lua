-- Models of ops that reduce a dimension, or that need all of it: sums, softmax, sorting, losses, pooling.
local arguments = require "trace.ops.arguments"

local none = require("codec.python_literals").none
local width_of, spec_of, dtype_of = arguments.width_of, arguments.spec_of, arguments.dtype_of
local shape_of, given = arguments.shape_of, arguments.given
local tensor_of, has_tensor = arguments.tensor_of, arguments.has_tensor
local product, sum_of, times = arguments.product, arguments.sum_of, arguments.times

local INDEX = 8 -- bytes of an index that an op gives

-- The number of elements of the result; nil: the reduced dimensions are unknown.
local function reduced_size(op, call, shape)
  if op.is_scan then return product(shape) end
  if #call.dims <= op.dims then return 1 end
  if not call.concrete then return nil end
  local dims = given(call, op.dims)
  if type(dims) == "number" and #call.dims > 2 then dims = { dims } end
  if type(dims) ~= "table" or #dims == 0 then return 1 end
  local rest = table.move(shape, 1, #shape, 1, {})
  for _, dimension in ipairs(dims) do
    local index = math.tointeger(dimension < 0 and #shape + dimension + 1 or dimension + 1)
    if not index or not rest[index] then return nil end
    rest[index] = 1
  end
  return product(rest)
end

local reductions = { "mean", "max", "min", "norm", "all", "any" }

local function reduce(op, call)
  local shape = shape_of(call, 0)
  if not shape then return nil, "its input has no shape" end
  if op.dims == 1 and has_tensor(call, 1) then return nil, "its dimensions are a tensor" end
  local kind = "sum"
  for _, word in ipairs(reductions) do
    if op.name:find(word, 1, true) then
      kind = word
      break
    end
  end
  local dtype, count, out = dtype_of(call, 0), product(shape), reduced_size(op, call, shape)
  local width = width_of(dtype)
  return { params = { { "num_input_elems", count }, { "num_output_elems", out or none },
      { "dtype_in_out", { dtype, none } }, { "reduce_type", kind } },
    flops = count, spec = spec_of(op, dtype),
    bytes = sum_of(2, times(count, width), times(out, op.out_bytes or width)) }
end

-- ---- Softmax ---------------------------------------------------------------------------------------------

-- Of each element: the maximum, the difference from it, its exponential, the sum, the quotient (or, of
-- log_softmax, a second difference). Argument 2: a result in float32.
local function softmax(op, call)
  local shape, dtype = tensor_of(call, 0, 1), dtype_of(call, 0)
  if not shape then return nil, "its input has no shape" end
  local width = width_of(dtype)
  local width_out = given(call, 2) == true and 4 or width
  local count = product(shape)
  return { params = { { "op_shape", shape }, { "dtype_in", dtype }, { "dim", given(call, 1) or none } },
    flops = 5 * count, bytes = times(count, sum_of(2, width, width_out)), spec = spec_of(op, dtype) }
end

-- From the gradient g and the result y: (g - sum(g y)) y, or g - exp(y) sum(g) of log_softmax: 4 for each
-- element.
local function softmax_backward(op, call)
  local shape, dtype = tensor_of(call, 0, 1), dtype_of(call, 0)
  if not shape then return nil, "its input has no shape" end
  local width = width_of(dtype)
  local number = given(call, 3)
  local width_in = number and arguments.width_of_number(math.tointeger(number)) or width
  local count = product(shape)
  return { params = { { "op_shape", shape }, { "dtype_in", dtype }, { "dim", given(call, 2) or none } },
    flops = 4 * count, bytes = times(count, sum_of(3, width, width, width_in)), spec = spec_of(op, dtype) }
end

-- ---- Order -----------------------------------------------------------------------------------------------

-- The size of a dimension, which may count from the end.
local function size_at(shape, dimension)
  if not dimension then return nil end
  return shape[math.tointeger(dimension < 0 and #shape + dimension + 1 or dimension + 1)]
end

-- Values and their places, as many as stay: all of them, or k of each row. One comparison of each element, as
-- the number of passes depends on the method.
local function order(op, call)
  local shape, dtype = shape_of(call, 0), dtype_of(call, 0)
  if not shape then return nil, "its input has no shape" end
  local count = product(shape)
  local k = op.k and given(call, op.k)
  local out = count
  if op.k then
    local size = size_at(shape, given(call, op.dim) or -1)
    if not k or not size or size == 0 then return nil, "its k or its dimension is unknown" end
    out = count // size * k
  end
  local width = width_of(dtype)
  return { params = { { "op_shape", shape }, { "dtype_in", dtype }, { "k", k or none } }, flops = count,
    bytes = sum_of(2, times(count, width), times(out, sum_of(2, width, INDEX))), spec = spec_of(op, dtype) }
end

-- ---- Losses ----------------------------------------------------------------------------------------------

-- Negative log likelihood: of each row the element of its class.
local function nll_loss(op, call)
  local x, classes = tensor_of(call, 0, 1), shape_of(call, 1)
  if not x or not classes then return nil, "its input has no shape" end
  local dtype, rows = dtype_of(call, 0), product(classes)
  return { params = { { "op_shape", x }, { "dtype_in", dtype } }, flops = rows, spec = spec_of(op, dtype),
    bytes = times(rows, sum_of(2, width_of(dtype), width_of(dtype_of(call, 1)))) }
end

-- Its gradient: zero but for one element of each row; the zeros are written first.
local function nll_loss_backward(op, call)
  local x, classes = tensor_of(call, 1, 1), shape_of(call, 2)
  if not x or not classes then return nil, "its input has no shape" end
  local dtype, rows = dtype_of(call, 1), product(classes)
  local width = width_of(dtype)
  return { params = { { "op_shape", x }, { "dtype_in", dtype } }, flops = rows, spec = spec_of(op, dtype),
    bytes = sum_of(2, times(product(x), width), times(rows, sum_of(2, width, width_of(dtype_of(call, 2))))) }
end

-- ---- Pooling ---------------------------------------------------------------------------------------------

-- A setting for both dimensions: [3, 3], [3], or 3.
local function pair(call, index, default)
  local value = given(call, index)
  if type(value) ~= "table" then value = { value } end
  if #value == 0 then return default end
  return { value[1], value[2] or value[1] }
end

-- The result's shape of a maximum over windows; the last two dimensions are those of the window. Rounded up,
-- the last window must still begin in the input or in the padding before it.
local function pooled_shape(shape, call)
  local window = pair(call, 1)
  local step, padding, dilation = pair(call, 2, window), pair(call, 3, { 0, 0 }), pair(call, 4, { 1, 1 })
  local out, rest = table.move(shape, 1, #shape, 1, {}), given(call, 5) and 1 or 0
  for i = 1, 2 do
    local at = #shape - 2 + i
    if not window or step[i] < 1 then return nil end
    local span = shape[at] + 2 * padding[i] - dilation[i] * (window[i] - 1) - 1
    out[at] = (span + rest * (step[i] - 1)) // step[i] + 1
    if rest == 1 and (out[at] - 1) * step[i] >= shape[at] + padding[i] then out[at] = out[at] - 1 end
    if out[at] < 1 then return nil end
  end
  return out, window[1] * window[2]
end

local function max_pool(op, call)
  local shape = tensor_of(call, 0, 3)
  local out, window
  if shape then out, window = pooled_shape(shape, call) end
  if not out then return nil, "its input or its window is unknown" end
  local dtype = dtype_of(call, 0)
  local width = width_of(dtype)
  return { params = { { "op_shape", out }, { "input_shape", shape }, { "dtype_in", dtype } },
    flops = product(out) * window, spec = spec_of(op, dtype),
    bytes = sum_of(2, times(product(shape), width), times(product(out), sum_of(2, width, INDEX))) }
end

-- Adds each gradient at the place of the maximum; writes all of the gradient of the input.
local function max_pool_backward(op, call)
  local out, shape = tensor_of(call, 0, 3), tensor_of(call, 1, 3)
  if not out or not shape then return nil, "its input has no shape" end
  local dtype = dtype_of(call, 0)
  local width = width_of(dtype)
  return { params = { { "op_shape", out }, { "input_shape", shape }, { "dtype_in", dtype } },
    flops = product(out), spec = spec_of(op, dtype),
    bytes = sum_of(2, times(product(shape), width), times(product(out), sum_of(2, width, INDEX))) }
end

return { models = { reduce = reduce, softmax = softmax, softmax_backward = softmax_backward, order = order,
  nll_loss = nll_loss, nll_loss_backward = nll_loss_backward, max_pool = max_pool,
  max_pool_backward = max_pool_backward } }
