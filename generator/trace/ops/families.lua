-- The ops with performance models, one row each, and the categories of other ops.
--
-- How to add an op: a row with its name and family, and the indices of its arguments if they differ from
-- those of the family's first op. How to add a family: a row in `families` and its function in
-- perf_model.lua. Indices of arguments count from 0, as in PyTorch's schemas.
local families = {}

-- `sheet` and `category` are the words of the sheets; `unit`: the GPU's unit that computes it. outermost: an
-- op below another one of its sheet is not listed, such as native_layer_norm in layer_norm, or
-- upsample_nearest2d in its overload of the same name, so that the sheet's times add up.
families.families = {
  { name = "gemm", category = "GEMM", sheet = "GEMM", unit = "matrix" },
  { name = "sdpa", category = "SDPA_fwd", sheet = "SDPA_fwd", unit = "matrix", backward_sheet = "SDPA_bwd" },
  { name = "convolution", category = "CONV_fwd", sheet = "CONV_fwd", unit = "matrix" },
  { name = "convolution_backward", category = "CONV_bwd", sheet = "CONV_bwd", unit = "matrix" },
  { name = "unary", category = "elementwise", sheet = "UnaryElementwise", unit = "vector" },
  { name = "pad", category = "elementwise", sheet = "UnaryElementwise", unit = "vector" },
  { name = "upsample", category = "elementwise", sheet = "UnaryElementwise", unit = "vector",
    outermost = true },
  { name = "binary", category = "elementwise", sheet = "BinaryElementwise", unit = "vector" },
  { name = "reduce", category = "reduce", sheet = "Reduce_fwd", unit = "vector" },
  { name = "norm", category = "NORM_fwd", sheet = "Normalization", unit = "vector", outermost = true },
  { name = "norm_backward", category = "NORM_bwd", sheet = "Normalization", unit = "vector",
    outermost = true },
}

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
-- given), fast.
add("gemm", "mm bmm", { a = 0, b = 1 })
add("gemm", "addmm baddbmm", { a = 1, b = 2, has_bias = true })
add("gemm", "_scaled_mm", { a = 0, b = 1, is_scaled = true, scale_a = 2, scale_b = 3, row = 4, scale_out = 5,
  out_type = 6, fast = 7 })
add("gemm", "trtllm::cublas_scaled_mm", { a = 0, b = 1, is_scaled = true, scale_a = 2, scale_b = 3, row = 4,
  out_type = 5 })
add("gemm", "bitsandbytes::int8_linear_matmul", { a = 0, b = 1, is_scaled = true })
add("gemm", "_C::cutlass_scaled_mm", { a = 1, b = 2, is_scaled = true, scale_a = 3, scale_b = 4, row = 5,
  out = 0 })
add("gemm", "tex_ts::te_gemm_ts", { a = 0, b = 5, transposed_a = 4, transposed_b = 9 })

-- dropout, causal: their indices. has_backward: the backward that autograd's engine runs has a model, too.
add("sdpa", "_scaled_dot_product_flash_attention",
  { dropout = 3, causal = 4, is_flash = true, has_backward = true })
add("sdpa", "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention",
  { dropout = 5, causal = 6, has_backward = true })

-- input: its index; weight and the rest follow as in aten::convolution.
add("convolution", "convolution", { input = 0, has_backward = true })
add("convolution_backward", "convolution_backward", { input = 1 })

add("unary", "copy copy_ clamp_min clamp_min_ clamp_max clamp_max_ sigmoid rsqrt silu neg pow")
add("pad", "replication_pad1d replication_pad2d replication_pad3d")
add("upsample", "upsample_nearest1d upsample_nearest2d upsample_nearest3d")
add("binary", "div div_ mul mul_ add add_ sigmoid_backward threshold_backward")

-- dims: the index of the reduced dimensions. is_scan: the result has as many elements as the input.
-- of_two_tensors: the family of calls with two tensors.
add("reduce", "sum mean std var logsumexp amin amax", { dims = 1 })
add("reduce", "max min", { dims = 1, of_two_tensors = "binary" })
add("reduce", "norm linalg_norm", { dims = 2 })
add("reduce", "cumsum cumprod", { is_scan = true })

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

-- Ops without models that have their own category.
local categories = {
  ["aten::miopen_convolution"] = "CONV_fwd",
  ["aten::cudnn_convolution"] = "CONV_fwd",
  ["aten::_efficient_attention_forward"] = "SDPA_fwd",
  ["aten::_efficient_attention_backward"] = "SDPA_bwd",
  ["record_param_comms"] = "record_param_comms",
  ["vllm::unified_attention_with_output"] = "InferenceAttention",
  ["_C_cache_ops::reshape_and_cache_flash"] = "InferenceAttention",
  ["_C_cache_ops::concat_and_cache_mla"] = "InferenceAttention",
}

-- By a text in the name of an op's first kernel, if that is one of PyTorch's own.
local kernel_words = { "elementwise", "reduce", "multi_tensor_apply" }

local family_of, op_of = {}, {}
for _, family in ipairs(families.families) do family_of[family.name] = family end
for _, op in ipairs(ops) do
  op_of[op.name] = op
  if op.of_two_tensors then op.with_two_tensors = { name = op.name, family = op.of_two_tensors } end
end

families.ops = ops

-- The row of an op by its name, or nil: it has no model.
function families.op(name) return op_of[name] end

-- Whether calls of an op are of several families.
function families.depends_on_shapes(name)
  local op = op_of[name]
  return op ~= nil and op.with_two_tensors ~= nil
end

-- The row of an op for a call with these shapes (Input Dims, or nil). max and min with two arguments have two
-- tensors; with more, the second one is a dimension, which has no shape, or a tensor.
function families.op_of_call(name, dims)
  local op = op_of[name]
  if not dims or not families.depends_on_shapes(name) then return op end
  local second = dims[2]
  local is_tensor = type(second) == "table" and (#second > 0 or #dims == 2)
  return is_tensor and op.with_two_tensors or op
end

-- The family of an op's row.
function families.family(op) return family_of[op.family] end

-- The category of an op, or of a call of the runtime. `first_kernel`: the name of its first kernel, or "";
-- `dims`: as for op_of_call.
function families.category(name, first_kernel, dims)
  local op = families.op_of_call(name, dims)
  if op then return family_of[op.family].category end
  if categories[name] then return categories[name] end
  if name:find("^aten::_scaled_dot_product_.*_backward$") then return "SDPA_bwd" end
  if name:find("^triton") then return "triton" end
  if first_kernel:find("^void at::native") then
    for _, word in ipairs(kernel_words) do
      if first_kernel:find(word, 1, true) then return word end
    end
  end
  return "other"
end

return families
