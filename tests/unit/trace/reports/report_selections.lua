-- The ops that the sheets list, and the GPU events that they count: small traces with known results.
local luaunit = require "luaunit"
local pooled = require "trace.ops.pooled_statistics"
local small_trace = require "unit.trace.reports.small_trace"

local MATRICES = { dims = { { 4, 8 }, { 8, 2 } }, types = { "float", "float" },
  strides = { { 8, 1 }, { 2, 1 } }, concrete = { "", "" } }

local trace
local function new_trace() trace = small_trace.new() end

local function names(sheet)
  local out = {}
  for row = 1, sheet and #sheet.rows or 0 do out[row] = sheet.cell(row, "name") end
  return out
end

local TestLaunchers = { setUp = new_trace }

function TestLaunchers.test_a_launch_counts_for_the_op_around_it()
  trace:op("outer", 0, 100)
  trace:op("aten::mm", 10, 20, MATRICES)
  trace:launch(12, 5)
  trace:launch(14, 6)
  trace:launch(50, 7)
  local ops = trace:sheets("around").ops_summary
  luaunit.assertEquals(names(ops), { "aten::mm", "outer" })
  luaunit.assertEquals(ops.cell(1, "total_direct_kernel_time_sum"), 11.0)
  luaunit.assertEquals(ops.cell(2, "total_direct_kernel_time_sum"), 7.0)
  luaunit.assertEquals(ops.cell(2, "total_subtree_kernel_time_sum"), 18.0)
  luaunit.assertEquals(ops.cell(1, "Categories"), "['GEMM']")
end

function TestLaunchers.test_execute_is_a_frame_and_a_launch_without_an_op_stands_for_itself()
  trace:op("my::op", 0, 40)
  trace:op("execute", 10, 20)
  trace:launch(12, 5)
  trace:launch(200, 3, { runtime = "cudaGraphLaunch" })
  local sheets = trace:sheets("execute")
  luaunit.assertEquals(names(sheets.ops_summary), { "my::op", "cudaGraphLaunch" })
  luaunit.assertEquals(sheets.kernel_summary.cell(2, "Parent op category"), "graph")
end

function TestLaunchers.test_communication_is_no_op_but_is_below_one()
  trace:op("outer", 0, 100)
  trace:launch(10, 5)
  trace:launch(20, 50, { kernel = "ncclDevKernel_AllReduce" })
  local sheets = trace:sheets("communication")
  luaunit.assertEquals(sheets.ops_summary.cell(1, "total_direct_kernel_time_sum"), 5.0)
  luaunit.assertEquals(sheets.ops_summary.cell(1, "total_subtree_kernel_time_sum"), 55.0)
  luaunit.assertEquals(sheets.gpu_timeline.cell(2, "time ms"), 0.05)
end

function TestLaunchers.test_a_category_comes_from_the_first_kernel_if_no_name_has_it()
  trace:ran("my::one", 0, 5, nil, { kernel = "void at::native::reduce_kernel<512>()" })
  trace:ran("my::two", 20, 4, nil, { kernel = "void at::native::vectorized_elementwise_kernel<4>()" })
  trace:ran("triton_poi_fused", 40, 3)
  trace:ran("my::three", 60, 2)
  local ops = trace:sheets("categories").ops_summary_by_category
  local got = {}
  for row = 1, 4 do got[row] = ops.cell(row, "op category") end
  luaunit.assertEquals(got, { "reduce", "elementwise", "triton", "other" })
end

-- An op below it fills memory first, and an allreduce of its own runs before that.
function TestLaunchers.test_an_op_has_one_category_on_all_sheets()
  trace:op("my::pool_backward", 0, 100)
  trace:launch(2, 3, { kernel = "ncclDevKernel_AllReduce" })
  trace:op("aten::zero_", 10, 20)
  trace:launch(12, 3, { kernel = "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>" })
  trace:launch(40, 5, { kernel = "max_pool_backward_nchw" })
  trace:launch(50, 4, { kernel = "void at::native::reduce_kernel<512>()" })
  local sheets = trace:sheets("one_category")
  local function categories(sheet, name_column, category_column)
    local out = {}
    for row = 1, #sheet.rows do
      local name, category = sheet.cell(row, name_column), sheet.cell(row, category_column)
      name = name:gsub("%->.*", "") -- of a synthetic op
      luaunit.assertEquals(out[name] or category, category)
      out[name] = category
    end
    return out
  end
  local expected = { ["my::pool_backward"] = "other", ["aten::zero_"] = "elementwise" }
  luaunit.assertEquals(categories(sheets.ops_unique_args, "name", "op category"), expected)
  luaunit.assertEquals(categories(sheets.unified_perf_summary, "name", "op category"), expected)
  luaunit.assertEquals(categories(sheets.kernel_summary, "Parent cpu_op", "Parent op category"), expected)
end

function TestLaunchers.test_without_communication_the_op_stands_in_one_row_with_its_own_category()
  trace:op("aten::max_pool2d_with_indices_backward", 0, 100)
  trace:op("aten::zero_", 10, 20)
  trace:launch(12, 3, { kernel = "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>" })
  trace:launch(40, 5, { kernel = "max_pool_backward_nchw" })
  local unified = trace:sheets("own_category").unified_perf_summary
  luaunit.assertEquals({ #unified.rows, unified.cell(1, "op category") }, { 1, "other" })
end

function TestLaunchers.test_numbers_of_kernels_are_a_column_if_rows_depend_on_them()
  trace:ran("my::op", 0, 5)
  trace:ran("my::op", 20, 4)
  trace:launch(23, 3)
  local ops = trace:sheets("kernel_count", { by_kernel_count = true }).ops_unique_args
  luaunit.assertEquals({ ops.cell(1, "num_kernels"), ops.cell(2, "num_kernels") }, { 2, 1 })
  ops = trace:sheets("kernel_count").ops_unique_args
  luaunit.assertEquals({ #ops.rows, ops.cell(1, "operation_count") }, { 1, 2 })
  luaunit.assertNotTableContains(ops.columns, "num_kernels")
end

function TestLaunchers.test_only_pauses_shorter_than_the_limit_are_micro_idle_time()
  for i, start in ipairs { 100, 115, 124 } do -- pauses of 5 and 4 µs
    trace:ran("my::op", 20 * i, i == 2 and 5 or 10, nil, { at = start })
  end
  local timeline = trace:sheets("micro_idle", { micro_idle = 5 }).gpu_timeline
  local times = {}
  for row = 1, #timeline.rows do times[timeline.cell(row, "type")] = timeline.cell(row, "time ms") end
  luaunit.assertAlmostEquals(times.micro_idle_time, 0.004, 1e-12)
  luaunit.assertAlmostEquals(times.macro_idle_time, 0.005, 1e-12)
end

function TestLaunchers.test_rows_of_the_same_time_stand_in_the_order_of_the_file()
  for i, name in ipairs { "c", "a", "b" } do
    trace:ran(name, 20 * i, 5)
  end
  luaunit.assertEquals(names(trace:sheets("ties").ops_summary), { "c", "a", "b" })
end

local TestPerOp = { setUp = new_trace }

function TestPerOp.test_gemms_count_all_kernels_below_them_and_busy_time_once()
  trace:op("aten::mm", 10, 50, MATRICES)
  trace:op("my::inner", 20, 30)
  trace:launch(22, 10, { at = 1000, stream = 7 })
  trace:launch(24, 10, { at = 1005, stream = 8 })
  local gemm = trace:sheets("busy").GEMM
  luaunit.assertEquals(gemm.cell(1, "Kernel Time (µs)_sum"), 15.0)
  luaunit.assertEquals(gemm.cell(1, "param: M"), 4)
  luaunit.assertEquals(gemm.cell(1, "GFLOPS_first"), 2 * 4 * 2 * 8 / 1e9)
  luaunit.assertEquals(gemm.cell(1, "Data Moved (MB)_first"), 4 * (32 + 16 + 8) / 2 ^ 20)
  luaunit.assertAlmostEquals(gemm.cell(1, "TFLOPS/s_mean"), 128 / 15e-6 / 1e12, 1e-15)
  luaunit.assertEquals(gemm.cell(1, "Compute Spec"), "matrix_fp32")
end

function TestPerOp.test_an_op_below_another_of_its_sheet_is_not_listed_again()
  local args = { dims = { { 2, 8 }, {}, { 8 }, { 8 } }, types = { "float", "ScalarList", "float", "float" },
    concrete = { "", "[8]", "", "" } }
  trace:op("aten::layer_norm", 0, 50, args)
  trace:op("aten::native_layer_norm", 10, 30, args)
  trace:launch(12, 5)
  luaunit.assertEquals(names(trace:sheets("norm").Normalization), { "aten::layer_norm" })
end

function TestPerOp.test_an_upsampling_below_the_overload_that_calls_it_is_not_listed_again()
  local dims, types = { { 1, 2, 4, 5 }, {}, {} }, { "float", "", "ScalarList" }
  trace:op("aten::upsample_nearest2d", 0, 50, { dims = dims, types = types,
    concrete = { "", "", "[2., 2.]" } })
  trace:op("aten::upsample_nearest2d", 10, 30, { dims = { { 1, 2, 4, 5 }, {}, {}, {} },
    types = { "float", "ScalarList", "Scalar", "Scalar" }, concrete = { "", "[8, 10]", "2.", "2." } })
  trace:launch(12, 5)
  local sheets, notes = trace:sheets("upsample")
  local unary = sheets.UnaryElementwise
  luaunit.assertEquals(notes, {})
  luaunit.assertEquals({ #unary.rows, unary.cell(1, "name_count"), unary.cell(1, "Kernel Time (µs)_sum") },
    { 1, 1, 5.0 })
  luaunit.assertEquals(unary.cell(1, "param: dtype_in_out"), "('float', 'float')")
end

function TestPerOp.test_max_of_two_tensors_is_element_by_element()
  trace:op("aten::max", 0, 50, { dims = { { 4, 8 }, { 8 } }, types = { "float", "float" } })
  trace:op("aten::maximum", 10, 30, { dims = { { 4, 8 }, { 8 } }, types = { "float", "float" } })
  trace:launch(12, 5, { kernel = "void at::native::elementwise_kernel<128>()" })
  trace:ran("aten::max", 100, 4, { dims = { { 4, 8 } }, types = { "float" } },
    { kernel = "void at::native::reduce_kernel<512>()" })
  local sheets, notes = trace:sheets("max")
  luaunit.assertEquals(notes, {})
  luaunit.assertEquals({ names(sheets.BinaryElementwise), names(sheets.Reduce_fwd) },
    { { "aten::max" }, { "aten::max" } })
  luaunit.assertEquals(sheets.BinaryElementwise.cell(1, "GFLOPS_first"), 32 / 1e9)
  local unified = sheets.unified_perf_summary
  luaunit.assertEquals({ unified.cell(1, "op category"), unified.cell(2, "op category") },
    { "elementwise", "reduce" })
  luaunit.assertEquals(sheets.ops_summary.cell(2, "Categories"), "['reduce']")
end

-- Time stamps are rounded to doubles, and so is the mean of equal values.
function TestPerOp.test_equal_times_have_no_deviation()
  for i, start in ipairs { 300000.303, 524288.109, 700000.777, 999999.991, 5300000.1, 9900000.3 } do
    trace:op("aten::mm", 400000 * i, 300000.1, MATRICES)
    trace:launch(400000 * i + 1, 7.103, { at = start })
  end
  local sheets = trace:sheets("equal_times")
  luaunit.assertEquals(sheets.unified_perf_summary.cell(1, "std_duration_us"), 0.0)
  luaunit.assertEquals(sheets.GEMM.cell(1, "Kernel Time (µs)_std"), 0.0)
  luaunit.assertEquals(sheets.GEMM.cell(1, "TFLOPS/s_std"), 0.0)
  luaunit.assertEquals(sheets.ops_unique_args.cell(1, "total_direct_kernel_time_std"), 0.0)
  luaunit.assertStrContains(sheets.ops_unique_args.cell(1, "kernel_details_summary"),
    "'std_dev_duration_us': 0.0")
  trace:ran("aten::mm", 200, 7.104, MATRICES, { at = 1100000.1 }) -- a tick more
  luaunit.assertTrue(trace:sheets("unequal_times").GEMM.cell(1, "Kernel Time (µs)_std") > 1e-4)
end

function TestPerOp.test_nested_ops_of_a_kind_are_listed_and_reported()
  local args = { dims = { { 8 }, { 8 } }, types = { "float", "float" } }
  trace:op("aten::div", 0, 50, args)
  trace:op("aten::div", 10, 30, args)
  trace:launch(12, 5)
  local sheets, notes = trace:sheets("div")
  luaunit.assertEquals(sheets.BinaryElementwise.cell(1, "name_count"), 2)
  luaunit.assertEquals(sheets.BinaryElementwise.cell(1, "Kernel Time (µs)_sum"), 10.0)
  luaunit.assertEquals({ notes[1][1], notes[1][2] }, { "nested ops", 1 })
end

function TestPerOp.test_columns_that_only_other_ops_have_are_nan()
  trace:ran("aten::mm", 0, 5, MATRICES, { kernel = "Cijk_Alik_Bljk_x" })
  trace:ran("aten::mm", 20, 4, MATRICES)
  local gemm = trace:sheets("nan").GEMM
  luaunit.assertEquals(gemm.cell(1, "param: transpose"), "(True, False)")
  luaunit.assertEquals(gemm.cell(2, "param: transpose"), "nan")
end

local QUERY = { 2, 3, 5, 7 } -- B, H, N, d
local ATTENTION = { dims = { QUERY, QUERY, QUERY, {}, {} },
  types = { "c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar" },
  concrete = { "", "", "", "0.", "True" } }

-- A forward op, and its backward on another thread.
local function add_attention()
  ATTENTION.sequence = 11
  trace:op("aten::scaled_dot_product_attention", 0, 60, { sequence = 11 })
  trace:op("aten::_scaled_dot_product_flash_attention", 10, 30, ATTENTION)
  trace:launch(12, 5)
  trace:op("autograd::engine::evaluate_function: FlashBackward0", 200, 50, { sequence = 11, tid = 2 })
  trace:op("FlashBackward0", 205, 40, { tid = 2, sequence = 11 })
  trace:op("my::backward", 210, 20, { tid = 2 })
  trace:launch(212, 9, { tid = 2 })
end

function TestPerOp.test_a_backward_is_the_row_of_its_forward_op()
  add_attention()
  local sheets = trace:sheets("backward")
  luaunit.assertEquals(names(sheets.SDPA_bwd), { "aten::_scaled_dot_product_flash_attention" })
  luaunit.assertEquals(sheets.SDPA_bwd.cell(1, "Kernel Time (µs)_sum"), 9.0)
  local depth = 2 * 7 + 2 * 7 + 7
  luaunit.assertEquals(sheets.SDPA_bwd.cell(1, "GFLOPS_first"), 2 * 2 * 3 * 5 * 5 * depth / 2 / 1e9)
  luaunit.assertEquals(sheets.SDPA_fwd.cell(1, "GFLOPS_first"), 2 * 2 * 3 * 5 * 5 * 14 / 2 / 1e9)
end

local TestUnified = { setUp = new_trace }

function TestUnified.test_a_backward_op_has_the_sums_of_its_forward()
  add_attention()
  local unified = trace:sheets("unified_backward").unified_perf_summary
  luaunit.assertEquals(names(unified), { "FlashBackward0", "aten::_scaled_dot_product_flash_attention" })
  luaunit.assertEquals(unified.cell(1, "has_perf_model"), "True")
  luaunit.assertStrContains(unified.cell(1, "perf_params"), "'causal': True")
end

function TestUnified.test_events_without_an_op_are_a_row_of_their_own()
  trace:op("outer", 0, 100)
  trace:op("aten::mm", 10, 20, MATRICES)
  trace:launch(12, 5)
  trace:launch(50, 7, { kernel = "left_over" })
  local unified = trace:sheets("synthetic").unified_perf_summary
  luaunit.assertEquals(names(unified), { "outer->left_over (Synthetic Op)", "aten::mm" })
  luaunit.assertEquals(unified.cell(1, "ex_UID"), #trace.events)
  luaunit.assertEquals(unified.cell(1, "total_duration_us"), 100.0)
  luaunit.assertEquals(unified.cell(2, "Cumulative Percentage (%)"), 100.0)
end

-- The second launch runs first, on another stream.
function TestUnified.test_kernels_stand_in_order_of_launch_and_time_is_the_union()
  trace:op("my::op", 0, 50)
  trace:launch(1, 10, { at = 105, stream = 7, kernel = "launched_first" })
  trace:launch(3, 10, { at = 100, stream = 8, kernel = "void at::native::reduce_kernel<1>" })
  local rank = trace:rank("order")
  local selection = rank:select("unified")
  luaunit.assertEquals(selection:kernels(1), { "launched_first", "void at::native::reduce_kernel<1>" })
  luaunit.assertEquals(rank:select("launchers"):kernels(1)[2], "launched_first")
  local unified = trace:sheets("order").unified_perf_summary
  luaunit.assertEquals(unified.cell(1, "Kernel Time (µs)_sum"), 15.0)
  luaunit.assertEquals(unified.cell(1, "op category"), "reduce")
end

function TestUnified.test_ops_with_other_kernels_are_other_combos_of_one_row()
  for i, kernel in ipairs { "one", "other", "one" } do
    trace:ran("my::op", 20 * i, i, nil, { kernel = kernel })
  end
  local selection, combos = trace:rank("combos"):select("unified")
  luaunit.assertEquals(combos.count, { 2, 1 })
  luaunit.assertEquals(selection:kernels(2), { "other" })
  local unified = trace:sheets("combos").unified_perf_summary
  luaunit.assertEquals(unified.cell(1, "operation_count"), 3)
  luaunit.assertEquals(unified.cell(1, "Kernel Time (µs)_std"), 1.0)
end

-- Two backwards of one forward op: neither has its sums.
function TestUnified.test_one_of_several_backwards_has_no_sums()
  add_attention()
  trace:op("autograd::engine::evaluate_function: OtherBackward0", 300, 50, { sequence = 11, tid = 2 })
  trace:op("OtherBackward0", 305, 40, { tid = 2, sequence = 11 })
  trace:launch(310, 20, { tid = 2 })
  local unified = trace:sheets("two_backwards").unified_perf_summary
  for row = 1, #unified.rows do
    local is_forward = unified.cell(row, "name") == "aten::_scaled_dot_product_flash_attention"
    luaunit.assertEquals(unified.cell(row, "has_perf_model"), is_forward and "True" or "False")
  end
  luaunit.assertEquals(#unified.rows, 3)
end

-- Every linked GPU event except communication is in exactly one row.
function TestUnified.test_every_gpu_event_counts_once()
  add_attention()
  trace:op("deep", 300, 100)
  for i = 1, 8 do trace:op("my::" .. i, 300 + i, 100 - 4 * i) end
  for i = 1, 40 do trace:launch(310 + i, i) end
  trace:launch(380, 100, { kernel = "ncclSomething" })
  local rank = trace:rank("once")
  local selection, combos = rank:select("unified")
  local seen = 0
  for combo = 1, #combos.name do seen = seen + combos.count[combo] * #selection:kernels(combo) end
  luaunit.assertEquals(seen, 42)
end

local TestPooled = {}

function TestPooled.test_equal_values_of_several_ranks_have_no_deviation()
  local function part(count, value, rounding)
    return { count = count, sum = count * value, mean = count * value / count, min = value, max = value,
      deviation = 0.0, rounding = rounding }
  end
  local value = 300000.1
  luaunit.assertEquals(pooled.together { part(6, value), part(1, value) }.deviation, 0.0)
  local near = value + 1e-10
  luaunit.assertEquals(pooled.together { part(6, value), part(1, near, 1e-9) }.deviation, 0.0)
  luaunit.assertTrue(pooled.together { part(6, value), part(1, near) }.deviation > 0)
end

return require "suites" { { "TestLaunchers", TestLaunchers }, { "TestPerOp", TestPerOp },
  { "TestUnified", TestUnified }, { "TestPooled", TestPooled } }
