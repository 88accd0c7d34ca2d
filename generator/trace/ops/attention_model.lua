-- Models of attention and its backward. FLOPs are those of the two products, Q K and P V, 2 for a multiply-
-- add; the softmax does not count. A causal mask halves them. Q, K, V and O move once.
local arguments = require "trace.ops.arguments"

local width_of, spec_of, dtype_of = arguments.width_of, arguments.spec_of, arguments.dtype_of
local shape_of, given, has_tensor = arguments.shape_of, arguments.given, arguments.has_tensor
local product, times = arguments.product, arguments.times

-- A flag of the call, or a kind of mask, of which 0 is none.
local function flag(call, index)
  local value = index and given(call, index)
  if type(value) == "number" then value = value ~= 0 end
  return value or false
end

-- ---- One length for all of a batch -----------------------------------------------------------------------

-- B, H, N, d of a tensor; with `rows_first` its order is B, N, H, d.
local function sizes_of(op, call, index)
  local shape = shape_of(call, index)
  if not shape or #shape ~= 4 then return nil end
  if op.rows_first then return { b = shape[1], h = shape[3], n = shape[2], d = shape[4] } end
  return { b = shape[1], h = shape[2], n = shape[3], d = shape[4] }
end

-- The facts that both directions need.
local function attention(op, call)
  if op.offsets and has_tensor(call, op.offsets) then return nil, "its requests are of several lengths" end
  local first = op.q or 0
  local q, k, v = sizes_of(op, call, first), sizes_of(op, call, first + 1), sizes_of(op, call, first + 2)
  if not q or not k or not v then return nil, "Q, K or V has no shape" end
  local at = { b = q.b, h_q = q.h, n_q = q.n, d_qk = q.d, h_kv = k.h, n_kv = k.n, d_v = v.d,
    causal = flag(call, op.causal), dtype = dtype_of(call, first) }
  if at.causal and at.n_q ~= at.n_kv then return nil, "causal attention needs as many queries as keys" end
  local function elements(of) return of.b * of.h * of.n * of.d end
  at.elements = { q = elements(q), k = elements(k), v = elements(v), o = q.b * q.h * q.n * v.d }
  at.params = { { "B", at.b }, { "N_Q", at.n_q }, { "H_Q", at.h_q }, { "N_KV", at.n_kv }, { "H_KV", at.h_kv },
    { "d_h_qk", at.d_qk }, { "d_h_v", at.d_v }, { "dropout", (given(call, op.dropout) or 0) + 0.0 },
    { "causal", at.causal }, { "flash_impl", op.is_flash or false },
    { "dtype_A_B", { at.dtype, dtype_of(call, first + 1) } } }
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

-- Four products: the gradients of V, P, Q and K; flash attention computes Q K again. With fewer heads of K
-- and V, their gradients of all heads of Q are added.
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

-- ---- Requests of several lengths -------------------------------------------------------------------------

-- The number of requests: offsets have one more.
local function requests_of(op, call)
  local offsets = shape_of(call, op.offsets)
  local count = offsets and #offsets == 1 and offsets[1] - 1
  return count and count > 0 and count or nil
end

-- Q is [tokens, H, d]; K and V too, or pages of a cache [pages, rows, H, d]. Lengths are data, which no trace
-- has: all requests count as equally long, and with pages as long as the longest (an upper bound). Causal
-- masks end at the last key, as of flash-attn 2.1.
local function varlen(op, call)
  local q, k, v = shape_of(call, op.q), shape_of(call, op.q + 1), shape_of(call, op.q + 2)
  local requests = requests_of(op, call)
  if not q or not k or not v or #q ~= 3 or #k < 3 or #k > 4 or #v ~= #k or not requests then
    return nil, "Q, K, V or the number of requests has no shape"
  end
  local rows_q, rows_kv, is_paged = q[1] / requests, k[1] / requests, #k == 4
  if is_paged then rows_kv = given(call, op.longest) end
  if not rows_kv then return nil, "the length of the longest request is unknown" end
  local causal, dtype = flag(call, op.causal), dtype_of(call, op.q)
  local seen = causal and rows_q > 1 and rows_kv - math.min(rows_q, rows_kv) / 2 or rows_kv
  local heads_kv, d_qk, d_v = k[#k - 1], q[3], v[#v]
  return { params = { { "B", requests }, { "N_Q", rows_q }, { "H_Q", q[2] }, { "N_KV", rows_kv },
      { "H_KV", heads_kv }, { "d_h_qk", d_qk }, { "d_h_v", d_v }, { "causal", causal }, { "paged", is_paged },
      { "phase", rows_q > 1 and "prefill" or "decode" },
      { "dtype_A_B", { dtype, dtype_of(call, op.q + 1) } } },
    flops = 2 * q[2] * q[1] * seen * (d_qk + d_v), spec = spec_of(op, dtype),
    bytes = arguments.sum_of(2, times(width_of(dtype), product(q) + q[1] * q[2] * d_v),
      times(width_of(dtype_of(call, op.q + 1)), requests * rows_kv * heads_kv * (d_qk + d_v))) }
end

return {
  models = { sdpa = sdpa, sdpa_backward = sdpa_backward, varlen_attention = varlen },
  backward = { sdpa = sdpa_backward },
}
