-- The families of ops with performance models, and the categories of other ops. ops_list.lua has the ops.
--
-- How to add a family: a row in `families`, its function in one of the files *_model.lua, and its ops in
-- ops_list.lua.
local ops_list = require "trace.ops.ops_list"

local families = {}

-- `sheet` and `category` are the words of the sheets; `unit`: the GPU's unit that computes it. Without a
-- category, it is that of an op without a model. Without a sheet, ops are in unified_perf_summary only.
-- outermost: an op below another one of its sheet is not listed, such as native_layer_norm in layer_norm, or
-- upsample_nearest2d in its overload of the same name, so that the sheet's times add up.
families.families = {
  { name = "gemm", category = "GEMM", sheet = "GEMM", unit = "matrix" },
  { name = "grouped_gemm", category = "GroupedGEMM", sheet = "GroupedGEMM", unit = "matrix",
    outermost = true },
  { name = "experts", category = "MoE_fused", sheet = "MoE_fused", unit = "matrix", outermost = true },
  { name = "sdpa", category = "SDPA_fwd", sheet = "SDPA_fwd", unit = "matrix", backward_sheet = "SDPA_bwd",
    outermost = true },
  { name = "sdpa_backward", category = "SDPA_bwd", unit = "matrix", outermost = true }, -- without a sheet
  { name = "varlen_attention", category = "InferenceAttention", sheet = "InferenceAttention",
    unit = "matrix", outermost = true },
  { name = "convolution", category = "CONV_fwd", sheet = "CONV_fwd", unit = "matrix" },
  { name = "convolution_backward", category = "CONV_bwd", sheet = "CONV_bwd", unit = "matrix" },
  { name = "unary", category = "elementwise", sheet = "UnaryElementwise", unit = "vector" },
  { name = "pad", category = "elementwise", sheet = "UnaryElementwise", unit = "vector" },
  { name = "upsample", category = "elementwise", sheet = "UnaryElementwise", unit = "vector",
    outermost = true },
  { name = "binary", category = "elementwise", sheet = "BinaryElementwise", unit = "vector" },
  { name = "pointwise", category = "elementwise", sheet = "PointwiseElementwise", unit = "vector",
    outermost = true },
  { name = "fill", sheet = "Fill", unit = "vector", outermost = true },
  { name = "arange", sheet = "Fill", unit = "vector", outermost = true },
  { name = "concatenation", sheet = "Concat", unit = "vector", outermost = true },
  { name = "gather", sheet = "Indexing", unit = "vector", outermost = true },
  { name = "scatter", sheet = "Indexing", unit = "vector", outermost = true },
  { name = "index_put", sheet = "Indexing", unit = "vector", outermost = true },
  { name = "embedding_backward", sheet = "Indexing", unit = "vector", outermost = true },
  { name = "histogram", sheet = "Indexing", unit = "vector", outermost = true },
  { name = "scalar", sheet = "Indexing", unit = "vector", outermost = true },
  { name = "order", sheet = "Order", unit = "vector", outermost = true },
  { name = "softmax", category = "Softmax", sheet = "Softmax", unit = "vector", outermost = true },
  { name = "softmax_backward", category = "Softmax", sheet = "Softmax", unit = "vector", outermost = true },
  { name = "nll_loss", category = "Loss", sheet = "Loss", unit = "vector", outermost = true },
  { name = "nll_loss_backward", category = "Loss", sheet = "Loss", unit = "vector", outermost = true },
  { name = "max_pool", sheet = "Pooling", unit = "vector", outermost = true },
  { name = "max_pool_backward", sheet = "Pooling", unit = "vector", outermost = true },
  { name = "library_norm", category = "NORM_fwd", sheet = "FusedNorm", unit = "vector", outermost = true },
  { name = "gated_activation", category = "Activation", sheet = "Activation", unit = "vector" },
  { name = "rotary", category = "RoPE", sheet = "RoPE", unit = "vector", outermost = true },
  { name = "quantisation", category = "Quantization", sheet = "Quantization", unit = "vector" },
  { name = "cache_write", category = "InferenceAttention", sheet = "KVCache", unit = "vector" },
  { name = "causal_convolution", category = "SSM", sheet = "SSM", unit = "vector" },
  { name = "selective_scan", category = "SSM", sheet = "SSM", unit = "vector" },
  { name = "triton", category = "triton", sheet = "Triton", unit = "vector" },
  { name = "reduce", category = "reduce", sheet = "Reduce_fwd", unit = "vector" },
  { name = "norm", category = "NORM_fwd", sheet = "Normalization", unit = "vector", outermost = true },
  { name = "norm_backward", category = "NORM_bwd", sheet = "Normalization", unit = "vector",
    outermost = true },
}

-- Ops without models that have their own category.
local categories = {
  ["aten::miopen_convolution"] = "CONV_fwd",
  ["aten::cudnn_convolution"] = "CONV_fwd",
  ["record_param_comms"] = "record_param_comms",
  ["vllm::unified_attention_with_output"] = "InferenceAttention",
}

-- By a text in the name of an op's first kernel, if that is one of PyTorch's own.
local kernel_words = { "elementwise", "reduce", "multi_tensor_apply" }

local family_of, op_of = {}, {}
for _, family in ipairs(families.families) do family_of[family.name] = family end
for _, op in ipairs(ops_list.ops) do
  op_of[op.name] = op
  if op.of_two_tensors then op.with_two_tensors = { name = op.name, family = op.of_two_tensors } end
end

families.ops = ops_list.ops

-- The row of an op by its name, or nil: it has no model.
function families.op(name)
  local op = op_of[name]
  if op then return op end
  for _, named in ipairs(ops_list.named) do
    if name:find(named.pattern) and not (named.except and name:find(named.except)) then
      op_of[name] = { name = name, family = named.family }
      return op_of[name]
    end
  end
end

-- Whether calls of an op are of several families.
function families.depends_on_shapes(name)
  local op = families.op(name)
  return op ~= nil and op.with_two_tensors ~= nil
end

-- The row of an op for a call with these shapes (Input Dims, or nil). max and min with two arguments have two
-- tensors; with more, the second one is a dimension, which has no shape, or a tensor.
function families.op_of_call(name, dims)
  local op = families.op(name)
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
  local category = op and family_of[op.family].category
  if category then return category end
  if categories[name] then return categories[name] end
  if name:find("^aten::_scaled_dot_product_.*_backward$") or name:find("^ScaledDotProduct.*Backward%d*$") then
    return "SDPA_bwd"
  end
  if name:find("^triton") then return "triton" end
  if first_kernel:find("^void at::native") then
    for _, word in ipairs(kernel_words) do
      if first_kernel:find(word, 1, true) then return word end
    end
  end
  return "other"
end

return families
