-- The sums of ops of inference against results by hand: attention of several lengths, grouped products,
-- experts, fused layers, ops by index, Triton kernels. Real traces: tests/recorded/inference_is_modelled.lua.
local families = require "trace.ops.families"
local luaunit = require "luaunit"
local perf_model = require "trace.ops.perf_model"

local BF16, F32, FP8, INT64 = "c10::BFloat16", "float", "c10::Float8_e4m3fn", "long int"

local function call(dims, types, concrete, kernels)
  return { dims = dims, types = types, concrete = concrete, kernels = function() return kernels or {} end }
end

local function of(name, dims, ...)
  return perf_model.of(families.op_of_call(name, dims), call(dims, ...))
end

local function check(model, flops, bytes, why)
  luaunit.assertNotNil(model, why)
  luaunit.assertEquals({ model.flops, model.bytes }, { flops, bytes })
end

local function fails(text, name, ...)
  local model, why = of(name, ...)
  luaunit.assertNil(model, name)
  luaunit.assertStrContains(why, text)
end

local function param(model, name)
  for _, one in ipairs(model.params) do
    if one[1] == name then return one[2] end
  end
end

-- A list of n elements, with those of `at` by index from 0.
local function arguments(n, default, at)
  local out = {}
  for i = 1, n do out[i] = at[i - 1] or default end
  return out
end

-- ---- Products --------------------------------------------------------------------------------------------

local TestProducts = {}

function TestProducts.test_groups_divide_rows_columns_or_k()
  local function grouped(a, b) return of("aten::_grouped_mm", { a, b, { 3 } }, { BF16, BF16, "int" }) end
  check(grouped({ 10, 4 }, { 3, 4, 5 }), 2 * 10 * 4 * 5, 2 * (40 + 60 + 50))
  check(grouped({ 3, 5, 4 }, { 4, 10 }), 2 * 10 * 4 * 5, 2 * (40 + 60 + 50))
  check(grouped({ 5, 4 }, { 4, 7 }), 2 * 5 * 4 * 7, 2 * (20 + 28 + 3 * 35))
  check(grouped({ 3, 5, 4 }, { 3, 4, 7 }), 3 * 2 * 5 * 4 * 7, 2 * 3 * (20 + 28 + 35))
  fails("do not fit", "aten::_grouped_mm", { { 10, 4 }, { 3, 5, 5 }, { 3 } }, { BF16, BF16, "int" })
  fails("groups is unknown", "aten::_grouped_mm", { { 5, 4 }, { 4, 7 }, {} }, { BF16, BF16, "" })
end

function TestProducts.test_fewer_rows_than_groups_read_fewer_matrices()
  check(of("aten::_grouped_mm", { { 2, 4 }, { 8, 4, 5 }, { 8 } }, { BF16, BF16, "int" }), 2 * 2 * 4 * 5,
    2 * (8 + 2 * 20 + 10))
end

function TestProducts.test_eight_bits_have_results_of_more()
  check(of("aten::_scaled_grouped_mm", { { 10, 4 }, { 3, 4, 5 }, { 10 }, { 3, 5 }, { 3 } },
    { FP8, FP8, F32, F32, "int" }), 400, 40 + 60 + 2 * 50)
  local model = of("aten::_int_mm", { { 4, 8 }, { 8, 2 } }, { "signed char", "signed char" })
  check(model, 128, 32 + 16 + 4 * 8)
  luaunit.assertEquals(model.spec, "matrix_int8")
end

function TestProducts.test_scaled_products_may_have_a_bias()
  local function scaled(bias)
    return of("sgl_kernel::fp8_scaled_mm", { { 4, 8 }, { 8, 2 }, { 4 }, { 2 }, {}, bias },
      { FP8, FP8, F32, F32, "Scalar", BF16 })
  end
  check(scaled {}, 128, 32 + 16 + 2 * 8)
  check(scaled { 2 }, 128 + 8, 32 + 16 + 2 * (8 + 2))
end

function TestProducts.test_experts_read_the_matrices_that_tokens_can_choose()
  local function fused(tokens)
    local chosen = { tokens, 2 }
    return of("vllm::outplace_fused_experts", { { tokens, 4 }, { 8, 12, 4 }, { 8, 4, 6 }, chosen, chosen },
      { BF16, BF16, BF16, F32, "int" })
  end
  check(fused(1), 2 * 1 * 2 * (48 + 24), 2 * 2 * 4 + 2 * 2 * 72)
  check(fused(100), 2 * 100 * 2 * (48 + 24), 2 * 2 * 400 + 2 * 8 * 72)
  fails("do not fit", "vllm::outplace_fused_experts",
    { { 1, 5 }, { 8, 12, 4 }, { 8, 4, 6 }, { 1, 2 }, { 1, 2 } },
    { BF16, BF16, BF16, F32, "int" })
end

-- ---- Attention -------------------------------------------------------------------------------------------

local TestAttention = {}

-- B 2, H 6, N 5, d 7; 3 heads of K and V. The ops below those of torch.nn.functional have N before H.
function TestAttention.test_all_levels_of_an_op_have_the_same_sums()
  local q, k, q_rows, k_rows = { 2, 6, 5, 7 }, { 2, 3, 5, 7 }, { 2, 5, 6, 7 }, { 2, 5, 3, 7 }
  local flops, bytes = 2 * 2 * 6 * 5 * 5 * 14 / 2, 2 * (2 * 420 + 2 * 210)
  local types = { BF16, BF16, BF16 }
  for name, one in pairs {
    _scaled_dot_product_flash_attention = { q, k, 7, 4 },
    _scaled_dot_product_efficient_attention = { q, k, 8, 6 },
    _scaled_dot_product_cudnn_attention = { q, k, 9, 6 },
    _flash_attention_forward = { q_rows, k_rows, 15, 8 },
    _efficient_attention_forward = { q_rows, k_rows, 14, 9 },
    _cudnn_attention_forward = { q, k, 13, 10 },
    ["flash_attn::_flash_attn_forward"] = { q_rows, k_rows, 11, 5 },
  } do
    local flag = name == "_efficient_attention_forward" and "1" or "True"
    name = name:find("::", 1, true) and name or "aten::" .. name
    check(of(name, arguments(one[3], {}, { [0] = one[1], one[2], one[2] }), types,
      arguments(one[3], "", { [one[4]] = flag })), flops, bytes, name)
  end
end

function TestAttention.test_backward_ops_have_the_sums_of_their_forward_op()
  local q, rows = { 2, 6, 5, 7 }, { 2, 5, 6, 7 }
  local products, bytes = 2 * 2 * 6 * 5 * 5 * 28, 2 * 7 * 420
  for name, one in pairs {
    _scaled_dot_product_flash_attention_backward = { q, 15, 11, 1.25 },
    _flash_attention_backward = { rows, 17, 11, 1.25 },
    _scaled_dot_product_efficient_attention_backward = { q, 13, 11, 1 },
    _scaled_dot_product_cudnn_attention_backward = { q, 16, 14, 1 },
    _efficient_attention_backward = { rows, 19, 14, 1 },
    ["flash_attn::_flash_attn_backward"] = { rows, 19, 11, 1.25 },
  } do
    name = name:find("::", 1, true) and name or "aten::" .. name
    local model = of(name, arguments(one[2], {}, { [0] = one[1], one[1], one[1], one[1] }),
      { BF16, BF16, BF16, BF16 }, arguments(one[2], "", { [one[3]] = "True" }))
    check(model, products * one[4] / 2, bytes, name)
    luaunit.assertEquals(families.category(name, ""), "SDPA_bwd")
  end
end

function TestAttention.test_packed_requests_have_no_sums_where_their_lengths_are_unknown()
  local rows, why = { 1, 10, 6, 7 }, "requests are of several lengths"
  fails(why, "aten::_efficient_attention_forward",
    arguments(14, {}, { [0] = rows, rows, rows, {}, { 3 }, { 3 } }), { BF16, BF16, BF16 })
  fails(why, "aten::_efficient_attention_backward",
    arguments(19, {}, { [0] = rows, rows, rows, rows, {}, rows, { 3 }, { 3 } }), { BF16, BF16, BF16, BF16 })
end

-- Two requests of 3 rows of Q, with 8 keys each: in pages of a cache, or in one tensor.
function TestAttention.test_requests_of_several_lengths_count_as_equally_long()
  local function varlen(k, causal)
    return of("_vllm_fa2_C::varlen_fwd",
      arguments(20, {}, { [0] = { 6, 4, 16 }, k, k, { 6, 4, 16 }, { 3 }, {}, { 2 } }), { BF16, BF16, BF16 },
      arguments(20, "", { [10] = "3", [11] = "8", [15] = causal }))
  end
  local bytes = 2 * (2 * 6 * 4 * 16 + 2 * 8 * 2 * 32)
  check(varlen({ 100, 32, 2, 16 }, "False"), 2 * 4 * 6 * 8 * 32, bytes)
  check(varlen({ 16, 2, 16 }, "False"), 2 * 4 * 6 * 8 * 32, bytes)
  check(varlen({ 100, 32, 2, 16 }, "True"), 2 * 4 * 6 * (8 - 1.5) * 32, bytes)
  luaunit.assertEquals(param(varlen({ 16, 2, 16 }, "True"), "phase"), "prefill")
  fails("number of requests", "_vllm_fa2_C::varlen_fwd", { { 6, 4, 16 }, { 16, 2, 16 }, { 16, 2, 16 } },
    { BF16, BF16, BF16 })
end

function TestAttention.test_one_row_for_each_request_is_decoding()
  local pages = { 9, 64, 2, 16 }
  for _, causal in ipairs { "False", "True" } do -- the last row sees all keys
    local model = of("flash_attn_3::fwd",
      arguments(30, {}, { [0] = { 2, 4, 16 }, pages, pages, {}, {}, {}, {}, { 3 } }), { BF16, BF16, BF16 },
      arguments(30, "", { [12] = "1", [13] = "40", [24] = causal }))
    check(model, 2 * 4 * 2 * 40 * 32, 2 * (2 * 2 * 4 * 16 + 2 * 40 * 2 * 32))
    luaunit.assertEquals(param(model, "phase"), "decode")
  end
end

-- ---- Fused layers ----------------------------------------------------------------------------------------

local TestLayers = {}

function TestLayers.test_norms_count_residuals_and_quantisation()
  local x, w = { 6, 8 }, { 8 }
  local norm = 6 * (2 * 8 + 2) + 2 * 48
  check(of("_C::rms_norm", { x, x, w, {} }, { BF16, BF16, BF16, "Scalar" }), norm, 2 * (2 * 48 + 8))
  check(of("_C::fused_add_rms_norm", { x, x, w, {} }, { BF16, BF16, BF16, "Scalar" }), norm + 48,
    2 * (4 * 48 + 8))
  check(of("_C::rms_norm_static_fp8_quant", { x, x, w, { 1 }, {} }, { FP8, BF16, BF16, F32, "Scalar" }),
    norm + 48, 2 * (48 + 8) + 48)
  fails("has no shape", "_C::rms_norm", { x, x, { 9 }, {} }, { BF16, BF16, BF16, "Scalar" })
end

function TestLayers.test_activations_quantisation_and_caches()
  check(of("_C::silu_and_mul", { { 6, 8 }, { 6, 16 } }, { BF16, BF16 }), 2 * 48, 2 * (96 + 48))
  check(of("_C::static_scaled_fp8_quant", { { 6, 8 }, { 6, 8 }, { 1 } }, { FP8, BF16, F32 }), 48, 48 + 96 + 4)
  local new, pages = { 6, 2, 8 }, { 99, 16, 2, 8 }
  check(of("_C_cache_ops::reshape_and_cache_flash", { new, new, pages, pages, { 6 } },
    { BF16, BF16, "unsigned char", "unsigned char", INT64 }), 0, 2 * 192 + 192 + 6 * 8)
  fails("places", "_C_cache_ops::reshape_and_cache_flash", { { 6, 2, 8 }, { 6, 2, 8 } }, { BF16, BF16 })
end

-- 6 positions; 4 heads of Q and 1 of K, of 8 elements, of which 4 turn.
function TestLayers.test_rotary_embeddings_move_what_turns()
  local function rotary(cache)
    return of("_C::rotary_embedding", { { 6 }, { 6, 32 }, { 6, 8 }, {}, cache, {} },
      { INT64, BF16, BF16, "Scalar", BF16, "Scalar" }, { "", "", "", "8", "", "True" })
  end
  check(rotary({ 99, 4 }), 3 * 6 * 5 * 4, 2 * 2 * 6 * 5 * 4 + 6 * 4 * 2 + 6 * 8)
  luaunit.assertNil((rotary({ 99, 16 })))
  fails("size of its heads", "_C::rotary_embedding", { { 6 }, { 6, 32 }, { 6, 8 }, {}, { 99, 4 }, {} },
    { INT64, BF16, BF16, "Scalar", BF16, "Scalar" })
end

function TestLayers.test_state_space_models()
  check(of("_C::causal_conv1d_fwd", { { 2, 8, 5 }, { 8, 4 } }, { BF16, BF16 }), 2 * 80 * 4, 2 * (160 + 32))
  local u, state = { 2, 8, 5 }, { 2, 1, 3, 5 }
  check(of("_C::selective_scan_fwd", { u, u, { 8, 3 }, state, state, { 8 }, u },
    { BF16, BF16, F32, BF16, BF16 }), 80 * (9 * 3 + 2), 2 * (4 * 80 + 2 * 30) + 4 * 24)
  fails("has no shape", "_C::selective_scan_fwd", { u, u, {}, state, state }, { BF16, BF16, F32, BF16, BF16 })
end

-- Of a table of 1000 rows the kernel reads at most the 6 of its range.
function TestLayers.test_triton_kernels_move_at_most_their_range_of_each_tensor()
  check(of("triton_per_fused_embedding_3", { { 6 }, { 1000, 8 }, { 8 }, { 6, 8 }, {}, {} },
    { INT64, BF16, BF16, BF16, "Scalar", "Scalar" }, { "", "", "", "", "6", "8" }), 48,
    6 * 8 + 2 * (48 + 8 + 48))
  fails("no tensor", "triton_poi_fused_add_0", { {} }, { "Scalar" }, { "4" })
  fails("sizes of its range", "triton_poi_fused_add_0", { { 6, 8 }, { 6, 8 }, {} }, { BF16, BF16, "Scalar" })
  luaunit.assertNil(families.op("triton_tem_fused_mm_2"))
  luaunit.assertNil(families.op("my_triton_kernel"))
end

-- ---- By index --------------------------------------------------------------------------------------------

local TestIndices = {}

-- A trace has no types for lists: the name of a kernel has the size.
function TestIndices.test_joins_move_all_tensors_of_their_list()
  local function cat(kernel)
    return of("aten::cat", { { { 2, 3 }, { 2, 5 } }, {} }, { "TensorList", "Scalar" }, { "", "-1" },
      { kernel })
  end
  local name = "void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<"
  check(cat(name .. "at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 3>(char*)"), 0,
    2 * 2 * 16)
  check(cat(name .. "float, unsigned int, 3>(float*)"), 0, 2 * 4 * 16)
  check(cat("my_kernel"), 0, nil)
  fails("too large", "aten::cat", { { { 1 << 32, 1 << 32 }, { 2 } }, {} }, { "TensorList", "Scalar" }, nil,
    { name .. "float, unsigned int, 3>(float*)" })
  fails("list are not in the trace", "aten::cat", { {}, {} }, { "TensorList", "Scalar" })
  fails("list are not in the trace", "aten::cat", { { { 2 }, 3 }, {} }, { "TensorList", "Scalar" })
end

function TestIndices.test_reads_by_index_move_what_is_selected()
  check(of("aten::index_select", { { 1000, 8 }, {}, { 6 } }, { BF16, "Scalar", INT64 }, { "", "0", "" }), 0,
    2 * 2 * 48 + 6 * 8)
  check(of("aten::index_select", { { 1000, 8 }, {}, { 6 } }, { BF16, "Scalar", INT64 }, { "", "-1", "" }), 0,
    2 * 2 * 6000 + 6 * 8)
  fails("dimension", "aten::index_select", { { 1000, 8 }, {}, { 6 } }, { BF16, "Scalar", INT64 },
    { "", "2", "" })
  local expanded = call({ { 1000, 8 }, {}, { 6, 8 } }, { BF16, "Scalar", INT64 }, { "", "0", "" })
  expanded.strides = { { 8, 1 }, {}, { 1, 0 } }
  check(perf_model.of(families.op("aten::gather"), expanded), 0, 2 * 2 * 48 + 6 * 8)
end

function TestIndices.test_writes_by_index()
  check(of("aten::scatter_add_", { { 9, 8 }, {}, { 6, 8 }, { 6, 8 } }, { BF16, "Scalar", INT64, BF16 }), 48,
    3 * 2 * 48 + 48 * 8)
  check(of("aten::scatter_", { { 9, 8 }, {}, { 6, 8 }, {} }, { BF16, "Scalar", INT64, "Scalar" }), 0,
    2 * 48 + 48 * 8)
  check(of("aten::_index_put_impl_", { { 9, 8 }, {}, { 6, 8 }, {}, {} },
    { BF16, "", BF16, "Scalar", "Scalar" }, { "", "", "", "True", "" }), 48, 3 * 2 * 48)
  fails("indices are not in the trace", "aten::_index_put_impl_", { { 9, 8 }, {}, {}, {}, {} },
    { BF16, "", BF16 })
  fails("indices are not in the trace", "aten::_index_put_impl_", { { 9, 8 }, {}, { 1, 8 }, {}, {} },
    { BF16, "", BF16 })
  check(of("aten::embedding_dense_backward", { { 6, 8 }, { 6 }, {}, {}, {} }, { BF16, INT64 },
    { "", "", "1000", "-1", "False" }), 48, 2 * (8000 + 3 * 48) + 6 * 8)
end

function TestIndices.test_order_and_losses()
  check(of("aten::topk", { { 6, 8 }, {}, {} }, { BF16, "Scalar", "Scalar" }, { "", "3", "-1" }), 48,
    2 * 48 + 18 * (2 + 8))
  check(of("aten::sort", { { 6, 8 } }, { BF16 }), 48, 2 * 48 + 48 * 10)
  fails("k or its dimension", "aten::topk", { { 6, 8 }, {}, {} }, { BF16, "Scalar", "Scalar" })
  check(of("aten::_log_softmax", { { 6, 8 }, {}, {} }, { BF16, "Scalar", "Scalar" }, { "", "1", "True" }),
    5 * 48, 48 * (2 + 4))
  check(of("aten::_softmax_backward_data", { { 6, 8 }, { 6, 8 }, {}, {} }, { F32, F32 },
    { "", "", "1", "15" }), 4 * 48, 48 * (4 + 4 + 2))
  check(of("aten::nll_loss_forward", { { 6, 8 }, { 6 } }, { F32, INT64 }), 6, 6 * (4 + 8))
  check(of("aten::nll_loss_backward", { {}, { 6, 8 }, { 6 } }, { F32, F32, INT64 }), 6, 48 * 4 + 6 * (4 + 8))
end

function TestIndices.test_pooling()
  local window = { "", "[3, 3]", "[2, 2]", "[1, 1]", "[1, 1]", "False" }
  local dims = { { 2, 4, 9, 8 }, {}, {}, {}, {}, {} }
  check(of("aten::max_pool2d_with_indices", dims, { F32 }, window), 2 * 4 * 5 * 4 * 9,
    4 * 576 + 160 * (4 + 8))
  window[3] = "[0, 0]"
  luaunit.assertNil((of("aten::max_pool2d_with_indices", dims, { F32 }, window)))
end

-- Rounded up, 3 x 3 with windows of 2 would have 3 x 3 results, the last of padding alone.
function TestIndices.test_the_last_window_begins_before_the_padding_at_the_end()
  local function pooled(step)
    return param(of("aten::max_pool2d_with_indices", { { 2, 4, 3, 3 }, {}, {}, {}, {}, {} }, { F32 },
      { "", "[2, 2]", step, "[1, 1]", "[1, 1]", "True" }), "op_shape")
  end
  luaunit.assertEquals(pooled "[2, 2]", { 2, 4, 2, 2 })
  luaunit.assertEquals(pooled "[1, 1]", { 2, 4, 4, 4 })
end

-- Argument 1 of bincount has weights, and its number of bins is data.
function TestIndices.test_bins_are_counted_if_their_number_is_given()
  check(of("aten::histc", { { 6, 8 }, {} }, { F32, "Scalar" }, { "", "10" }), 48, 4 * (48 + 10))
  luaunit.assertNil(families.op("aten::bincount"))
end

function TestIndices.test_fills_and_ranges_only_write()
  check(of("aten::fill_", { { 6, 8 }, {} }, { BF16, "Scalar" }), 0, 2 * 48)
  check(of("aten::normal_", { { 6, 8 }, {} }, { F32, "Scalar" }), 48, 4 * 48)
  local function range(concrete, types)
    return of("aten::arange", arguments(#concrete, {}, {}), types or {}, concrete)
  end
  check(range { "7", "4", "0", "", "" }, 7, 7 * 8)
  check(range { "7", "", "", "", "" }, 7, 7 * 8)
  check(range { "1", "8", "2", "6", "", "", "" }, 4, 4 * 4)
  check(range({ "0", "7", "1", "" }, { "Scalar", "Scalar", "Scalar", "int" }), 7, 7 * 4)
  fails("range is unknown", "aten::arange", { {}, {}, {}, {} }, {}, { "0", "7", "0", "" })
end

function TestIndices.test_several_inputs_are_broadcast()
  check(of("aten::where", { { 8 }, { 6, 1 }, {} }, { "bool", BF16, BF16 }), 48, 8 + 2 * 6 + 2 + 2 * 48)
  fails("do not fit", "aten::where", { { 7 }, { 6, 8 }, {} }, { "bool", BF16, BF16 })
  check(of("aten::eq", { { 6, 8 }, {} }, { INT64, "Scalar" }), 48, 8 * 48 + 4 + 48)
end

return require "suites" { { "TestProducts", TestProducts }, { "TestAttention", TestAttention },
  { "TestLayers", TestLayers }, { "TestIndices", TestIndices } }
