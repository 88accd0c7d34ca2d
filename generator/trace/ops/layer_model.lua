-- Models of fused layers of inference libraries other than products, attention and norms: activations, rotary
-- embeddings, quantisation, caches, state-space models; and of Triton kernels of PyTorch's compiler.
local arguments = require "trace.ops.arguments"

local width_of, spec_of, dtype_of = arguments.width_of, arguments.spec_of, arguments.dtype_of
local shape_of, given, tensor_of = arguments.shape_of, arguments.given, arguments.tensor_of
local product, sum_of, times = arguments.product, arguments.sum_of, arguments.times

-- act(x[..., :d]) * x[..., d:]: two ops for each element of the result.
local function gated_activation(op, call)
  local x = tensor_of(call, op.x, 1)
  if not x then return nil, "its input has no shape" end
  local dtype, out = dtype_of(call, op.x), product(x) // 2
  local result = dtype_of(call, op.out)
  return { params = { { "op_shape", x }, { "dtype_in_out", { dtype, result } } }, flops = 2 * out,
    bytes = sum_of(2, times(product(x), width_of(dtype)), times(out, width_of(result))),
    spec = spec_of(op, dtype) }
end

-- Rotary embedding of Q and K in place: of each pair of elements two products and a sum for either, 3 for an
-- element. A row of cosines and sines, `turned` elements of each head, is read for each position.
local function rotary(op, call)
  local q, cache = tensor_of(call, op.q, 2), tensor_of(call, op.cache, 2)
  local positions = tensor_of(call, op.positions, 1)
  if not q or not cache or not positions then return nil, "its input or its table has no shape" end
  local k, turned = tensor_of(call, op.k, 2), cache[#cache]
  local head = q[#q]
  if op.head then head = given(call, op.head) end
  if not head or head < 1 or turned > head then return nil, "the size of its heads is unknown" end
  local dtype = dtype_of(call, op.q)
  local moved = (product(q) + (k and product(k) or 0)) // head * turned
  return { params = { { "shape_q", q }, { "shape_k", k or {} }, { "head_size", head },
      { "rotary_dim", turned }, { "dtype", dtype } }, flops = 3 * moved, spec = spec_of(op, dtype),
    bytes = sum_of(3, times(2 * moved, width_of(dtype)),
      times(product(positions) * turned, width_of(dtype_of(call, op.cache))),
      times(product(positions), width_of(dtype_of(call, op.positions)))) }
end

-- Quantisation: a product for each element; with op.finds_scale also its size and the maximum.
local function quantisation(op, call)
  local x, scale = tensor_of(call, op.x, 1), shape_of(call, op.scale)
  if not x or not scale then return nil, "its input has no shape" end
  local dtype, out, count = dtype_of(call, op.x), dtype_of(call, op.out), product(x)
  return { params = { { "op_shape", x }, { "dtype_in_out", { dtype, out } } }, spec = spec_of(op, dtype),
    flops = (op.finds_scale and 3 or 1) * count,
    bytes = sum_of(3, times(count, width_of(dtype)), times(count, width_of(out)),
      times(product(scale), width_of(dtype_of(call, op.scale)))) }
end

-- Copies new keys and values, or a latent of both, to the places of a cache; the type may change.
local function cache_write(op, call)
  local bytes, count, shapes = 0, 0, {}
  for i, index in ipairs(op.sources) do
    local shape = tensor_of(call, index, 1)
    if not shape then return nil, "its keys or values have no shape" end
    shapes[i], count = shape, count + product(shape)
    bytes = sum_of(2, bytes, times(product(shape), width_of(dtype_of(call, index))))
  end
  local slots = tensor_of(call, op.slots, 1)
  if not slots then return nil, "its places have no shape" end
  local cached = dtype_of(call, op.cache)
  local types = { dtype_of(call, op.sources[1]), cached }
  return { params = { { "shapes", shapes }, { "dtype_in_out", types } }, flops = 0,
    bytes = sum_of(3, bytes, times(count, width_of(cached)),
      times(product(slots), width_of(dtype_of(call, op.slots)))) }
end

-- ---- State-space models ----------------------------------------------------------------------------------

-- x [B, D, L] with a filter of `taps` for each channel.
local function causal_convolution(op, call)
  local x, filter = tensor_of(call, op.x, 2), tensor_of(call, op.weight, 2)
  if not x or not filter then return nil, "its input or its filter has no shape" end
  local dtype, taps = dtype_of(call, op.x), filter[#filter]
  local count = product(x)
  return { params = { { "op_shape", x }, { "filter_shape", filter }, { "dtype_in", dtype } },
    flops = 2 * count * taps, bytes = times(2 * count + product(filter), width_of(dtype)),
    spec = spec_of(op, dtype) }
end

-- Mamba's selective scan: u and delta [B, D, L] or [D, L], A [D, N], B and C [B, G, N, L] or [G, N, L]. 9 for
-- each element of the state and position (discretise 3: product, exponential, product with u; 2 for B, 2 for
-- the state, 2 for C), as Mamba's users count; 1 more for each element with D, and 1 with z.
local function selective_scan(op, call)
  local u, a = tensor_of(call, 0, 2), tensor_of(call, 2, 2)
  local b, c = tensor_of(call, 3, 2), tensor_of(call, 4, 2)
  if not (u and a and b and c) then return nil, "u, A, B or C has no shape" end
  local dtype, count, state = dtype_of(call, 0), product(u), a[#a]
  local has_d, has_z = arguments.has_tensor(call, 5), arguments.has_tensor(call, 6)
  local extra = (has_d and 1 or 0) + (has_z and 1 or 0)
  return { params = { { "op_shape", u }, { "state", state }, { "D", has_d }, { "z", has_z },
      { "dtype", dtype } }, flops = count * (9 * state + extra), spec = spec_of(op, dtype),
    bytes = sum_of(2, times(count * (3 + (has_z and 1 or 0)) + product(b) + product(c), width_of(dtype)),
      times(product(a), width_of(dtype_of(call, 2)))) }
end

-- ---- Triton kernels of PyTorch's compiler ----------------------------------------------------------------

-- The arguments are tensors, then the sizes of the kernel's range: of each tensor at most as many elements
-- move as the range has, so that of a table only the rows that are read count. A tensor that is read and
-- written counts once, and an element of the range 1 FLOP, as the trace has no more: both are lower bounds.
local function triton(op, call)
  local range, counts = nil, {}
  for i = 1, #call.dims do
    local size = not arguments.has_tensor(call, i - 1) and given(call, i - 1)
    if type(size) == "number" and size > 0 then range = (range or 1) * size end
  end
  if not range then return nil, "the sizes of its range are unknown" end
  local bytes, dtype, shapes = 0, nil, {}
  for i = 1, #call.dims do
    local shape = tensor_of(call, i - 1, 1)
    if shape then
      dtype, shapes[#shapes + 1] = dtype or dtype_of(call, i - 1), shape
      counts[#counts + 1] = math.min(product(shape), range)
      bytes = sum_of(2, bytes, times(counts[#counts], width_of(dtype_of(call, i - 1))))
    end
  end
  if #shapes == 0 then return nil, "it has no tensor" end
  return { params = { { "shapes", shapes }, { "range", range } }, flops = math.max(table.unpack(counts)),
    bytes = bytes, spec = spec_of(op, dtype) }
end

return { models = { gated_activation = gated_activation, rotary = rotary, quantisation = quantisation,
  cache_write = cache_write, causal_convolution = causal_convolution, selective_scan = selective_scan,
  triton = triton } }
