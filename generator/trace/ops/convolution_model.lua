-- Models of convolutions.
local arguments = require "trace.ops.arguments"

local width_of, spec_of, dtype_of = arguments.width_of, arguments.spec_of, arguments.dtype_of
local strides_of, given = arguments.strides_of, arguments.given
local tensor_of, has_tensor = arguments.tensor_of, arguments.has_tensor
local product, times = arguments.product, arguments.times

-- A list with one value for each of `count` dimensions.
local function for_each_dimension(value, count, default)
  if type(value) ~= "table" then value = { value or default } end
  if #value == count then return value end
  if #value ~= 1 then return nil end
  local result = {}
  for i = 1, count do result[i] = value[1] end
  return result
end

-- The settings of a convolution with its input at index `input`; nil if they are unknown.
local function settings_of(call, input, count)
  if not call.concrete then return nil end
  local at = {}
  for i, key in ipairs { "stride", "padding", "dilation" } do
    at[key] = for_each_dimension(given(call, input + 2 + i), count, key == "padding" and 0 or 1)
  end
  at.transposed = given(call, input + 6) or false
  at.output_padding = for_each_dimension(given(call, input + 7), count, 0)
  at.groups = given(call, input + 8) or 1
  if not (at.stride and at.padding and at.dilation and at.output_padding) then return nil end
  return at
end

local function output_shape(x, filter, at)
  local shape = { x[1], at.transposed and filter[2] * at.groups or filter[1] }
  for i = 1, #x - 2 do
    local reach = at.dilation[i] * (filter[i + 2] - 1)
    local size = (x[i + 2] + 2 * at.padding[i] - reach - 1) // at.stride[i] + 1
    if at.transposed then
      size = (x[i + 2] - 1) * at.stride[i] - 2 * at.padding[i] + reach + at.output_padding[i] + 1
    end
    if size < 0 then return nil end
    shape[i + 2] = size
  end
  return shape
end

-- The facts that both directions need: x, filter, out (elements), channels, params, work (a multiply and an
-- add are 2).
local function convolution_at(call, input, has_bias)
  local x, filter = tensor_of(call, input, 3), tensor_of(call, input + 1, 3)
  if not x or not filter or #x ~= #filter then return nil, "input or filter has no shape" end
  local at = settings_of(call, input, #x - 2)
  if not at then return nil, "its settings are unknown" end
  for _, step in ipairs(at.stride) do
    if step < 1 then return nil, "its settings are unknown" end
  end
  local out = output_shape(x, filter, at)
  if not out then return nil, "the filter is larger than the input" end
  local dtypes = { dtype_of(call, input), dtype_of(call, input + 1) }
  local params = { { "convNd", "conv" .. #x - 2 .. "d" }, { "input_shape", x }, { "filter_shape", filter },
    { "dtype_input_weight", dtypes }, { "input_stride", strides_of(call, input) },
    { "weight_stride", strides_of(call, input + 1) }, { "bias", has_bias }, { "stride", at.stride },
    { "padding", at.padding }, { "dilation", at.dilation }, { "transposed_conv", at.transposed },
    { "output_padding", at.output_padding }, { "groups", at.groups } }
  return { params = params, out = product(out), channels = out[2], elements = product(x) + product(filter),
    work = 2 * product(at.transposed and x or out) * product(filter, 2), dtype = dtypes[1] }
end

local function convolution(op, call)
  local has_bias = has_tensor(call, op.input + 2)
  local at, why = convolution_at(call, op.input, has_bias)
  if not at then return nil, why end
  local bytes = at.elements + at.out + (has_bias and at.channels or 0)
  return { params = at.params, flops = at.work + (has_bias and at.out or 0),
    bytes = times(width_of(at.dtype), bytes), spec = spec_of(op, at.dtype) }
end

local function convolution_sums_backward(op, call, input, has_bias)
  local at, why = convolution_at(call, input, has_bias)
  if not at then return nil, why end
  local bytes = 2 * (at.elements + at.out) + (has_bias and at.out + at.channels or 0)
  return { params = at.params, flops = 2 * at.work + (has_bias and at.out or 0),
    bytes = times(width_of(at.dtype), bytes), spec = spec_of(op, at.dtype) }
end

-- The sizes of an absent bias are [0] or missing.
local function convolution_backward(op, call)
  local sizes = given(call, op.input + 2)
  local has_bias = type(sizes) == "table" and #sizes > 0 and product(sizes) > 0
  return convolution_sums_backward(op, call, op.input, has_bias)
end

local function backward_of_convolution(op, call)
  return convolution_sums_backward(op, call, op.input, has_tensor(call, op.input + 2))
end

return {
  models = { convolution = convolution, convolution_backward = convolution_backward },
  backward = { convolution = backward_of_convolution },
}
