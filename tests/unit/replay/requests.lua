-- Ops of a trace as requests: the layout of operands, the additions, and notes about differences from the
-- trace.
local families = require "trace.ops.families"
local luaunit = require "luaunit"
local perf_model = require "trace.ops.perf_model"
local request = require "replay.request"

local function no_kernels() return {} end

-- The request of an op, and the reason if there is none.
local function of(name, call)
  call.kernels = no_kernels
  local op = families.op(name)
  return request.of(op, call, assert(perf_model.of(op, call)))
end

local function mm(dims, strides, dtype)
  local types = { dtype or "float", dtype or "float" }
  return assert(of("aten::mm", { dims = dims, strides = strides, types = types }))
end

local function values(one, ...)
  local out = {}
  for i, name in ipairs { ... } do out[i] = request.value(one, name) end
  return out
end

local TestRequests = {}

function TestRequests.test_strides_give_the_layout_of_a_matrix()
  local cases = { -- of A, 4 × 8: transposed, leading dimension
    { { 8, 1 }, 0, 8 }, { { 1, 4 }, 1, 4 }, { { 11, 1 }, 0, 11 }, { { 1, 9 }, 1, 9 }, { { 0, 1 }, 0, 8 },
    { { 2, 16 }, 0, 8 },
  }
  for _, case in ipairs(cases) do
    local one = mm({ { 4, 8 }, { 8, 2 } }, { case[1], { 2, 1 } })
    luaunit.assertEquals(values(one, "trans_a", "lda"), { case[2], case[3] })
  end
end

function TestRequests.test_a_dimension_of_one_fits_any_stride()
  local one = mm({ { 1, 8 }, { 8, 1 } }, { { 99, 1 }, { 1, 77 } })
  luaunit.assertEquals(values(one, "trans_a", "trans_b", "ldb"), { 0, 0, 1 })
  luaunit.assertEquals(one.notes, {})
  one = mm({ { 1, 8 }, { 8, 2 } }, { { 1, 5 }, { 2, 1 } }) -- every fifth element of a column
  luaunit.assertEquals(values(one, "trans_a", "lda"), { 1, 5 })
end

function TestRequests.test_other_layouts_are_copied_and_reported()
  local one = mm({ { 4, 8 }, { 8, 2 } }, { { 0, 1 }, { 2, 1 } })
  luaunit.assertEquals(one.notes, { "A has strides (0, 1): copied first; the copy is not timed" })
end

function TestRequests.test_batches_keep_their_strides()
  local one = assert(of("aten::bmm", { dims = { { 3, 4, 8 }, { 3, 8, 2 } }, types = { "float", "float" },
    strides = { { 0, 8, 1 }, { 16, 1, 8 } } }))
  luaunit.assertEquals(values(one, "batch", "stride_a", "trans_b", "ldb", "stride_b"), { 3, 0, 1, 8, 16 })
end

local function addmm(added, concrete, name)
  return assert(of(name or "aten::addmm", { dims = { added, { 4, 8 }, { 8, 2 }, {}, {} }, concrete = concrete,
    types = { "float", "float", "float", "Scalar", "Scalar" },
    strides = { {}, { 8, 1 }, { 2, 1 }, {}, {} } }))
end

function TestRequests.test_the_addend_is_a_row_or_a_matrix()
  local concrete = { "", "", "", "0.5", "2" }
  luaunit.assertEquals(values(addmm({ 2 }, concrete), "addend", "beta", "alpha"), { "row", 0.5, 2 })
  luaunit.assertEquals(values(addmm({ 1, 2 }, concrete), "addend"), { "row" })
  luaunit.assertEquals(values(addmm({ 4, 2 }, concrete), "addend"), { "matrix" })
  luaunit.assertEquals(addmm({ 4, 2 }, concrete).notes, {})
  luaunit.assertEquals(addmm({ 4, 1 }, concrete).notes,
    { "the addend is expanded first; that is not timed" })
  luaunit.assertEquals(addmm({ 2 }).notes, { "alpha and beta are not in the trace: taken as 1" })
end

function TestRequests.test_a_missing_activation_is_reported()
  luaunit.assertEquals(addmm({ 2 }, { "", "", "", "1", "1" }, "aten::_addmm_activation").notes,
    { "the activation is left out" })
end

function TestRequests.test_scaled_products_keep_their_scales_and_types()
  local call = { dims = { { 16, 32 }, { 32, 16 }, {}, {}, {}, {}, {}, {} },
    types = { "c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float", "float", "", "", "Scalar", "Scalar" },
    strides = { { 32, 1 }, { 1, 32 }, {}, {}, {}, {}, {}, {} },
    concrete = { "", "", "", "", "", "", "15", "True" } }
  local one = assert(of("aten::_scaled_mm", call))
  luaunit.assertEquals(values(one, "dtype", "out_dtype", "scaling", "fast_accumulation", "trans_b"),
    { "float8_e4m3fn", "bfloat16", "tensor", 1, 1 })
  luaunit.assertEquals(values(one, "addend"), { "none" })
  luaunit.assertEquals(one.notes, {})
end

-- A scaled product of 16 × 32 by 32 × 24; `change` alters its arguments.
local function scaled(change)
  local call = { dims = { { 16, 32 }, { 32, 24 }, {}, {}, {}, {}, {}, {} },
    types = { "c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float", "float", "", "", "Scalar", "Scalar" },
    strides = { { 32, 1 }, { 1, 32 }, {}, {}, {}, {}, {}, {} },
    concrete = { "", "", "", "", "", "", "15", "False" } }
  change(call)
  return of("aten::_scaled_mm", call)
end

function TestRequests.test_the_scales_of_both_operands_are_read()
  local cases = { -- of A and of B: the kind, and the beginning of the note
    { {}, {}, "tensor" }, { { 16, 1 }, { 1, 24 }, "row" }, { { 1, 1 }, { 1 }, "tensor" },
    { {}, { 1, 24 }, "row", "A has one scale, and B one for each column" },
    { { 16, 1 }, {}, "row", "B has one scale, and A one for each row" },
    { { 16, 2 }, { 2, 24 }, "block" }, { {}, { 2, 24 }, "block" }, { { 16, 1 }, { 1, 16 }, "block" },
  }
  for i, case in ipairs(cases) do
    local one = assert(scaled(function(call) call.dims[3], call.dims[4] = case[1], case[2] end))
    luaunit.assertEquals(values(one, "scaling"), { case[3] }, "case " .. i)
    luaunit.assertEquals(#one.notes, case[4] and 1 or 0)
    if case[4] then luaunit.assertStrContains(one.notes[1], case[4]) end
  end
end

-- Of 300 × 700 by 700 × 520: six blocks of 128 along K, padded to eight; 22 of 32, padded to 24.
function TestRequests.test_the_shapes_of_scales_give_their_blocks()
  local e8m0 = "c10::Float8_e8m0fnu"
  local cases = { -- the scales of A and of B, their type, the blocks
    { { 300, 6 }, { 6, 520 }, "float", "1x128", "1x128" },
    { { 300, 6 }, { 6, 5 }, "float", "1x128", "128x128" },
    { { 300, 6 }, { 8, 5 }, "float", "1x128", "128x128" },
    { { 3, 6 }, { 6, 520 }, "float", "128x128", "1x128" },
    { { 384 * 24 }, { 640 * 24 }, e8m0, "1x32", "1x32" },
    { { 300, 22 }, { 520, 22 }, e8m0, "1x32", "1x32" },
    { { 300, 6 }, {}, "float" }, { { 300, 7 }, { 7, 520 }, "float" }, { { 300, 6 }, { 6, 520 }, e8m0 },
    { { 300, 6 }, { 6, 520 }, "c10::Float8_e4m3fn" },
  }
  for i, case in ipairs(cases) do
    local one = assert(scaled(function(call)
      call.dims = { { 300, 700 }, { 700, 520 }, case[1], case[2], {}, {}, {}, {} }
      call.strides = { { 700, 1 }, { 1, 700 }, {}, {}, {}, {}, {}, {} }
      call.types[3], call.types[4] = case[3], case[3]
    end))
    luaunit.assertEquals(values(one, "scaling"), { "block" }, "case " .. i)
    luaunit.assertEquals(request.value(one, "block_a"), case[4], "case " .. i)
    luaunit.assertEquals(request.value(one, "block_b"), case[5], "case " .. i)
  end
end

-- PyTorch counts pairs of 4 bits along K, and a factor for each 16 elements, in whole tiles.
function TestRequests.test_products_of_4_bits_count_their_elements()
  local fp4 = "c10::Float4_e2m1fn_x2"
  local function of_pairs(change)
    return scaled(function(call)
      call.dims = { { 300, 352 }, { 352, 520 }, { 384 * 44 }, { 640 * 44 }, {}, {}, {}, {} }
      call.strides = { { 352, 1 }, { 1, 352 }, {}, {}, {}, {}, {}, {} }
      call.types = { fp4, fp4, "c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "", "", "Scalar", "Scalar" }
      if change then change(call) end
    end)
  end
  local one = assert(of_pairs())
  luaunit.assertEquals(values(one, "dtype", "m", "n", "k", "lda", "ldb", "scaling", "block_a", "block_b",
    "out_dtype"), { "float4_e2m1fn_x2", 300, 520, 704, 704, 704, "block", "1x16", "1x16", "bfloat16" })
  luaunit.assertNil(one.flops) -- those of the model
  one = assert(of_pairs(function(call) call.dims[3] = { 384 * 43 } end))
  luaunit.assertNil(request.value(one, "block_a"))
  local _, why = of_pairs(function(call) call.strides[2] = { 520, 1 } end)
  luaunit.assertEquals(why, "pairs of 4 bits are not along K")
end

function TestRequests.test_the_bias_of_a_scaled_product_is_added()
  local one = assert(scaled(function(call) call.dims[5], call.types[5] = { 24 }, "c10::BFloat16" end))
  luaunit.assertEquals(values(one, "addend", "addend_dtype", "alpha", "beta"), { "row", "bfloat16", 1, 1 })
  luaunit.assertEquals(one.notes, {})
  one = assert(scaled(function() end))
  luaunit.assertNil(request.value(one, "addend_dtype"))
end

function TestRequests.test_scaled_products_of_two_types_are_refused()
  local one, why = scaled(function(call) call.types[2] = "c10::Float8_e5m2" end)
  luaunit.assertNil(one)
  luaunit.assertEquals(why, "A and B are of different types (float8_e4m3fn and float8_e5m2)")
end

function TestRequests.test_the_type_of_a_scaled_result_is_not_guessed()
  local function out_of(text)
    local one, why = scaled(function(call) call.concrete[7] = text end)
    return one and values(one, "out_dtype")[1], why
  end
  luaunit.assertEquals(out_of "5", "float16")
  luaunit.assertEquals(out_of "24", "float8_e4m3fn")
  luaunit.assertEquals(out_of "", "float8_e4m3fn") -- not given: that of A
  luaunit.assertEquals({ out_of "99" }, { nil, "replay does not support PyTorch's type 99" })
  local one = assert(scaled(function(call) call.concrete = nil end))
  luaunit.assertEquals(one.notes, { "the result's type is not in the trace: taken as bfloat16" })
  one = assert(scaled(function(call) call.types[6] = "float" end))
  luaunit.assertEquals(one.notes, { "the result's scale is left out" })
  luaunit.assertNil(request.value(one, "scale_out"))
  one = assert(scaled(function(call) call.types[6], call.concrete[7] = "float", "24" end))
  luaunit.assertEquals(one.notes, {})
  luaunit.assertEquals(values(one, "scale_out", "out_dtype"), { 1, "float8_e4m3fn" })
end

-- Its result is argument 0, so all others are one place later.
function TestRequests.test_cutlass_takes_its_scales_from_their_own_places()
  local one = assert(of("_C::cutlass_scaled_mm", {
    dims = { { 16, 24 }, { 16, 32 }, { 32, 24 }, { 16, 1 }, { 1, 24 }, { 24 } },
    types = { "c10::Half", "c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float", "float", "c10::Half" },
    strides = { { 24, 1 }, { 32, 1 }, { 1, 32 }, { 1, 1 }, { 1, 1 }, { 1 } } }))
  luaunit.assertEquals(values(one, "scaling", "out_dtype", "addend", "trans_b"),
    { "row", "float16", "row", 1 })
  luaunit.assertEquals(one.notes, {})
end

function TestRequests.test_empty_ops_have_nothing_to_time()
  for _, dims in ipairs { { { 0, 8 }, { 8, 2 } }, { { 4, 0 }, { 0, 2 } }, { { 4, 8 }, { 8, 0 } } } do
    local one, why = of("aten::mm", { dims = dims, types = { "float", "float" } })
    luaunit.assertNil(one)
    luaunit.assertEquals(why, "an empty product cannot be timed")
  end
end

local function convolution(input_strides, filter_strides)
  return assert(of("aten::convolution", { dims = { { 2, 4, 5, 6 }, { 8, 2, 3, 3 }, { 8 } },
    types = { "c10::BFloat16", "c10::BFloat16", "c10::BFloat16" },
    strides = { input_strides, filter_strides },
    concrete = { "", "", "", "[2]", "[1, 0]", "[1, 1]", "False", "[0, 0]", "2" } }))
end

function TestRequests.test_convolutions_have_the_place_of_channels()
  local one = convolution({ 120, 30, 6, 1 }, { 18, 9, 3, 1 })
  luaunit.assertEquals(values(one, "spatial", "stride", "padding", "groups", "bias", "out_channels", "input"),
    { 2, "2,2", "1,0", 2, 1, 8, "5,6" })
  luaunit.assertEquals(values(one, "input_channels_last", "filter_channels_last"), { 0, 0 })
  one = convolution({ 120, 1, 24, 4 }, { 18, 1, 6, 2 })
  luaunit.assertEquals(values(one, "input_channels_last", "filter_channels_last"), { 1, 1 })
  luaunit.assertEquals(convolution({ 240, 60, 12, 2 }, { 18, 9, 3, 1 }).notes,
    { "the input has strides (240, 60, 12, 2): copied first; the copy is not timed" })
end

-- The backward of such a convolution, with a result of 3 × 4; `change` alters its arguments.
local function backward(change)
  local call = { dims = { { 2, 8, 3, 4 }, { 2, 4, 5, 6 }, { 8, 2, 3, 3 } },
    types = { "c10::BFloat16", "c10::BFloat16", "c10::BFloat16" },
    strides = { { 96, 12, 4, 1 }, { 120, 30, 6, 1 }, { 18, 9, 3, 1 } },
    concrete = { "", "", "", "[8]", "[2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2",
      "[True, True, True]" } }
  if change then change(call) end
  return of("aten::convolution_backward", call)
end

function TestRequests.test_backward_convolutions_have_the_gradients_of_their_mask()
  local one = assert(backward())
  luaunit.assertEquals(one.kind, "convolution_backward")
  luaunit.assertEquals(values(one, "spatial", "stride", "padding", "groups", "out_channels", "input",
    "filter", "gradients"), { 2, "2,2", "1,1", 2, 8, "5,6", "3,3", "input,filter,bias" })
  luaunit.assertNil(request.value(one, "bias"))
  luaunit.assertEquals(one.notes, {})
  luaunit.assertEquals(one.flops, 2 * 2 * (2 * 8 * 12) * 18 + 2 * 8 * 12)
  one = assert(backward(function(call) call.concrete[11] = "[False, True, False]" end))
  luaunit.assertEquals(values(one, "gradients"), { "filter" })
  luaunit.assertEquals(one.flops, 2 * (2 * 8 * 12) * 18)
end

function TestRequests.test_backward_convolutions_with_unknown_gradients_are_refused()
  local cases = {
    ["the trace does not show which gradients were computed (output_mask)"] = { 11, "" },
    ["no gradient was computed"] = { 11, "[False, False, False]" },
  }
  for reason, case in pairs(cases) do
    local one, why = backward(function(call) call.concrete[case[1]] = case[2] end)
    luaunit.assertNil(one)
    luaunit.assertEquals(why, reason)
  end
  local one, why = backward(function(call) call.types[1] = "float" end)
  luaunit.assertNil(one)
  luaunit.assertEquals(why, "input and gradient are of different types")
  one, why = backward(function(call) call.dims[1] = {} end)
  luaunit.assertNil(one)
  luaunit.assertEquals(why, "the gradient of the result has no shape")
end

-- Channels last, in one of input and gradient or in both.
function TestRequests.test_a_gradient_laid_out_unlike_the_input_is_reported()
  local function with(gradient, input)
    local one = assert(backward(function(call) call.strides = { gradient, input, { 18, 9, 3, 1 } } end))
    return values(one, "input_channels_last")[1], one.notes
  end
  local plain, last = { 96, 12, 4, 1 }, { 96, 1, 32, 8 }
  local other = "the gradient of the result is laid out unlike the input: copied first; the copy is not timed"
  luaunit.assertEquals({ with(last, { 120, 1, 24, 4 }) }, { 1, {} })
  luaunit.assertEquals({ with(plain, { 120, 1, 24, 4 }) }, { 1, { other } })
  luaunit.assertEquals({ with(last, { 120, 30, 6, 1 }) }, { 0, { other } })
  luaunit.assertEquals({ with({ 0, 0, 0, 0 }, { 120, 30, 6, 1 }) },
    { 0, { "the gradient of the result has strides (0, 0, 0, 0): copied first; the copy is not timed" } })
  luaunit.assertEquals({ with({}, { 120, 30, 6, 1 }) },
    { 0, { "strides are not in the trace: taken as contiguous" } })
end

function TestRequests.test_a_line_reads_back_as_the_same_request()
  for _, one in ipairs { addmm({ 2 }, { "", "", "", "0.1", "1" }), convolution({ 120, 30, 6, 1 },
    { 18, 9, 3, 1 }), assert(backward()) } do
    local line = request.line(one, "x")
    local again, id = request.read(line)
    luaunit.assertEquals(id, "x")
    luaunit.assertEquals(request.line(again, "x"), line)
    luaunit.assertEquals(request.line(assert(request.read(request.saved(one, "x"))), "x"), line)
  end
end

function TestRequests.test_a_saved_op_keeps_its_notes()
  local one = mm({ { 4, 8 }, { 8, 2 } }, { { 0, 1 }, { 2, 1 } })
  local again, id = request.read(request.saved(one, "x"))
  luaunit.assertEquals(id, "x")
  luaunit.assertEquals(again.notes, one.notes)
  luaunit.assertEquals(request.saved(again, "x"), request.saved(one, "x"))
end

function TestRequests.test_unknown_types_are_reported()
  local one, why = of("aten::mm", { dims = { { 4, 8 }, { 8, 2 } }, types = { "long int", "long int" } })
  luaunit.assertNil(one)
  luaunit.assertEquals(why, "replay does not support long int")
end

return require "suites" { { "TestRequests", TestRequests } }
