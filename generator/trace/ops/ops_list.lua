-- The ops with performance models, one row each.
--
-- How to add an op: a row with its name and family (families.lua), and the indices of its arguments if they
-- differ from those of the family's first op. Indices of arguments count from 0, as in PyTorch's schemas.
local ops = {}
local function add(family, names, indices)
  for name in names:gmatch("%S+") do
    local row = { name = name:find("::", 1, true) and name or "aten::" .. name, family = family }
    for key, value in pairs(indices or {}) do row[key] = value end
    ops[#ops + 1] = row
  end
end

-- a, b: the matrices. transposed_a, transposed_b: flags of their layouts. Scaled products may also have:
-- scale_a, scale_b, row (a bias of N), scale_out, out_type (a number of PyTorch's), out (the result is
-- given), fast. has_activation: the FLOPs of an activation do not count.
add("gemm", "mm bmm", { a = 0, b = 1 })
add("gemm", "_int_mm", { a = 0, b = 1, out_bytes = 4 })
add("gemm", "addmm baddbmm", { a = 1, b = 2, has_bias = true })
add("gemm", "_addmm_activation", { a = 1, b = 2, has_bias = true, has_activation = true })
add("gemm", "_scaled_mm", { a = 0, b = 1, is_scaled = true, scale_a = 2, scale_b = 3, row = 4, scale_out = 5,
  out_type = 6, fast = 7 })
add("gemm", "trtllm::cublas_scaled_mm", { a = 0, b = 1, is_scaled = true, scale_a = 2, scale_b = 3, row = 4,
  out_type = 5 })
add("gemm", "bitsandbytes::int8_linear_matmul", { a = 0, b = 1, is_scaled = true })
add("gemm", "_C::cutlass_scaled_mm", { a = 1, b = 2, is_scaled = true, scale_a = 3, scale_b = 4, row = 5,
  out = 0 })
add("gemm", "tex_ts::te_gemm_ts", { a = 0, b = 5, transposed_a = 4, transposed_b = 9 })

-- sgl-kernel: a, b, scales of both, the result's type, a bias.
add("gemm", "sgl_kernel::fp8_scaled_mm sgl_kernel::int8_scaled_mm",
  { a = 0, b = 1, is_scaled = true, scale_a = 2, scale_b = 3, out_type = 4, row = 5 })

-- offsets: the index of the ends of the groups.
add("grouped_gemm", "_grouped_mm", { a = 0, b = 1, offsets = 2 })
add("grouped_gemm", "_scaled_grouped_mm", { a = 0, b = 1, offsets = 4 })

-- x, w1, w2, chosen: the hidden states, the matrices, and the experts of each token.
add("experts", "vllm::inplace_fused_experts vllm::outplace_fused_experts sglang::inplace_fused_experts "
  .. "sglang::outplace_fused_experts", { x = 0, w1 = 1, w2 = 2, chosen = 4 })

-- q: the index of Q, before K and V. dropout, causal: their indices. has_backward: the backward that
-- autograd's engine runs has a model, too. offsets: the index of the ends of requests of several lengths;
-- calls with them have no model.
add("sdpa", "_scaled_dot_product_flash_attention",
  { dropout = 3, causal = 4, is_flash = true, has_backward = true })
add("sdpa", "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention",
  { dropout = 5, causal = 6, has_backward = true })

add("sdpa", "_flash_attention_forward", { dropout = 7, causal = 8, is_flash = true, rows_first = true })
add("sdpa", "_efficient_attention_forward", { offsets = 4, dropout = 8, causal = 9, rows_first = true })
add("sdpa", "_cudnn_attention_forward", { dropout = 9, causal = 10 })
add("sdpa", "flash_attn::_flash_attn_forward",
  { dropout = 3, causal = 5, is_flash = true, rows_first = true })
add("sdpa_backward", "_scaled_dot_product_flash_attention_backward",
  { q = 1, dropout = 10, causal = 11, is_flash = true })
add("sdpa_backward", "_scaled_dot_product_efficient_attention_backward", { q = 1, dropout = 9, causal = 11 })
add("sdpa_backward", "_scaled_dot_product_cudnn_attention_backward _cudnn_attention_backward",
  { q = 1, dropout = 13, causal = 14 })
add("sdpa_backward", "_flash_attention_backward",
  { q = 1, dropout = 10, causal = 11, is_flash = true, rows_first = true })
add("sdpa_backward", "_efficient_attention_backward",
  { q = 1, offsets = 6, dropout = 11, causal = 14, rows_first = true })
add("sdpa_backward", "flash_attn::_flash_attn_backward",
  { q = 1, dropout = 9, causal = 11, is_flash = true, rows_first = true })

-- offsets: the index of the ends of the requests in Q; longest: that of the longest request's keys.
add("varlen_attention", "flash_attn::_flash_attn_varlen_forward",
  { q = 0, offsets = 3, longest = 6, causal = 9 })
add("varlen_attention", "_vllm_fa2_C::varlen_fwd", { q = 0, offsets = 4, longest = 11, causal = 15 })
add("varlen_attention", "_vllm_fa3_C::fwd flash_attn_3::fwd sgl_kernel::fwd",
  { q = 0, offsets = 7, longest = 13, causal = 24 })

-- input: its index; weight and the rest follow as in aten::convolution.
add("convolution", "convolution", { input = 0, has_backward = true })
add("convolution_backward", "convolution_backward", { input = 1 })

add("unary", "copy copy_ clamp_min clamp_min_ clamp_max clamp_max_ sigmoid rsqrt silu neg pow")
add("unary", "abs bitwise_not bitwise_not_ ceil clamp clamp_ cos elu erf exp exp_ floor gelu gelu_ hardswish "
  .. "hardtanh leaky_relu log log1p logical_not_ nan_to_num reciprocal round sigmoid_ sign silu_ sin "
  .. "softplus sqrt tanh tanh_ tril triu trunc")
add("unary", "isneginf isposinf logical_not", { out_bytes = 1 })
add("pad", "replication_pad1d replication_pad2d replication_pad3d")
add("upsample", "upsample_nearest1d upsample_nearest2d upsample_nearest3d")
add("binary", "div div_ mul mul_ add add_ sigmoid_backward threshold_backward")
add("binary", "atan2 bitwise_and bitwise_and_ bitwise_or bitwise_or_ bitwise_xor floor_divide floor_divide_ "
  .. "fmod gelu_backward remainder silu_backward sub sub_ tanh_backward")
add("binary", "eq ge gt le logical_and logical_or lt ne", { out_bytes = 1 })

-- inputs: their indices; result: the one with the type of the result. masked_fill_ reads what it keeps.
add("pointwise", "where", { inputs = { 0, 1, 2 }, result = 1 })
add("pointwise", "masked_fill_", { inputs = { 0, 1 }, result = 0 })
add("pointwise", "mse_loss_backward", { inputs = { 0, 1, 2 }, result = 1 })
add("pointwise", "addcmul addcmul_ addcdiv addcdiv_ lerp lerp_", { inputs = { 0, 1, 2 }, result = 0 })

-- work: FLOPs of an element; a random number counts as one.
add("fill", "fill_", { work = 0 })
add("fill", "normal_ uniform_ random_ exponential_ bernoulli_", { work = 1 })
add("arange", "arange")

-- index: that of the index, after the dimension. The index of aten::index is in no trace, nor is its result,
-- so it has no model.
add("concatenation", "cat")
add("gather", "gather", { index = 2 })
add("gather", "index_select", { index = 2, by_row = true })
add("scatter", "scatter_", { index = 2, source = 3 })
add("scatter", "scatter_add_", { index = 2, source = 3, adds = true })
add("scatter", "index_add_", { index = 2, source = 3, adds = true, counts_source = true })
add("index_put", "_index_put_impl_")
add("embedding_backward", "embedding_dense_backward")
add("histogram", "histc")
add("scalar", "_local_scalar_dense")

add("order", "sort")
add("order", "topk", { k = 1, dim = 2 })
add("softmax", "_softmax _log_softmax")
add("softmax_backward", "_softmax_backward_data _log_softmax_backward_data")
add("nll_loss", "nll_loss_forward nll_loss2d_forward")
add("nll_loss_backward", "nll_loss_backward nll_loss2d_backward")
add("max_pool", "max_pool2d_with_indices")
add("max_pool_backward", "max_pool2d_with_indices_backward")

-- dims: the index of the reduced dimensions. is_scan: the result has as many elements as the input.
-- of_two_tensors: the family of calls with two tensors.
add("reduce", "sum mean std var logsumexp amin amax", { dims = 1 })
add("reduce", "max min", { dims = 1, of_two_tensors = "binary" })
add("reduce", "norm linalg_norm", { dims = 2 })
add("reduce", "cumsum cumprod", { is_scan = true })
add("reduce", "argmax argmin", { dims = 1, out_bytes = 8 })
add("reduce", "all any", { dims = 1, out_bytes = 1 })

-- weight, bias, training: indices; shape: that of normalized_shape.
add("norm", "batch_norm native_batch_norm miopen_batch_norm cudnn_batch_norm instance_norm",
  { weight = 1, bias = 2, training = 5 })
add("norm", "native_instance_norm miopen_instance_norm cudnn_instance_norm",
  { weight = 1, bias = 2, training = 5 })
add("norm", "layer_norm native_layer_norm miopen_layer_norm cudnn_layer_norm",
  { weight = 2, bias = 3, shape = 1 })
add("norm", "group_norm miopen_group_norm cudnn_group_norm", { weight = 2, bias = 3 })
add("norm", "native_group_norm", { weight = 1, bias = 2 })
add("norm", "_fused_rms_norm", { weight = 2, shape = 1, is_rms = true })

-- mask: the index of output_mask. x: that of the normalised tensor. Names without a schema in PyTorch, such
-- as miopen_layer_norm_backward, are those of a forward op above, with the arguments of the native op.
add("norm_backward", "native_batch_norm_backward batch_norm_backward instance_norm_backward "
  .. "native_instance_norm_backward cudnn_instance_norm_backward miopen_instance_norm_backward",
  { x = 1, weight = 2, training = 7, mask = 9 })
add("norm_backward", "_batch_norm_impl_index_backward", { x = 1, weight = 3, training = 8, mask = 10 })
add("norm_backward", "cudnn_batch_norm_backward miopen_batch_norm_backward", { x = 0, weight = 2 })
add("norm_backward", "native_layer_norm_backward layer_norm_backward cudnn_layer_norm_backward "
  .. "miopen_layer_norm_backward", { x = 1, weight = 5, bias = 6, shape = 2, mask = 7 })
add("norm_backward", "native_group_norm_backward group_norm_backward cudnn_group_norm_backward "
  .. "miopen_group_norm_backward", { x = 1, weight = 4, mask = 9 })
add("norm_backward", "_fused_rms_norm_backward", { x = 1, weight = 4, shape = 2, mask = 5, is_rms = true })


-- RMSNorm of vLLM, SGLang and FlashInfer. x, weight, residual, out: indices; without out it is in place of x.
add("library_norm", "_C::rms_norm sgl_kernel::rmsnorm flashinfer::rmsnorm", { out = 0, x = 1, weight = 2 })
add("library_norm", "_C::fused_add_rms_norm sgl_kernel::fused_add_rmsnorm flashinfer::fused_add_rmsnorm",
  { x = 0, residual = 1, weight = 2 })
add("library_norm", "_C::rms_norm_static_fp8_quant", { out = 0, x = 1, weight = 2 })
add("library_norm", "_C::fused_add_rms_norm_static_fp8_quant", { out = 0, x = 1, residual = 2, weight = 3 })
add("library_norm", "_C::rms_norm_dynamic_per_token_quant", { out = 0, x = 1, weight = 2, residual = 6 })

add("gated_activation", "_C::silu_and_mul _C::mul_and_silu _C::gelu_and_mul _C::gelu_tanh_and_mul "
  .. "sgl_kernel::silu_and_mul sgl_kernel::gelu_and_mul sgl_kernel::gelu_tanh_and_mul "
  .. "flashinfer::silu_and_mul flashinfer::gelu_and_mul flashinfer::gelu_tanh_and_mul", { out = 0, x = 1 })

-- head: the index of the size of a head, if Q and K are [tokens, heads * size].
add("rotary", "_C::rotary_embedding", { positions = 0, q = 1, k = 2, head = 3, cache = 4 })

add("quantisation", "_C::static_scaled_fp8_quant", { out = 0, x = 1, scale = 2 })
add("quantisation", "_C::dynamic_scaled_fp8_quant _C::dynamic_per_token_scaled_fp8_quant",
  { out = 0, x = 1, scale = 2, finds_scale = true })

add("cache_write", "_C_cache_ops::reshape_and_cache_flash _C_cache_ops::reshape_and_cache",
  { sources = { 0, 1 }, cache = 2, slots = 4 })
add("cache_write", "_C_cache_ops::concat_and_cache_mla", { sources = { 0, 1 }, cache = 2, slots = 3 })

add("causal_convolution", "_C::causal_conv1d_fwd DaoAILab::_causal_conv1d_fwd_cpp", { x = 0, weight = 1 })
add("selective_scan", "_C::selective_scan_fwd")

return {
  ops = ops,

  -- Families of all ops with such names: kernels of PyTorch's compiler, but not its templates of products and
  -- attention (triton_tem), with FLOPs that their arguments do not give.
  named = { { pattern = "^triton_", except = "^triton_tem", family = "triton" } },
}
