-- Models of normalisation: PyTorch's ops, and the fused ones of inference libraries.
local arguments = require "trace.ops.arguments"

local none = require("codec.python_literals").none
local width_of, spec_of, dtype_of = arguments.width_of, arguments.spec_of, arguments.dtype_of
local strides_of, given = arguments.strides_of, arguments.given
local tensor_of, has_tensor = arguments.tensor_of, arguments.has_tensor
local product, sum_of, times = arguments.product, arguments.sum_of, arguments.times

-- The channels: the value of normalized_shape, else the weight's, else dimension 1.
local function channels_of(op, call, x)
  local shape = op.shape and given(call, op.shape)
  if type(shape) == "table" then return product(shape) end
  if not op.shape then return x[2] end
  local weight = tensor_of(call, op.weight, 1)
  return weight and product(weight)
end

-- The facts that both directions need.
local function norm_at(op, call, index)
  local x = tensor_of(call, index, 1)
  local channels = x and channels_of(op, call, x)
  if not channels or channels < 1 then return nil, "its input or its channels are unknown" end
  local training = true
  if op.is_rms then training = false end
  if op.training then training = given(call, op.training) end
  if type(training) == "number" then training = training ~= 0 end
  if training == nil then return nil, "its training flag is unknown" end
  local dtype = dtype_of(call, index)
  local affine, bias = has_tensor(call, op.weight), op.bias ~= nil and has_tensor(call, op.bias)
  local params = { { "op_shape", x }, { "dtype_in_out", { dtype, none } },
    { "stride_input", strides_of(call, index) }, { "stride_output", none }, { "num_channels", channels },
    { "has_bias", bias }, { "is_affine", affine }, { "is_training", training } }
  return { params = params, elements = product(x), channels = channels, affine = affine and 1 or 0,
    bias = bias and 1 or 0, training = training and 1 or 0, width = width_of(dtype), dtype = dtype }
end

local function norm(op, call)
  local at, why = norm_at(op, call, 0)
  if not at then return nil, why end
  local e, c = at.elements, at.channels
  local perf = { params = at.params, spec = spec_of(op, at.dtype) }
  if op.is_rms then
    perf.flops = e // c * (2 * c + 2) + e * (1 + at.affine)
    perf.bytes = times(at.width, 2 * e + c * at.affine)
  else
    perf.flops = 6 * c + 2 * e + 3 * e * at.training
    perf.bytes = times(at.width, 2 * e + c * (2 + at.affine + at.affine * at.bias + 2 * at.training))
  end
  return perf
end

-- With x̂ = x / rms: grad_x = (grad w - x̂ mean(grad w x̂)) / rms, and grad_w = Σ grad x̂ over the rows.
local function rms_backward(at, mask)
  local e, of_x, of_w = at.elements, mask[1] and 1 or 0, mask[2] and at.affine or 0
  return e * (1 + (5 + at.affine) * of_x + 2 * of_w),
    times(at.width, e * (2 + of_x) + at.channels * (at.affine + of_w))
end

local function norm_backward(op, call)
  local at, why = norm_at(op, call, op.x)
  if not at then return nil, why end
  local mask = op.mask and given(call, op.mask)
  if type(mask) ~= "table" then mask = { true, true, true } end
  if not op.bias then at.bias = mask[3] and at.affine or 0 end
  at.params[6][2] = at.bias == 1
  at.params[#at.params + 1] = { "output_mask", mask }
  if op.is_rms then
    local flops, bytes = rms_backward(at, mask)
    return { params = at.params, flops = flops, bytes = bytes, spec = spec_of(op, at.dtype) }
  end
  local e, c, training = at.elements, at.channels, at.training
  local flops = 4 * e + (training == 0 and 3 * c or 0)
  if not mask[1] then flops = flops + 2 * e elseif training == 1 then flops = flops + 5 * e end
  local passes = 1 + (mask[1] and training == 1 and 2 or 1)
  local rows = training + at.affine + at.affine * training * (1 + at.bias)
  return { params = at.params, flops = flops, bytes = times(at.width, e * passes + c * rows),
    spec = spec_of(op, at.dtype) }
end

-- ---- RMSNorm of inference libraries ----------------------------------------------------------------------

-- FLOPs of each element as of aten::_fused_rms_norm: square, sum, scale, weight; with a residual an addition,
-- and with a quantised result a multiplication. op.x, op.weight, op.residual, op.out: indices; without op.out
-- the result is in place of x. A residual is read, and the sum is written to it.
local function library_norm(op, call)
  local x, weight = tensor_of(call, op.x, 1), tensor_of(call, op.weight, 1)
  local channels = weight and product(weight)
  if not x or not channels or channels < 1 or x[#x] ~= channels then
    return nil, "its input or its weight has no shape"
  end
  local dtype, e = dtype_of(call, op.x), product(x)
  local has_residual = op.residual ~= nil and has_tensor(call, op.residual)
  local out = op.out and dtype_of(call, op.out) or dtype
  local width, width_out = width_of(dtype), width_of(out)
  local is_quantised = width_out == 1 and width ~= 1
  local passes = 1 + (has_residual and 2 or 0)
  local flops = e // channels * (2 * channels + 2) + 2 * e
  if has_residual then flops = flops + e end
  if is_quantised then flops = flops + e end
  return { params = { { "op_shape", x }, { "dtype_in_out", { dtype, out } }, { "num_channels", channels },
      { "residual", has_residual } }, flops = flops, spec = spec_of(op, dtype),
    bytes = sum_of(3, times(passes * e, width), times(e, width_out), times(channels, width)) }
end

return { models = { norm = norm, norm_backward = norm_backward, library_norm = library_norm } }
