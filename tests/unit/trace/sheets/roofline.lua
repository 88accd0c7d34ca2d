-- The columns of the roofline and the list of GPUs: times by hand from the peaks of their data sheets,
-- unknown GPUs and peaks, and the page.
-- Needs: zlib
local file = require "core.file"
local gpus = require "lists.gpus"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local small_trace = require "unit.trace.reports.small_trace"

local BF16, F32, FP8 = "c10::BFloat16", "float", "c10::Float8_e4m3fn"
local FP4 = "c10::Float4_e2m1fn_x2" -- two numbers
local TIME, BOUND, SHARE = "Roofline Time (µs)", "Roofline Bound", "Roofline Share (%)"

local trace, now

-- A product of m x 4096 and 4096 x 4096 elements, and its kernel of `duration` µs.
local function mm(m, duration, dtype, kernel)
  now = now + 100
  local op = (dtype == FP8 or dtype == FP4) and "aten::_scaled_mm" or "aten::mm"
  trace:ran(op, now, duration, { dims = { { m, 4096 },
    { 4096, 4096 }, {}, {} }, types = { dtype, dtype, F32, F32 }, strides = { { 4096, 1 }, { 4096, 1 } },
    concrete = { "", "", "", "" } }, { kernel = kernel })
end

-- The sheets with the peaks of a GPU; nil: of the trace's own.
local function sheets_of(gpu)
  gpus.select(gpu)
  local done, sheets = pcall(function() return trace:sheets("roofline") end)
  gpus.select(nil)
  if not done then error(sheets, 0) end
  return sheets
end

-- The three cells of each row of a sheet.
local function rooflines(sheet)
  local out = {}
  for row = 1, #sheet.rows do
    out[row] = { sheet.cell(row, TIME), sheet.cell(row, BOUND), sheet.cell(row, SHARE) }
  end
  return out
end

local function check(cells, time_us, bound, duration)
  luaunit.assertAlmostEquals(cells[1], time_us, 1e-9 * time_us)
  luaunit.assertEquals(cells[2], bound)
  luaunit.assertAlmostEquals(cells[3], 100 * time_us / duration, 1e-9)
end

local function has_roofline(sheet)
  for _, title in ipairs(sheet.columns) do
    if title:find("Roofline", 1, true) then return true end
  end
  return false
end

local TestRoofline = { setUp = function() trace, now = small_trace.new(), 0 end }

-- 989.4 TFLOP/s and 3.35 TB/s.
function TestRoofline.test_many_rows_are_bound_by_compute_and_one_by_memory()
  mm(2048, 100, BF16)
  mm(1, 20, BF16)
  local sheets = sheets_of "H100"
  for _, name in ipairs { "GEMM", "unified_perf_summary" } do
    local cells = rooflines(sheets[name])
    check(cells[1], 2 * 2048 * 4096 ^ 2 / 989.4e6, "compute", 100)
    check(cells[2], 2 * (4096 + 4096 ^ 2 + 4096) / 3350e3, "memory", 20)
  end
end

-- Of an op without FLOPs only the bytes count, whatever its type; H200: 4.8 TB/s. One of 16 bits has the peak
-- of fp32.
function TestRoofline.test_vectors()
  trace:ran("aten::fill_", 10, 50, { dims = { { 1024, 1024 }, {} }, types = { "long int", "Scalar" } })
  trace:ran("aten::silu", 200, 10, { dims = { { 4096, 4096 } }, types = { BF16 } })
  local cells = rooflines(sheets_of("H200").unified_perf_summary)
  check(cells[1], 8 * 1024 ^ 2 / 4800e3, "memory", 50)
  check(cells[2], 2 * 2 * 4096 ^ 2 / 4800e3, "memory", 10)
  luaunit.assertEquals({ gpus.bound(gpus.find "H200", 67e6, 1, "vector_bf16") }, { 1.0, "compute" })
end

-- Products of fp32 run on vector units, or in TF32 where the kernel's name has it.
function TestRoofline.test_products_of_fp32()
  mm(2048, 2000, F32, "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n")
  mm(2048, 300, F32, "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n")
  local sheet
  for _, name in ipairs { "GEMM", "unified_perf_summary" } do
    sheet = sheets_of("H100")[name]
    check(rooflines(sheet)[1], 2 * 2048 * 4096 ^ 2 / 66.9e6, "compute", 2000)
    check(rooflines(sheet)[2], 2 * 2048 * 4096 ^ 2 / 494.7e6, "compute", 300)
    luaunit.assertEquals({ sheet.cell(1, "Compute Spec"), sheet.cell(2, "Compute Spec") },
      { "matrix_fp32", "matrix_tf32" })
  end
  sheet = sheets_of("H100").ops_unique_args
  luaunit.assertFalse(has_roofline(sheet))
  trace = small_trace.new()
  mm(2048, 300, F32, "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n")
  sheet = sheets_of("H100").GEMM
  check(rooflines(sheet)[1], 2 * 2048 * 4096 ^ 2 / 494.7e6, "compute", 300)
  luaunit.assertEquals(sheet.cell(1, "Compute Spec"), "matrix_tf32")
end

function TestRoofline.test_cells_are_empty_without_a_peak_of_the_type_or_a_model()
  mm(2048, 100, FP8)
  trace:ran("my::op", 500, 7)
  luaunit.assertEquals(rooflines(sheets_of("A100 SXM 80GB").unified_perf_summary), { {}, {} })
  check(rooflines(sheets_of("H100").unified_perf_summary)[1], 2 * 2048 * 4096 ^ 2 / 1978.9e6, "compute", 100)
end

function TestRoofline.test_products_of_four_bits()
  mm(2048, 100, FP4)
  for gpu, peak in pairs { B200 = 9000, GB200 = 10000, MI350X = 9200, MI355X = 10100 } do
    local sheet = sheets_of(gpu).GEMM
    luaunit.assertEquals(sheet.cell(1, "Compute Spec"), "matrix_fp4")
    check(rooflines(sheet)[1], 2 * 2048 * 8192 * 4096 / (peak * 1e6), "compute", 100)
  end
  luaunit.assertEquals(rooflines(sheets_of("H200").GEMM), { {} })
end

-- A partition of a GPU has the name of the whole one, but fewer multiprocessors.
function TestRoofline.test_a_part_of_a_gpu_has_no_roofline()
  local whole = { device_name = "AMD Instinct MI300X", multiprocessors = 304 }
  local part = { device_name = whole.device_name, multiprocessors = 38 }
  luaunit.assertEquals(gpus.of(whole).name, "MI300X")
  luaunit.assertEquals(gpus.missing { whole }, {})
  luaunit.assertNil(gpus.of(part))
  luaunit.assertEquals(gpus.missing { part, part }, { "AMD Instinct MI300X has 38 multiprocessors, the whole"
    .. " GPU 304, so sheets have no roofline; --gpu NAME takes the peaks of a whole GPU" })
  luaunit.assertEquals(gpus.missing { { device_name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    multiprocessors = 16 } }, { "NVIDIA H100 80GB HBM3 MIG 1g.10gb is a part of a GPU, so sheets have no"
    .. " roofline; --gpu NAME takes the peaks of a whole GPU" })
  mm(2048, 100, BF16)
  trace.device, trace.multiprocessors = whole.device_name, 38
  luaunit.assertFalse(has_roofline(sheets_of(nil).GEMM))
  luaunit.assertTrue(has_roofline(sheets_of("MI300X").GEMM))
end

function TestRoofline.test_a_trace_without_a_known_gpu_has_no_columns()
  mm(2048, 100, BF16)
  luaunit.assertFalse(has_roofline(sheets_of(nil).unified_perf_summary))
  trace.device = "NVIDIA H800"
  luaunit.assertFalse(has_roofline(sheets_of(nil).GEMM))
  trace.device = "NVIDIA H200"
  check(rooflines(sheets_of(nil).GEMM)[1], 2 * 2048 * 4096 ^ 2 / 989.5e6, "compute", 100)
  check(rooflines(sheets_of("MI300X").GEMM)[1], 2 * 2048 * 4096 ^ 2 / 1307.4e6, "compute", 100)
end

function TestRoofline.test_names_of_gpus()
  for name, wanted in pairs { H100 = "H100", ["h100 pcie"] = "H100 PCIe", L4 = "L4", MI325 = "MI325X",
    ["NVIDIA A100-SXM4-80GB"] = "A100 SXM 80GB", ["AMD Instinct MI300X VF"] = "MI300X" } do
    luaunit.assertEquals(assert(gpus.find(name)).name, wanted)
  end
  luaunit.assertNil(gpus.of_device("NVIDIA H100 80GB HBM3 MIG 1g.10gb"))
  luaunit.assertErrorMsgContains("no peaks of H900 are known; nearest are: H100, H200, ", gpus.select, "H900")
  luaunit.assertErrorMsgContains("nearest are: A100 SXM 80GB, A100 SXM 40GB, A100 PCIe 80GB, A100 PCIe 40GB",
    gpus.select, "A100")
  luaunit.assertErrorMsgContains("--gpu: the name of a GPU is required, such as L4, H100", gpus.select, "")
  -- What follows a beginning is another word, or X.
  for name, nearest in pairs { L40 = "L40S", GB = "GB200", B = "B200", ["H100 P"] = "H100 PCIe",
    MI300 = "MI300X, MI300A" } do
    luaunit.assertErrorMsgContains(("no peaks of %s are known; nearest are: %s"):format(name, nearest),
      gpus.select, name)
  end
end

function TestRoofline.test_every_row_has_its_source_and_plausible_peaks()
  local names = {}
  for _, row in ipairs(gpus.list) do
    luaunit.assertTrue(row.source:find("%a+%.com/") ~= nil, row.name)
    luaunit.assertNil(names[row.name], row.name)
    names[row.name] = true
    luaunit.assertTrue(row.memory_gbps >= 300 and row.memory_gbps <= 8000, row.name)
    local matrix = row.matrix
    luaunit.assertTrue(matrix.bf16 >= row.vector.fp32, row.name)
    luaunit.assertTrue((matrix.fp8 or matrix.bf16) >= matrix.bf16, row.name)
    luaunit.assertEquals(matrix.fp16, matrix.bf16, row.name)
    luaunit.assertTrue(not matrix.fp4 or matrix.fp4 >= 1.9 * matrix.fp8, row.name)
  end
end

-- ---- commands ----------------------------------------------------------------------------------

local function report(...) return lib.run("trace", "report", "--csv", ...) end

function TestRoofline.test_the_page_shows_it_and_an_unknown_gpu_is_one_line()
  lib.clean()
  mm(2048, 100, BF16)
  trace.device = "NVIDIA H800"
  local path, out = trace:write "rank0", lib.work .. "/out"
  local errors = lib.reports(0, "no peaks of the GPU NVIDIA H800 are known, so sheets have no roofline; --gpu"
    .. " NAME takes those of another, nearest are: H100, H200, ", report(path, "--out", out, "--page"))
  luaunit.assertEquals(select(2, errors:gsub("\n", "")), 1, errors)
  luaunit.assertStrContains(file.read(out .. "/overview.html"), "No peaks of the GPU NVIDIA H800 are known")
  lib.ends_with(0, report(path, "--out", out, "--page", "--gpu", "H100"))
  local page = file.read(out .. "/overview.html")
  luaunit.assertStrContains(page, "roofline share (%)")
  luaunit.assertStrContains(page, "<td>compute<td")
  luaunit.assertStrContains(page, "Roofline: peaks of H100 (--gpu); the trace is of NVIDIA H800. ")
  trace.device = "NVIDIA H200"
  lib.ends_with(0, report(trace:write "rank0", "--out", out, "--page"))
  luaunit.assertStrContains(file.read(out .. "/overview.html"), "Roofline: peaks of H200. ")
  trace.device = nil
  lib.ends_with(0, report(trace:write "rank0", "--out", out, "--page"))
  luaunit.assertStrContains(file.read(out .. "/overview.html"), "The traces name no GPU, or not all do, so")
  lib.reports(2, "--gpu: no peaks of H900 are known", report(path, "--out", out, "--gpu", "H900"))
end

-- Over ranks, also from digests, which do not depend on the GPU; ranks with several GPUs have none.
function TestRoofline.test_over_ranks()
  lib.clean()
  local run, csvs = lib.work .. "/run", lib.work .. "/report_csvs"
  local function write(rank, device)
    trace, now = small_trace.new(), 0
    mm(2048, 100 + 100 * rank, BF16)
    trace.device, trace.multiprocessors = device, device == "NVIDIA B200" and 148 or nil
    assert(file.make_folder(run))
    assert(os.rename(trace:write "one", ("%s/rank_%d.json"):format(run, rank)))
  end
  local function gemm(...)
    lib.ends_with(0, report("-b", run, "-f", "rank", "-o", lib.work .. "/report.xlsx", ...))
    return lib.csv(csvs .. "/gemm.csv")[1]
  end
  write(0, "NVIDIA H200")
  write(1, "NVIDIA H200")
  local row = gemm()
  local least = 2 * 2048 * 4096 ^ 2 / 989.5e6
  luaunit.assertAlmostEquals(tonumber(row[TIME]), least, 1e-6)
  luaunit.assertEquals(row[BOUND], "compute")
  luaunit.assertAlmostEquals(tonumber(row[SHARE]), 100 * least / 150, 1e-6)
  lib.ends_with(0, lib.run("trace", "digest", run))
  luaunit.assertEquals(gemm("-e", "digest"), row)
  luaunit.assertAlmostEquals(tonumber(gemm("-e", "digest", "--gpu", "B200")[TIME]),
    2 * 2048 * 4096 ^ 2 / 2250e6, 1e-6)
  write(1, "NVIDIA B200")
  luaunit.assertNil(gemm()[TIME])
  local line = "anks have several GPUs (H200, B200), so sheets over ranks have no roofline; --gpu NAME"
    .. " selects one"
  local _, errors = lib.ends_with(0, report("-b", run, "-f", "rank", "-o", lib.work .. "/report.xlsx",
    "--page"))
  luaunit.assertStrContains(errors, "r" .. line)
  local page = file.read(lib.work .. "/report.html")
  luaunit.assertStrContains(page, "R" .. line)
  luaunit.assertNotStrContains(page, "Roofline:")
  gemm("--gpu", "B200", "--page")
  luaunit.assertStrContains(file.read(lib.work .. "/report.html"),
    "Roofline: peaks of B200 (--gpu); the traces are of NVIDIA H200, NVIDIA B200.")
end

return require "suites" { { "TestRoofline", TestRoofline } }
