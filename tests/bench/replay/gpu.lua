-- Replays on a GPU, with stand-ins for the driver, cuBLASLt and cuDNN that compute on the CPU: every kind of
-- operands has right results, faster algorithms are reported if their results are right, and a missing or
-- failing library is reported for the ops that need it, and no others.
local file = require "core.file"
local lib = require "unit.replay.lib"
local luaunit = require "luaunit"

local out, sheets = lib.out, lib.sheets

-- A folder with the libraries of these names; the others cannot be loaded.
local function libraries(names)
  local folder = lib.work .. "/libraries"
  assert(file.make_folder(folder))
  for _, name in ipairs(file.list(os.getenv("STAND_INS"))) do
    local is_wanted = false
    for _, wanted in ipairs(names) do
      is_wanted = is_wanted or name:find("lib" .. wanted .. ".so", 1, true)
    end
    local text = is_wanted and assert(file.read(os.getenv("STAND_INS") .. "/" .. name)) or ""
    assert(file.write(folder .. "/" .. name, text))
  end
  return folder
end

local function front(settings, names)
  return ("env STAND_IN='%s' LD_LIBRARY_PATH='%s'"):format(settings,
    libraries(names or { "cuda", "cublasLt", "cudnn" }))
end

-- Replays lines of ops; returns the exit code, stdout and stderr.
local function replay(lines, settings, names, ...)
  lib.clean()
  local path = lib.work .. "/ops.op"
  assert(file.write(path, table.concat(lines, "\n") .. "\n"))
  return lib.run_with(front(settings, names), "replay", path, "--out", out, "--csv", ...)
end

-- The line of an op: these fields, with `more` of them or others in their place.
local function line_of(kind, id, fields, more)
  for name, value in pairs(more or {}) do fields[name] = value end
  local words = { kind .. " id=" .. id }
  for name, value in pairs(fields) do words[#words + 1] = ("%s=%s"):format(name, value) end
  return table.concat(words, " ")
end

local function gemm(id, more)
  return line_of("gemm", id, { dtype = "float32", batch = 1, m = 5, n = 7, k = 9, trans_a = 0, trans_b = 0,
    lda = 9, ldb = 7, stride_a = 0, stride_b = 0, addend = "none" }, more)
end

local function convolution(id, more)
  return line_of("convolution", id, { dtype = "float32", spatial = 2, batch = 2, in_channels = 4,
    out_channels = 6, groups = 1, input = "8,9", filter = "3,2", stride = "1,2", padding = "1,0",
    dilation = "1,1", output_padding = "0,0", transposed = 0, bias = 0, input_channels_last = 0,
    filter_channels_last = 0 }, more)
end

local function fp8(id, more)
  local fields = { m = 16, n = 32, k = 48, trans_b = 1, lda = 48, ldb = 48, dtype = "float8_e4m3fn",
    scaling = "tensor", out_dtype = "bfloat16", fast_accumulation = 1 }
  for name, value in pairs(more or {}) do fields[name] = value end
  return gemm(id, fields)
end

local function gemms() return lib.rows(sheets, "gemm_node_replay") end
local function convolutions() return lib.rows(sheets, "conv_node_replay") end

local TestReplay = {}

-- The replay checks results itself: an op with misread operands has no time.
function TestReplay.test_every_kind_of_product_is_right()
  lib.ends_with(0, replay({
    gemm "plain",
    gemm("turned", { trans_a = 1, trans_b = 1, lda = 6, ldb = 11 }),
    gemm("row", { dtype = "bfloat16", addend = "row" }),
    gemm("matrix", { dtype = "float16", batch = 2, stride_a = 45, stride_b = 63, addend = "matrix",
      alpha = 2, beta = 0.5 }),
    gemm("batch", { dtype = "float64", batch = 3, trans_a = 1, lda = 5, stride_b = 63 }),
    fp8 "scaled",
    fp8("rows", { scaling = "row", out_dtype = "float16", addend = "row" }),
  }, ""))
  for i, row in ipairs(gemms()) do
    luaunit.assertEquals(row.library, "cublaslt", i)
    luaunit.assertEquals(row["replay device"], "stand-in GPU")
  end
  luaunit.assertEquals(gemms()[6]["computed in"], "float8_e4m3fn")
end

-- Beside a result of 8 bits C has 16 bits, and sums beyond the largest number are scaled down. Beside float32
-- a bias is bfloat16.
function TestReplay.test_results_of_8_bits_are_right()
  lib.ends_with(0, replay({
    fp8("plain", { out_dtype = "float8_e4m3fn" }),
    fp8("scaled", { out_dtype = "float8_e4m3fn", scale_out = 1 }),
    fp8("long", { out_dtype = "float8_e4m3fn", m = 32, n = 48, k = 65536, lda = 65536, ldb = 65536 }),
    fp8("row", { out_dtype = "float8_e4m3fn", addend = "row" }),
    fp8("bfloat16_row", { out_dtype = "float8_e4m3fn", addend = "row", addend_dtype = "bfloat16" }),
    fp8("matrix", { out_dtype = "float8_e4m3fn", addend = "matrix", beta = 0.5 }),
    fp8("wide_row", { out_dtype = "float32", addend = "row", addend_dtype = "bfloat16" }),
    fp8("wide_row_of_no_trace", { out_dtype = "float32", addend = "row" }),
  }, ""))
  for i, row in ipairs(gemms()) do luaunit.assertNotEquals(row["warm median (us)"], "", row.note .. i) end
end

-- Combinations that the library does not have, each with its own reason to be refused.
function TestReplay.test_types_that_cublaslt_does_not_combine_are_refused()
  local E5M2 = "float8_e5m2"
  lib.ends_with(1, replay({
    fp8("two_e5m2", { dtype = E5M2 }),
    fp8("e5m2_of_e4m3", { out_dtype = E5M2 }),
    fp8("rows", { scaling = "row", out_dtype = "float8_e4m3fn" }),
    fp8("scaled_bfloat16", { scale_out = 1 }),
    fp8("columns_of_8_bytes", { out_dtype = "float8_e4m3fn", n = 24 }),
    fp8("bias_of_another_type", { addend = "row", addend_dtype = "float16" }),
    fp8("amd", { out_dtype = "float8_e4m3fnuz" }),
  }, ""))
  for i, row in ipairs(gemms()) do
    luaunit.assertEquals(row["warm median (us)"], "", i)
    luaunit.assertStrContains(row.note,
      i == 7 and "cuBLASLt does not have the result's type" or "CUBLAS_STATUS_NOT_SUPPORTED")
  end
end

-- Scales that need memory of their own, and extents that no block divides.
function TestReplay.test_scales_of_blocks_are_right()
  local sizes = { m = 144, n = 272, k = 400, lda = 400, ldb = 400, scaling = "block" }
  local function blocks(id, a, b, more)
    local fields = { block_a = a, block_b = b }
    for _, list in ipairs { sizes, more or {} } do
      for name, value in pairs(list) do fields[name] = value end
    end
    return fp8(id, fields)
  end
  local lines = { blocks("both", "1x128", "1x128"), blocks("weights", "1x128", "128x128"),
    blocks("turned", "128x128", "1x128", { fast_accumulation = 0 }), blocks("small", "1x32", "1x32"),
    blocks("squares", "128x128", "128x128"), blocks("mixed", "1x32", "1x128") }
  lib.ends_with(1, replay(lines, ""))
  for i, row in ipairs(gemms()) do
    luaunit.assertEquals(row["warm median (us)"] ~= "", i <= 3, row.note)
    if i > 3 then luaunit.assertStrContains(row.note, "CUBLAS_STATUS_NOT_SUPPORTED") end
  end
  lib.ends_with(1, replay(lines, "sm=100"))
  for i, row in ipairs(gemms()) do luaunit.assertEquals(row["warm median (us)"] ~= "", i == 4, row.note) end
  -- A library that takes scales of rows or blocks in another order has a wrong result.
  lines[5] = fp8("rows", { scaling = "row", m = 144, n = 272, k = 400, lda = 400, ldb = 400 })
  for _, sm in ipairs { 90, 100 } do
    lib.ends_with(1, replay(lines, "scale_order=1 sm=" .. sm))
    for i, row in ipairs(gemms()) do
      luaunit.assertEquals(row["warm median (us)"], "")
      if sm == 90 and (i <= 3 or i == 5) or sm == 100 and i >= 4 and i <= 5 then
        luaunit.assertStrContains(row.note, "the library's result is wrong", false, tostring(i))
      end
    end
  end
  local many = { m = 16, n = 1310720, k = 16, lda = 16, ldb = 16, limit_us = 1 }
  lib.ends_with(0, replay({ blocks("many", "1x128", "1x128", many) }, ""))
  many.scaling = "row"
  lib.ends_with(0, replay({ fp8("rows", many) }, ""))
end

-- Pairs of 4 bits with a scale for each 16, of sizes that fill no tile of scales; and three products.
function TestReplay.test_products_of_4_bits_are_right()
  local function fp4(id, more)
    local fields = { dtype = "float4_e2m1fn_x2", m = 144, n = 272, k = 416, lda = 416, ldb = 416,
      scaling = "block", block_a = "1x16", block_b = "1x16", fast_accumulation = 0 }
    for name, value in pairs(more or {}) do fields[name] = value end
    return fp8(id, fields)
  end
  local lines = { fp4 "plain", fp4("row", { addend = "row", out_dtype = "float16" }),
    fp4("batch", { batch = 3, stride_a = 144 * 416, stride_b = 272 * 416 }),
    fp4("small_blocks", { block_a = "1x32", block_b = "1x32" }) }
  lib.ends_with(1, replay(lines, "sm=100"))
  for i, row in ipairs(gemms()) do luaunit.assertEquals(row["warm median (us)"] ~= "", i <= 3, row.note) end
  luaunit.assertEquals(gemms()[1]["computed in"], "float4_e2m1fn_x2")
  lib.ends_with(1, replay(lines, "sm=100 scale_order=1"))
  for i = 1, 3 do luaunit.assertStrContains(gemms()[i].note, "the library's result is wrong") end
  lib.ends_with(1, replay(lines, ""))
  luaunit.assertStrContains(gemms()[1].note, "CUBLAS_STATUS_NOT_SUPPORTED")
  for _, more in ipairs { { k = 415 }, { trans_b = 0, ldb = 272 }, { trans_a = 1 } } do
    local _, said, errors = replay({ fp4("wrong", more) }, "sm=100")
    luaunit.assertStrContains(said .. errors .. gemms()[1].note,
      "operands of 4 bits are not in pairs along K")
  end
end

function TestReplay.test_every_kind_of_convolution_is_right()
  lib.ends_with(0, replay({
    convolution "picture",
    convolution("last", { dtype = "bfloat16", groups = 2, bias = 1, dilation = "2,1", input_channels_last = 1,
      filter_channels_last = 1 }),
    convolution("line", { dtype = "float16", spatial = 1, input = 20, filter = 5, stride = 2, padding = 2,
      dilation = 1, output_padding = 0, bias = 1 }),
    convolution("room", { spatial = 3, input = "4,5,6", filter = "2,3,3", stride = "1,1,2",
      padding = "0,1,1", dilation = "1,1,1", output_padding = "0,0,0" }),
    convolution("up", { transposed = 1, groups = 2, stride = "2,2", output_padding = "1,0" }),
    convolution("up_with_bias", { transposed = 1, bias = 1, input_channels_last = 1 }),
  }, ""))
  for i, row in ipairs(convolutions()) do luaunit.assertEquals(row.library, "cudnn", i) end
end

local function backward(id, more)
  local fields = { gradients = "input,filter,bias" }
  for name, value in pairs(more or {}) do fields[name] = value end
  local line = convolution(id, fields)
  return (line:gsub("^convolution", "convolution_backward"):gsub(" bias=%d", ""))
end

function TestReplay.test_every_gradient_is_right()
  lib.ends_with(0, replay({
    backward "all",
    backward("groups", { groups = 2, dilation = "2,1", gradients = "input,filter" }),
    backward("last", { dtype = "bfloat16", input_channels_last = 1, filter_channels_last = 1 }),
    backward("line", { dtype = "float16", spatial = 1, input = 20, filter = 5, stride = 2, padding = 2,
      dilation = 1, output_padding = 0 }),
    backward("room", { spatial = 3, input = "4,5,6", filter = "2,3,3", stride = "1,1,2",
      padding = "0,1,1", dilation = "1,1,1", output_padding = "0,0,0" }),
    backward("up", { transposed = 1, groups = 2, stride = "2,2", output_padding = "1,0" }),
    backward("up_far", { transposed = 1, stride = "2,2", dilation = "3,1", output_padding = "2,0",
      gradients = "input" }), -- beyond a stride
    backward("filter", { gradients = "filter" }), backward("bias", { gradients = "bias" }),
  }, ""))
  for i, row in ipairs(convolutions()) do luaunit.assertEquals(row.library, "cudnn", i) end
  luaunit.assertEquals(convolutions()[1].kernel, "engine_40+engine_40+sum")
  luaunit.assertEquals(convolutions()[9].kernel, "sum")
end

-- The library's choice for both gradients takes 100 µs; with another one for one of them 70 and 130 µs.
function TestReplay.test_a_faster_algorithm_of_one_gradient_is_reported()
  lib.ends_with(0, replay({ backward "one" }, "algorithms_us=50,20,80"))
  local row = convolutions()[1]
  luaunit.assertEquals({ row.algorithms, row["fastest algorithm"] }, { "5", "1" })
  luaunit.assertAlmostEquals(tonumber(row["warm median (us)"]), 100, 6)
  luaunit.assertAlmostEquals(tonumber(row["gain over its choice (pct)"]), 43, 8)
end

function TestReplay.test_a_wrong_gradient_has_no_time()
  lib.ends_with(1, replay({ backward("input", { gradients = "input" }),
    backward("filter", { gradients = "filter" }) }, "wrong=0"))
  for _, row in ipairs(convolutions()) do
    luaunit.assertStrContains(row.note, "not replayed: the library's result is wrong")
  end
  lib.ends_with(1, replay({ backward "bias" }, "wrong_bias=1"))
  luaunit.assertStrContains(convolutions()[1].note, "an element of the bias' gradient is")
end

-- 50 µs, 20 µs and 80 µs: the first is the library's choice, and the row has its time.
function TestReplay.test_a_faster_algorithm_is_reported()
  lib.ends_with(0, replay({ gemm "one", convolution "two" }, "algorithms_us=50,20,80"))
  for _, row in ipairs { gemms()[1], convolutions()[1] } do
    luaunit.assertEquals(row.algorithms, "3")
    luaunit.assertEquals(row["fastest algorithm"], "1")
    luaunit.assertAlmostEquals(tonumber(row["warm median (us)"]), 50, 3)
    luaunit.assertAlmostEquals(tonumber(row["gain over its choice (pct)"]), 150, 20)
    luaunit.assertTrue(tonumber(row["gain, 95% low (pct)"]) > 100)
  end
end

-- The driver loads a kernel when it is first launched; that call is checked, but is no sample.
function TestReplay.test_the_call_that_loads_a_kernel_is_no_sample()
  lib.ends_with(0, replay({ gemm("one", { max_samples = 1 }) }, "load_ms=20"))
  luaunit.assertTrue(tonumber(gemms()[1]["cold median (us)"]) < 1000, gemms()[1]["cold median (us)"])
end

-- If the first calls use up the limit, no time is left to compare algorithms.
function TestReplay.test_algorithms_that_no_time_was_left_for_are_not_compared()
  lib.ends_with(0, replay({ gemm("one", { limit_us = 1 }) }, "algorithms_us=50,20,80"))
  local row = gemms()[1]
  luaunit.assertEquals(row.algorithms, "0")
  luaunit.assertEquals(row["fastest algorithm"], "")
  luaunit.assertEquals(row["gain over its choice (pct)"], "")
  luaunit.assertStrContains(row.note, "0 of 3 algorithms timed: the budget was used up")
end

function TestReplay.test_an_algorithm_that_is_wrong_is_not_the_fastest()
  lib.ends_with(0, replay({ gemm "one", convolution "two" }, "algorithms_us=50,20,40 wrong=1"))
  for _, row in ipairs { gemms()[1], convolutions()[1] } do
    luaunit.assertEquals(row["fastest algorithm"], "2")
    luaunit.assertStrContains(row.note, "algorithm 1: the library's result is wrong")
  end
end

function TestReplay.test_a_result_that_is_wrong_has_no_time()
  lib.ends_with(1, replay({ gemm "one", convolution "two" }, "wrong=0"))
  for _, row in ipairs { gemms()[1], convolutions()[1] } do
    luaunit.assertEquals(row["warm median (us)"], "")
    luaunit.assertStrContains(row.note, "not replayed: the library's result is wrong")
  end
end

-- Bits of cuDNN's numerical notes.
local TENSOR_CORE, DOWN_CONVERT, REDUCED, FFT, WINOGRAD = 1, 2, 4, 8, 32

-- The engine of one convolution, and its note, if engines have these notes.
local function engine_of(dtype, notes, more)
  lib.ends_with(0, replay({ convolution("one", { dtype = dtype }) },
    ("algorithms_us=50,40,30 notes=%s %s"):format(table.concat(notes, ","), more or "")))
  local row = convolutions()[1]
  luaunit.assertEquals(row["computed in"], dtype)
  return row.kernel, row.note, row
end

-- The check's numbers are exact in TF32, so only the engine's own note shows its use.
function TestReplay.test_an_engine_in_less_than_float32_is_not_taken_for_it()
  for _, note in ipairs { TENSOR_CORE, DOWN_CONVERT, REDUCED, TENSOR_CORE + FFT } do
    local kernel, said, row = engine_of("float32", { note, 0, note })
    luaunit.assertEquals(kernel, "engine_41", note)
    luaunit.assertStrContains(said, "2 of 3 engine configurations left out, with a lower precision")
    luaunit.assertAlmostEquals(tonumber(row["warm median (us)"]), 40, 3)
    luaunit.assertEquals(row["fastest algorithm"] or "", "", note) -- 30 µs is not offered
  end
  for _, dtype in ipairs { "float16", "bfloat16" } do
    local kernel, said = engine_of(dtype, { TENSOR_CORE + REDUCED, 0, 0 })
    luaunit.assertEquals(kernel, "engine_40", dtype)
    luaunit.assertNotStrContains(said, "left out")
    luaunit.assertEquals((engine_of(dtype, { TENSOR_CORE + DOWN_CONVERT, TENSOR_CORE })), "engine_41")
  end
end

function TestReplay.test_beyond_the_first_engines_there_may_be_one_in_float32()
  local times, notes = {}, {}
  for i = 1, 20 do times[i], notes[i] = 50, TENSOR_CORE end
  notes[20] = WINOGRAD
  lib.ends_with(0, replay({ convolution "one" }, ("algorithms_us=%s notes=%s"):format(
    table.concat(times, ","), table.concat(notes, ","))))
  luaunit.assertEquals(convolutions()[1].kernel, "engine_59")
  luaunit.assertEquals((engine_of("float32", { TENSOR_CORE, TENSOR_CORE, TENSOR_CORE }, "fallback=1")),
    "engine_70")
  lib.ends_with(1, replay({ convolution "one" }, "notes=1"))
  luaunit.assertStrContains(convolutions()[1].note, "all of its engines have a lower precision")
end

-- Transforms round: such an engine passes if it is near the reference; any other does not.
function TestReplay.test_an_engine_that_transforms_is_near_the_right_result()
  for _, note in ipairs { FFT, WINOGRAD } do
    for _, dtype in ipairs { "float32", "float16" } do
      luaunit.assertEquals((engine_of(dtype, { note }, "near=0")), "engine_40")
    end
    lib.ends_with(1, replay({ convolution "one" }, ("notes=%d wrong=0"):format(note)))
  end
  lib.ends_with(1, replay({ convolution "one" }, "near=0"))
  luaunit.assertStrContains(convolutions()[1].note, "the library's result is wrong")
end

function TestReplay.test_an_algorithm_that_cannot_run_is_left_out()
  lib.ends_with(0, replay({ gemm "one" }, "algorithms_us=50,20,80 broken=0"))
  luaunit.assertEquals(gemms()[1].algorithms, "2")
  luaunit.assertAlmostEquals(tonumber(gemms()[1]["warm median (us)"]), 20, 3)
end

-- The times of a trace and of the replay are compared if both are of the same device.
function TestReplay.test_the_traced_device_is_compared_with()
  lib.clean()
  local trace = lib.trace()
  trace:run("aten::mm", 300, lib.mm(32, 24, 16))
  trace:run("aten::convolution", 70, lib.convolution(2, 4, 9, "float"))
  local path = lib.save(trace, "t.json", { device = "stand-in GPU" })
  lib.ends_with(0, lib.run_with(front "", "replay", path, "--out", out, "--csv"))
  local row = gemms()[1]
  local time, empty = tonumber(row["Avg. replay time (us)"]), tonumber(row["empty kernel (us)"])
  luaunit.assertTrue(empty > 0 and empty < time)
  luaunit.assertAlmostEquals(tonumber(row["Diff profile vs. replay (us)"]), time - 300, 1e-6)
  luaunit.assertAlmostEquals(tonumber(row["Diff without empty kernel (us)"]), time - empty - 300, 1e-6)
  luaunit.assertAlmostEquals(tonumber(row["Diff without empty kernel (pct)"]), (time - empty - 300) / 3, 1e-6)
  luaunit.assertStrContains(lib.about(sheets, "empty kernel"), "timed as the ops")
  luaunit.assertStrContains(lib.about(sheets, "Diff columns"), "traced and replayed on the same device;")
  luaunit.assertStrContains(lib.about(sheets, "cublaslt"), "workspace_mib 64")
end

-- ---- missing and failing libraries ---------------------------------------------------------------------

function TestReplay.test_without_cudnn_only_convolutions_have_no_time()
  local errors = lib.reports(1, "libcudnn.so",
    replay({ gemm "one", convolution "two" }, "", { "cuda", "cublasLt" }))
  luaunit.assertEquals(select(2, errors:gsub("\n", "")), 1, errors)
  luaunit.assertStrContains(convolutions()[1].note, "no library computes a convolution in float32")
  luaunit.assertEquals(gemms()[1].library, "cublaslt")
end

function TestReplay.test_without_cublaslt_only_products_have_no_time()
  lib.reports(1, "libcublasLt.so", replay({ gemm "one", convolution "two" }, "", { "cuda", "cudnn" }))
  luaunit.assertEquals(convolutions()[1].library, "cudnn")
  lib.reports(1, "cuBLASLt does not start", replay({ gemm "one", convolution "two" }, "no_start"))
end

function TestReplay.test_without_a_gpu_the_host_computes()
  lib.reports(1, "no GPU: the driver sees none", replay({ gemm "one" }, "gpus=0", nil, "--device", "cuda"))
  lib.reports(1, "the CUDA driver is for 11.8, older than this program's",
    replay({ gemm "one" }, "driver=11080", nil, "--device", "cuda"))
  lib.reports(1, "no CUDA driver", replay({ gemm "one" }, "", {}, "--device", "cuda"))
  lib.reports(2, "--device: there is no tpu; valid: host, cuda",
    replay({ gemm "one" }, "", nil, "--device", "tpu"))
  local lacks = lib.lacks("openblas")
  luaunit.skipIf(lacks, lacks)
  lib.ends_with(0, replay({ gemm "one" }, "gpus=0"))
  luaunit.assertNotEquals(gemms()[1].library, "cublaslt")
end

function TestReplay.test_ops_that_a_library_rejects_are_reported()
  lib.ends_with(1, replay({ gemm "one", convolution "two" }, "refuses"))
  luaunit.assertStrContains(gemms()[1].note, "cuBLASLt does not compute this (CUBLAS_STATUS_NOT_SUPPORTED)")
  luaunit.assertStrContains(convolutions()[1].note,
    "cuDNN does not compute this (CUDNN_STATUS_NOT_SUPPORTED)")
  lib.ends_with(1, replay({ convolution "two" }, "no_engine"))
  luaunit.assertStrContains(convolutions()[1].note, "it lists no engine")
  lib.ends_with(1, replay({ fp8("one", { trans_b = 0, ldb = 32 }), fp8("two", { scaling = "block" }),
    gemm("three", { addend = "row", beta = 2 }) }, ""))
  luaunit.assertStrContains(gemms()[1].note, "CUBLAS_STATUS_NOT_SUPPORTED")
  luaunit.assertStrContains(gemms()[2].note, "the trace does not show which elements of A or of B share")
  luaunit.assertStrContains(gemms()[3].note, "cuBLASLt adds a row as it is")
end

function TestReplay.test_ops_too_large_for_the_gpus_memory()
  local large = gemm("large", { m = 6000, n = 6000, k = 1, lda = 1, ldb = 6000 })
  lib.ends_with(1, replay({ large, gemm "small" }, "memory_mib=150"))
  luaunit.assertStrContains(gemms()[1].note, "GB of the GPU's memory: out of memory")
  luaunit.assertNotEquals(gemms()[2]["warm median (us)"], "")
end

-- A kernel that breaks the GPU permanently ends its process, but no other op.
function TestReplay.test_an_op_that_breaks_the_gpu()
  local said = lib.ends_with(1, replay({ gemm "one", gemm("two", { m = 13 }), gemm "three" }, "illegal=13"))
  luaunit.assertEquals(gemms()[2]["warm median (us)"], "")
  luaunit.assertNotEquals(gemms()[3]["warm median (us)"], "", said)
end

return require "suites" { { "TestReplay", TestReplay } }
