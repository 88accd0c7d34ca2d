-- Models of matrix products: one matrix, a batch of them, or groups of rows with a matrix each. A multiply
-- and an add are 2 FLOPs; every operand and result moves once. The K of types with several numbers in an
-- element counts numbers: these are packed along K in A and B alike, or the shapes would not fit.
local arguments = require "trace.ops.arguments"
local python_literals = require "codec.python_literals"

local none = python_literals.none
local width_of, spec_of, dtype_of = arguments.width_of, arguments.spec_of, arguments.dtype_of
local packed_in = arguments.packed
local shape_of, strides_of, given = arguments.shape_of, arguments.strides_of, arguments.given
local sum_of, times = arguments.sum_of, arguments.times

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
  local row = op.row and shape_of(call, op.row)
  local has_bias = op.has_bias or (op.is_scaled and #call.dims == 3) or (row and row[1] == n) or false
  local is_batched = #shape_of(call, op.a) == 3
  local dtype = dtype_of(call, op.a)
  local numbers = k * packed_in(dtype)
  local params = { { "M", m }, { "N", n }, { "K", numbers }, { "bias", has_bias },
    { "stride_A", strides_of(call, op.a) }, { "stride_B", strides_of(call, op.b) },
    { "dtype_A_B", { dtype, dtype_of(call, op.b) } } }
  table.insert(params, is_batched and 1 or #params + 1, { "B", batch })
  local found = transposition_of(call)
  if found then params[#params + 1] = { "transpose", found } end
  local width = width_of(dtype)
  local width_out = op.out_bytes or op.is_scaled and width == 1 and 2 or width
  local bias = has_bias and n or 0
  return { params = params, flops = batch * (2 * m * n * numbers + (has_bias and m * n or 0)),
    bytes = times(batch, sum_of(2, times(width, m * k + k * n), times(width_out, m * n + bias))),
    spec = spec_of(op, dtype) }
end

-- ---- Grouped products ------------------------------------------------------------------------------------

-- The sizes of a product in groups, by the dimensions of A and B (PyTorch's torch._grouped_mm). With offsets,
-- groups divide the rows of A, the columns of B, or K; all of them count as used, as the last offset is in no
-- trace. `products`: how many of M, N, K. `of_a`, `of_b`: how many matrices move, since a group without rows
-- reads none. `out`: elements of the result.
local function grouped_sizes(a, b)
  local m, k, n = a[#a - 1], a[#a], b[#b]
  if k ~= b[#b - 1] then return nil end
  local at = { m = m, n = n, k = k, products = 1, of_a = 1, of_b = 1, out = m * n }
  if #a == 2 and #b == 3 then
    at.groups, at.of_b = b[1], math.min(b[1], m)
  elseif #a == 3 and #b == 2 then
    at.groups, at.of_a = a[1], math.min(a[1], n)
  elseif #a == 3 and #b == 3 and a[1] == b[1] then
    at.groups, at.products, at.of_a, at.of_b, at.out = a[1], a[1], a[1], a[1], a[1] * m * n
  elseif #a == 2 and #b == 2 then
    at.out = nil -- each group gives a matrix of its own
  else
    return nil
  end
  return at
end

local function grouped_gemm(op, call)
  local a, b = shape_of(call, op.a), shape_of(call, op.b)
  local at = a and b and grouped_sizes(a, b)
  if not at then return nil, "the shapes of A and B do not fit" end
  local offsets = shape_of(call, op.offsets)
  at.groups = at.groups or offsets and offsets[1]
  if not at.groups then return nil, "the number of groups is unknown" end
  local dtype = dtype_of(call, op.a)
  local width, numbers = width_of(dtype), at.k * packed_in(dtype)
  local width_out = width == 1 and 2 or width
  return { params = { { "groups", at.groups }, { "M", at.m }, { "N", at.n }, { "K", numbers },
      { "stride_A", strides_of(call, op.a) }, { "stride_B", strides_of(call, op.b) },
      { "dtype_A_B", { dtype, dtype_of(call, op.b) } } },
    flops = 2 * at.products * at.m * at.n * numbers, spec = spec_of(op, dtype),
    bytes = sum_of(3, times(width, at.of_a * at.m * at.k), times(width, at.of_b * at.k * at.n),
      times(width_out, at.out or at.groups * at.m * at.n)) }
end

-- A layer of experts: every token goes through `topk` of them. W1 is [E, 2 I, H], or [E, I, H] without gates,
-- and W2 [E, H, I]. At most tokens x topk experts are read.
local function experts(op, call)
  local x, w1, w2 = shape_of(call, op.x), shape_of(call, op.w1), shape_of(call, op.w2)
  local chosen = shape_of(call, op.chosen)
  if not (x and w1 and w2 and chosen) or #x ~= 2 or #w1 ~= 3 or #w2 ~= 3 or #chosen ~= 2 then
    return nil, "the shapes of its matrices are unknown"
  end
  local tokens, hidden, topk = x[1], x[2], chosen[2]
  local up, down = w1[2] * w1[3], w2[2] * w2[3]
  if w1[1] ~= w2[1] or w1[3] ~= hidden or w2[2] ~= hidden then
    return nil, "the shapes of its matrices do not fit"
  end
  local dtype, of_w = dtype_of(call, op.x), width_of(dtype_of(call, op.w1))
  local read = math.min(w1[1], tokens * topk)
  return { params = { { "tokens", tokens }, { "hidden", hidden }, { "intermediate", w2[3] },
      { "experts", w1[1] }, { "topk", topk }, { "dtype_x_w", { dtype, dtype_of(call, op.w1) } } },
    flops = 2 * tokens * topk * (up + down), spec = spec_of(op, dtype_of(call, op.w1)),
    bytes = sum_of(2, times(width_of(dtype), 2 * tokens * hidden), times(of_w, read * (up + down))) }
end

return { models = { gemm = gemm, grouped_gemm = grouped_gemm, experts = experts } }
