-- Models of ops element by element. An op counts 1 FLOP for each element of its result, a copy too, as other
-- analysers count; every tensor moves once.
local arguments = require "trace.ops.arguments"
local python_literals = require "codec.python_literals"

local none = python_literals.none
local width_of, spec_of, dtype_of = arguments.width_of, arguments.spec_of, arguments.dtype_of
local shape_of, strides_of, given = arguments.shape_of, arguments.strides_of, arguments.given
local tensor_of, has_tensor = arguments.tensor_of, arguments.has_tensor
local product, sum_of, times = arguments.product, arguments.sum_of, arguments.times

local function unary(op, call)
  local shape = shape_of(call, 0)
  if not shape then return nil, "its input has no shape" end
  local has_out = has_tensor(call, 1)
  local dtype, out = dtype_of(call, 0), has_out and dtype_of(call, 1) or none
  local width = width_of(dtype)
  local width_out = width
  if has_out then width_out = width_of(out) elseif op.out_bytes then width_out = op.out_bytes end
  local count = product(shape)
  return { params = { { "op_shape", shape }, { "dtype_in_out", { dtype, out } },
      { "stride_input", strides_of(call, 0) }, { "stride_output", has_out and strides_of(call, 1) or none } },
    flops = count, bytes = times(count, sum_of(2, width, width_out)), spec = spec_of(op, dtype) }
end

-- The result has the type of the input.
local function resized(op, call, out, extra)
  local shape, dtype = shape_of(call, 0), dtype_of(call, 0)
  local params = { { "op_shape", out }, { "dtype_in_out", { dtype, dtype } },
    { "stride_input", strides_of(call, 0) }, { "stride_output", none }, { "input_shape", shape },
    { "output_shape", out } }
  params[#params + 1] = extra
  return { params = params, flops = product(out), spec = spec_of(op, dtype),
    bytes = times(width_of(dtype), product(shape) + product(out)) }
end

-- Padding comes in pairs, the last dimension's first.
local function pad(op, call)
  local shape, padding = tensor_of(call, 0, 1), given(call, 1)
  if not shape or type(padding) ~= "table" or #padding % 2 == 1 or #padding > 2 * #shape then
    return nil, "its input or padding is unknown"
  end
  local out = table.move(shape, 1, #shape, 1, {})
  for i = 1, #padding, 2 do
    local dimension = #out - i // 2
    out[dimension] = out[dimension] + padding[i] + padding[i + 1]
  end
  return resized(op, call, out, { "padding", padding })
end

local function upsample(op, call)
  local shape, size, factors = tensor_of(call, 0, 3), given(call, 1), given(call, 2)
  if not shape then return nil, "its input has no shape" end
  local out = { shape[1], shape[2] }
  for i = 3, #shape do
    if type(size) == "table" and #size == #shape - 2 then
      out[i] = size[i - 2]
    elseif type(factors) == "table" and #factors == #shape - 2 then
      out[i] = math.floor(shape[i] * factors[i - 2])
    else
      return nil, "its output size is unknown"
    end
  end
  return resized(op, call, out)
end

-- The shape of tensors that are broadcast to fit each other; nil: they do not fit.
local function broadcast_shape(shapes)
  local out = {}
  for _, shape in ipairs(shapes) do
    for _ = #out + 1, #shape do table.insert(out, 1, 1) end
    for i = 0, #shape - 1 do
      local size, at = shape[#shape - i], #out - i
      if out[at] == 1 then out[at] = size elseif size ~= 1 and size ~= out[at] then return nil end
    end
  end
  return out
end

local function binary(op, call)
  local a, b = shape_of(call, 0), shape_of(call, 1)
  local out_shape = a and b and broadcast_shape { a, b }
  local count = out_shape and product(out_shape)
  if not count then return nil, "the shapes of its inputs do not fit" end
  local has_out = has_tensor(call, 2)
  local type_a, type_b, out = dtype_of(call, 0), dtype_of(call, 1), has_out and dtype_of(call, 2) or none
  local width_a, width_b = width_of(type_a), width_of(type_b)
  local width_out = op.out_bytes or width_a
  if has_out then
    width_out = width_of(out)
  elseif not op.out_bytes and #a > 0 and #b > 0 and width_a and width_b then
    width_out = math.max(width_a, width_b)
  end
  return { params = { { "shape_in1", a }, { "shape_in2", b },
      { "dtype_in1_in2_out", { type_a, type_b, out } }, { "stride_input1", strides_of(call, 0) },
      { "stride_input2", strides_of(call, 1) },
      { "stride_output", has_out and strides_of(call, 2) or none } },
    flops = count, spec = spec_of(op, type_a),
    bytes = sum_of(3, times(product(a), width_a), times(product(b), width_b), times(count, width_out)) }
end

-- Any number of inputs, broadcast; the result has the type of argument op.result.
local function pointwise(op, call)
  local shapes, bytes = {}, 0
  for i, index in ipairs(op.inputs) do
    shapes[i] = shape_of(call, index)
    if not shapes[i] then return nil, "one of its inputs has no shape" end
    bytes = sum_of(2, bytes, times(product(shapes[i]), width_of(dtype_of(call, index))))
  end
  local out = broadcast_shape(shapes)
  if not out then return nil, "the shapes of its inputs do not fit" end
  local dtype = dtype_of(call, op.result)
  return { params = { { "op_shape", out }, { "input_shapes", shapes }, { "dtype_out", dtype } },
    flops = product(out), spec = spec_of(op, dtype),
    bytes = sum_of(2, bytes, times(product(out), width_of(dtype))) }
end

-- An op that writes all of its first argument and reads nothing: fills, random numbers.
local function fill(op, call)
  local shape, dtype = shape_of(call, 0), dtype_of(call, 0)
  if not shape then return nil, "its output has no shape" end
  return { params = { { "op_shape", shape }, { "dtype_out", dtype } }, flops = op.work * product(shape),
    bytes = times(product(shape), width_of(dtype)), spec = spec_of(op, dtype) }
end

-- The numbers of aten::arange, by its number of arguments: 5 to 7 with a type after them, else with a result.
local numbers_of = { [2] = 1, [4] = 3, [5] = 1, [6] = 2, [7] = 3 }

-- The bytes of an element of the result; without a type it is int64 for integers, else float32.
local function width_of_range(call, count)
  if #call.dims < 5 then return width_of(dtype_of(call, count)) end
  local number = given(call, count)
  if number then return arguments.width_of_number(math.tointeger(number)) end
  return table.concat(call.concrete, " ", 1, count):find(".", 1, true) and 4 or 8
end

local function arange(_, call)
  local count, numbers = numbers_of[#call.dims], {}
  for i = 1, count or 0 do numbers[i] = given(call, i - 1) end
  local step = numbers[3] or 1
  if not count or #numbers ~= count or step == 0 then return nil, "its range is unknown" end
  local first, last = 0, numbers[1]
  if count > 1 then first, last = numbers[1], numbers[2] end
  local size = math.max(0, math.ceil((last - first) / step))
  return { params = { { "op_shape", { size } }, { "start", first }, { "step", step } }, flops = size,
    bytes = times(size, width_of_range(call, count)) }
end

return { models = { unary = unary, pad = pad, upsample = upsample, binary = binary, pointwise = pointwise,
  fill = fill, arange = arange } }
