-- The work of an op, from its shapes: FLOPs and bytes, one function per family of families.lua. Called once
-- per distinct op and arguments, never per event.
--
--   perf_model.of(op, call) -> { params = { { name, value }, ... }, flops, bytes, spec } | nil, reason
--   perf_model.backward_of(op, call) -> the same for its backward; nil: it has no model
--
-- `op` is a row of families.lua; call = { dims, types, strides, concrete, kernels }: the first four are of
-- the arguments (lists; codec/python_literals.lua reads them), kernels() returns the names of the kernels.
-- bytes and spec are nil if the width or the precision of a type is unknown. Values of params are those of
-- codec/python_literals.lua.
local arguments = require "trace.ops.arguments"
local fail = require "base.fail"
local python_literals = require "codec.python_literals"

local none = python_literals.none
local width_of, spec_of, dtype_of = arguments.width_of, arguments.spec_of, arguments.dtype_of
local shape_of, strides_of, given = arguments.shape_of, arguments.strides_of, arguments.given
local tensor_of, has_tensor = arguments.tensor_of, arguments.has_tensor
local product, sum_of, times = arguments.product, arguments.sum_of, arguments.times

local perf_model = {}

perf_model.NO_SHAPES = "shapes are missing"

-- ---- Matrix products -------------------------------------------------------------------------------------

local letters = { T = true, N = false }

-- Whether A and B are transposed, if the kernel's name shows it. Tensile: Ailk, Alik and Bljk, Bjlk; nvjet:
-- the first two letters of its last word.
local function transposition(name)
  local a = name:find("Alik", 1, true) and true or not name:find("Ailk", 1, true) and none
  local b = name:find("Bjlk", 1, true) and true or not name:find("Bljk", 1, true) and none
  if a ~= none and b ~= none then return { a, b } end
  if not name:find("^nvjet") then return nil end
  local first, second = name:match("_([NT])([NT])[^_]*$")
  if first then return { letters[first], letters[second] } end
end

local function transposition_of(call)
  for _, name in ipairs(call.kernels()) do
    local found = transposition(name)
    if found then return found end
  end
end

-- batch, M, N, K; nil if the shapes do not fit.
local function sizes_of(op, call)
  local a, b = shape_of(call, op.a), shape_of(call, op.b)
  if not a or not b or #a ~= #b or (#a ~= 2 and #a ~= 3) then return nil end
  local batch = #a == 3 and a[1] or 1
  local m, k, n = a[#a - 1], a[#a], b[#b]
  local k_of_b = b[#b - 1]
  if op.transposed_a then -- column-major: rows of A and of B lie along K where A is transposed, and B is not
    local is_a, is_b = given(call, op.transposed_a), given(call, op.transposed_b)
    if is_a == 0 or is_a == false then m, k = k, m end
    if not (is_b == 1 or is_b == true) then k_of_b, n = n, k_of_b end
  end
  if k ~= k_of_b or (#b == 3 and b[1] ~= batch) then return nil end
  return batch, m, n, k
end

local function gemm(op, call)
  local batch, m, n, k = sizes_of(op, call)
  if not batch then return nil, "the shapes of A and B do not fit" end
  local has_bias = op.has_bias or (op.is_scaled and #call.dims == 3) or false
  local is_batched = #shape_of(call, op.a) == 3
  local dtype = dtype_of(call, op.a)
  local params = { { "M", m }, { "N", n }, { "K", k }, { "bias", has_bias },
    { "stride_A", strides_of(call, op.a) }, { "stride_B", strides_of(call, op.b) },
    { "dtype_A_B", { dtype, dtype_of(call, op.b) } } }
  table.insert(params, is_batched and 1 or #params + 1, { "B", batch })
  local found = transposition_of(call)
  if found then params[#params + 1] = { "transpose", found } end
  local width = width_of(dtype)
  local width_out = op.is_scaled and width == 1 and 2 or width
  local bias = has_bias and n or 0
  return { params = params, flops = batch * (2 * m * n * k + (has_bias and m * n or 0)),
    bytes = times(batch, sum_of(2, times(width, m * k + k * n), times(width_out, m * n + bias))),
    spec = spec_of(op, dtype) }
end

-- ---- Attention -------------------------------------------------------------------------------------------

-- The facts that both directions need. [B, H, N, d] each.
local function attention(op, call)
  local q, k, v = shape_of(call, 0), shape_of(call, 1), shape_of(call, 2)
  if not q or not k or not v or #q ~= 4 or #k ~= 4 or #v ~= 4 then return nil, "Q, K or V has no shape" end
  local causal = given(call, op.causal)
  if type(causal) == "number" then causal = causal ~= 0 end
  local at = { b = q[1], h_q = q[2], n_q = q[3], d_qk = q[4], h_kv = k[2], n_kv = k[3], d_v = v[4],
    causal = causal or false, dtype = dtype_of(call, 0) }
  if at.causal and at.n_q ~= at.n_kv then return nil, "causal attention needs as many queries as keys" end
  at.elements = { q = product(q), k = product(k), v = product(v), o = q[1] * q[2] * q[3] * v[4] }
  at.params = { { "B", at.b }, { "N_Q", at.n_q }, { "H_Q", at.h_q }, { "N_KV", at.n_kv }, { "H_KV", at.h_kv },
    { "d_h_qk", at.d_qk }, { "d_h_v", at.d_v }, { "dropout", (given(call, op.dropout) or 0) + 0.0 },
    { "causal", at.causal }, { "flash_impl", op.is_flash or false },
    { "dtype_A_B", { at.dtype, dtype_of(call, 1) } } }
  return at
end

local function halved(flops, causal) return causal and flops / 2 or flops end

local function sdpa(op, call)
  local at, why = attention(op, call)
  if not at then return nil, why end
  local flops = 2 * at.b * at.h_q * at.n_q * at.n_kv * (at.d_qk + at.d_v)
  local count = at.elements
  return { params = at.params, flops = halved(flops, at.causal),
    bytes = times(width_of(at.dtype), count.q + count.k + count.v + count.o), spec = spec_of(op, at.dtype) }
end

local function sdpa_backward(op, call)
  local at, why = attention(op, call)
  if not at then return nil, why end
  local depth = 2 * at.d_qk + 2 * at.d_v + (op.is_flash and at.d_qk or 0)
  local flops = 2 * at.b * at.h_q * at.n_q * at.n_kv * depth
  if at.h_kv > 0 then flops = flops + at.b * at.n_kv * (at.d_qk + at.d_v) * (at.h_q / at.h_kv - 1) end
  local count = at.elements
  return { params = at.params, flops = halved(flops, at.causal),
    bytes = times(width_of(at.dtype), 2 * count.q + 2 * count.k + 2 * count.v + count.o),
    spec = spec_of(op, at.dtype) }
end

-- ---- Convolution -----------------------------------------------------------------------------------------

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

-- ---- Element by element ----------------------------------------------------------------------------------

local function unary(op, call)
  local shape = shape_of(call, 0)
  if not shape then return nil, "its input has no shape" end
  local has_out = has_tensor(call, 1)
  local dtype, out = dtype_of(call, 0), has_out and dtype_of(call, 1) or none
  local width = width_of(dtype)
  local width_out = width
  if has_out then width_out = width_of(out) end
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

-- The number of elements of two shapes that are broadcast to fit each other.
local function broadcast(a, b)
  local count = 1
  for i = 0, math.max(#a, #b) - 1 do
    local x, y = a[#a - i] or 1, b[#b - i] or 1
    if x ~= y and x ~= 1 and y ~= 1 then return nil end
    count = count * (x == 1 and y or x)
  end
  return count
end

local function binary(op, call)
  local a, b = shape_of(call, 0), shape_of(call, 1)
  local count = a and b and broadcast(a, b)
  if not count then return nil, "the shapes of its inputs do not fit" end
  local has_out = has_tensor(call, 2)
  local type_a, type_b, out = dtype_of(call, 0), dtype_of(call, 1), has_out and dtype_of(call, 2) or none
  local width_a, width_b = width_of(type_a), width_of(type_b)
  local width_out = width_a
  if has_out then
    width_out = width_of(out)
  elseif #a > 0 and #b > 0 and width_a and width_b then
    width_out = math.max(width_a, width_b)
  end
  return { params = { { "shape_in1", a }, { "shape_in2", b },
      { "dtype_in1_in2_out", { type_a, type_b, out } }, { "stride_input1", strides_of(call, 0) },
      { "stride_input2", strides_of(call, 1) },
      { "stride_output", has_out and strides_of(call, 2) or none } },
    flops = count, spec = spec_of(op, type_a),
    bytes = sum_of(3, times(product(a), width_a), times(product(b), width_b), times(count, width_out)) }
end

-- ---- Reductions ------------------------------------------------------------------------------------------

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

local reductions = { "mean", "max", "min", "norm" }

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
  return { params = { { "num_input_elems", count }, { "num_output_elems", out or none },
      { "dtype_in_out", { dtype, none } }, { "reduce_type", kind } },
    flops = count, bytes = times(out and count + out, width_of(dtype)), spec = spec_of(op, dtype) }
end

-- ---- Normalisation ---------------------------------------------------------------------------------------

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

-- ---- All of them -----------------------------------------------------------------------------------------

local sums = { gemm = gemm, sdpa = sdpa, convolution = convolution,
  convolution_backward = convolution_backward, unary = unary, pad = pad,
  upsample = upsample, binary = binary, reduce = reduce, norm = norm,
  norm_backward = norm_backward }

local backward_sums = { sdpa = sdpa_backward, convolution = backward_of_convolution }

local function no_kernels() return {} end

local function is_near(a, b) return a == b or (a and b and math.abs(a - b) <= 1e-9 * math.abs(b)) or false end

local function is_true_sum(value) return value == nil or (value >= 0 and value < math.huge) end

-- Arguments of another type than in the op's schema (a text for a number, a list for a text) raise an error
-- of Lua: they do not fit. With absurd shapes sums of integers wrap around, but sums of doubles do not;
-- comparing both detects this.
local function checked(model_of, op, call)
  local fits, perf, why = pcall(model_of, op, call)
  if not fits then
    fail.pass_on(perf)
    return nil, "the arguments do not fit"
  end
  if not perf then return nil, why end
  local in_doubles = setmetatable({ in_doubles = true, kernels = no_kernels }, { __index = call })
  local again, doubles = pcall(model_of, op, in_doubles)
  if not again then fail.pass_on(doubles) end
  if not again or not doubles or not is_near(perf.flops, doubles.flops)
    or not is_near(perf.bytes, doubles.bytes) then
    return nil, "the shapes are too large"
  end
  if not is_true_sum(perf.flops) or not is_true_sum(perf.bytes) then
    return nil, "the arguments do not fit"
  end
  return perf
end

-- The key of the calls that a sheet has in one row: those of an op with these parameters.
function perf_model.key(sheet, name, perf)
  local parts = { sheet, name }
  for _, param in ipairs(perf.params) do
    parts[#parts + 1] = param[1] .. "=" .. python_literals.write(param[2])
  end
  return table.concat(parts, "\0")
end

-- Parameters as cells, { name, value }: texts and numbers; None is nil.
function perf_model.cells(params)
  local out = {}
  for i, param in ipairs(params) do
    local name, value = param[1], param[2]
    if value == none then
      value = nil
    elseif type(value) ~= "number" and type(value) ~= "string" then
      value = python_literals.write(value)
    end
    out[i] = { name = name, value = value }
  end
  return out
end

-- The value of the cell with this name: nil if it is None, "nan" if only other ops have such a parameter.
function perf_model.cell(cells, name)
  for _, cell in ipairs(cells) do
    if cell.name == name then return cell.value end
  end
  return "nan"
end

-- `op` is the row for this call (families.op_of_call).
function perf_model.of(op, call)
  if not call.dims then return nil, perf_model.NO_SHAPES end
  return checked(sums[op.family], op, call)
end

function perf_model.backward_of(op, call)
  local backward = backward_sums[op.family]
  if not backward or not call.dims then return nil, perf_model.NO_SHAPES end
  return checked(backward, op, call)
end

return perf_model
