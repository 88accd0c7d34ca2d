-- Kernels of replayed CUDA graphs with the ops of captured traces: small traces by hand, and a recorded one.
-- Needs: zlib
local file = require "core.file"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local opening = require "trace.analysis.opening"
local rank = require "trace.ops.rank"
local rank_report = require "trace.reports.rank_report"
local sequences = require "base.sequences"
local small_trace = require "unit.trace.reports.small_trace"

local BF16 = "c10::BFloat16"
local WITHOUT, SEVERAL = "graph kernels without an op", "graph kernels with several captured graphs"
local NONE = "no launch of a graph"

local captures = lib.work .. "/captures"

-- A call of the runtime without a GPU event; kernel: the name of the one that it launches, in its args.
local function call(trace, name, start, kernel)
  trace:add { ph = "X", cat = "cuda_runtime", name = name, pid = 1, tid = 1, ts = start, dur = 1,
    args = { kernel = kernel } }
end

-- Of 64 rows, or m.
local function product(trace, start, m)
  trace:op("aten::linear", start, 20)
  trace:op("aten::mm", start + 1, 10, { dims = { { m or 64, 32 }, { 32, 16 } }, types = { BF16, BF16 },
    strides = { { 32, 1 }, { 16, 1 } }, concrete = { "", "" } })
end

-- The capture of a product, a copy and an activation; with_names: as of AMD's GPUs. options: m (rows of the
-- product), op (the activation), waits (of a stream for another, before the activation).
local function captured(with_names, number, options)
  options = options or {}
  local trace = small_trace.new()
  call(trace, "cudaLaunchKernel", 5) -- before the capture
  call(trace, "cudaStreamBeginCapture", 10)
  product(trace, 20, options.m)
  call(trace, "cuLaunchKernelEx", 25, with_names and "gemm_kernel" or nil)
  call(trace, "cudaMemcpyAsync", 50)
  if options.waits then call(trace, "cudaStreamWaitEvent", 55) end
  trace:op(options.op or "aten::silu", 60, 10, { dims = { { 64, 16 } }, types = { BF16 } })
  call(trace, "cudaLaunchKernel", 65, with_names and "silu_kernel" or nil)
  call(trace, "cudaStreamEndCapture", 80)
  call(trace, "cudaLaunchKernel", 90)
  local path = trace:write("captured" .. (number or ""))
  assert(file.make_folder(captures))
  assert(os.rename(path, ("%s/%d.json"):format(captures, number or 1)))
end

-- A launch of a graph with these GPU events, { kernel, duration, category, stream }.
local function replay(trace, start, list)
  for i, one in ipairs(list) do
    if i == 1 then
      trace:launch(start, one[2], { kernel = one[1], runtime = "cudaGraphLaunch" })
    else
      trace:kernel(trace.gpu_at + 1, one[2],
        { kernel = one[1], cat = one[3], stream = one[4], correlation = trace.correlation })
      trace.gpu_at = trace.gpu_at + 1 + one[2]
    end
  end
end

local STEP = { { "gemm_kernel", 10 }, { "Memcpy DtoD", 3, "gpu_memcpy" }, { "silu_kernel", 5 } }

-- The sheets by name, the number of GPU events without an op, nil: no note on them, and { [note] = number }.
local function sheets_of(trace, options)
  opening.capture(captures, options and options.stacks)
  local done, sheets, notes = pcall(function() return trace:sheets("replay", options) end)
  opening.capture(nil)
  if not done then error(sheets, 0) end
  local counts = {}
  for _, note in ipairs(notes) do counts[note[1]] = note[2] end
  return sheets, counts[WITHOUT], counts
end

-- { [name of an op] = its kernel time in µs } of the sheet ops_summary.
local function times(sheets)
  local out, sheet = {}, sheets.ops_summary
  for row = 1, #sheet.rows do
    out[sheet.cell(row, "name")] = math.floor(sheet.cell(row, "total_direct_kernel_time_ms") * 1000 + 0.5)
  end
  return out
end

local TestCaptures = { setUp = lib.clean }

function TestCaptures.test_two_replays_have_the_ops_of_their_capture()
  captured()
  local trace = small_trace.new()
  replay(trace, 100, STEP)
  replay(trace, 200, STEP)
  local sheets, without = sheets_of(trace)
  luaunit.assertNil(without)
  luaunit.assertEquals(times(sheets), { ["aten::mm"] = 20, ["aten::silu"] = 10, cudaMemcpyAsync = 6 })
  local gemm = sheets.GEMM
  luaunit.assertEquals({ #gemm.rows, gemm.cell(1, "name_count"), gemm.cell(1, "param: M") }, { 1, 2, 64 })
  luaunit.assertAlmostEquals(gemm.cell(1, "Kernel Time (µs)_sum"), 20, 1e-9)
  luaunit.assertEquals(sheets.unified_perf_summary.cell(1, "name"), "aten::mm")
end

-- Without names of kernels the order decides alone, so a graph with another number of calls matches nothing.
function TestCaptures.test_a_graph_with_other_calls_matches_only_by_names()
  local trace = small_trace.new()
  replay(trace, 100, { STEP[1], { "split_k", 2 }, STEP[2], STEP[3] })
  captured()
  local sheets, without = sheets_of(trace)
  luaunit.assertEquals(without, 4)
  luaunit.assertEquals(times(sheets), { cudaGraphLaunch = 20 })
  captured(true)
  sheets, without = sheets_of(trace)
  luaunit.assertEquals(without, 1)
  luaunit.assertEquals(times(sheets), { ["aten::mm"] = 10, ["aten::silu"] = 5, cudaMemcpyAsync = 3,
    cudaGraphLaunch = 2 })
end

function TestCaptures.test_kernels_of_another_name_or_order_do_not_match()
  captured(true)
  local trace = small_trace.new()
  replay(trace, 100, { STEP[3], STEP[1] })
  local sheets, without = sheets_of(trace)
  luaunit.assertEquals(without, 1)
  luaunit.assertEquals(times(sheets), { ["aten::mm"] = 10, cudaGraphLaunch = 5 })
end

function TestCaptures.test_the_graph_with_most_matches_counts()
  captured(true)
  local other = small_trace.new()
  call(other, "hipStreamBeginCapture", 10)
  other:op("my::fused", 20, 10)
  for i, kernel in ipairs { "gemm_kernel", "gelu_kernel" } do
    call(other, "hipLaunchKernel", 20 + i, kernel)
  end
  call(other, "hipStreamEndCapture", 80)
  assert(os.rename(other:write "other", captures .. "/0.json"))
  local trace = small_trace.new()
  replay(trace, 100, { { "gemm_kernel", 10 }, { "gelu_kernel", 4 } })
  replay(trace, 200, STEP)
  local sheets, without = sheets_of(trace)
  luaunit.assertNil(without)
  luaunit.assertEquals(times(sheets), { ["my::fused"] = 14, ["aten::mm"] = 10, ["aten::silu"] = 5,
    cudaMemcpyAsync = 3 })
end

-- As of several batch sizes, without names of kernels.
function TestCaptures.test_graphs_that_match_as_well_leave_out_what_differs()
  captured(false, 1)
  captured(false, 2, { m = 512 })
  local trace = small_trace.new()
  replay(trace, 100, STEP)
  local sheets, without, counts = sheets_of(trace)
  luaunit.assertEquals({ without, counts[SEVERAL] }, { nil, 1 })
  luaunit.assertEquals(times(sheets), { ["aten::mm"] = 10, ["aten::silu"] = 5, cudaMemcpyAsync = 3 })
  luaunit.assertNil(sheets.GEMM)
  local args = sheets.ops_unique_args
  for row = 1, #args.rows do
    local dims = args.cell(row, "Input Dims")
    luaunit.assertEquals(dims ~= nil, args.cell(row, "name") == "aten::silu", args.cell(row, "name"))
  end
  captured(false, 2, { op = "aten::gelu" })
  sheets, without, counts = sheets_of(trace)
  luaunit.assertEquals({ without, counts[SEVERAL] }, { 1, 1 })
  luaunit.assertEquals(times(sheets), { ["aten::mm"] = 10, cudaMemcpyAsync = 3, cudaGraphLaunch = 5 })
  luaunit.assertEquals({ #sheets.GEMM.rows, sheets.GEMM.cell(1, "param: M") }, { 1, 64 })
end

-- Two equal graphs are no doubt.
function TestCaptures.test_equal_graphs_are_one()
  captured(false, 1)
  captured(false, 2)
  local trace = small_trace.new()
  replay(trace, 100, STEP)
  local sheets, _, counts = sheets_of(trace)
  luaunit.assertEquals({ counts, sheets.GEMM.cell(1, "param: M") }, { {}, 64 })
end

-- Steps of an eager trace are places of one graph.
function TestCaptures.test_places_that_match_as_well_leave_out_what_differs()
  local eager = small_trace.new()
  for i = 1, 2 do
    product(eager, 40 * i, 64 * i)
    eager:launch(40 * i + 5, 7, { kernel = "gemm_kernel" })
  end
  assert(file.make_folder(captures))
  assert(os.rename(eager:write "eager", captures .. "/eager.json"))
  local trace = small_trace.new()
  replay(trace, 100, { STEP[1] })
  local sheets, _, counts = sheets_of(trace)
  luaunit.assertEquals({ counts[SEVERAL], times(sheets) }, { 1, { ["aten::mm"] = 10 } })
  luaunit.assertNil(sheets.GEMM)
end

-- Their order on the GPU is not that of the capture.
function TestCaptures.test_parallel_branches_without_names_do_not_match()
  local trace, parallel = small_trace.new(), small_trace.new()
  replay(trace, 100, STEP)
  replay(parallel, 100, { STEP[1], STEP[2], { "silu_kernel", 5, nil, 8 } })
  captured()
  luaunit.assertEquals(select(2, sheets_of(parallel)), 3)
  captured(false, 1, { waits = true })
  luaunit.assertEquals(select(2, sheets_of(trace)), 3)
  captured(true, 1, { waits = true })
  luaunit.assertNil(select(2, sheets_of(trace)))
  luaunit.assertNil(select(2, sheets_of(parallel)))
end

function TestCaptures.test_a_deep_capture()
  local DEPTH = 60000
  local deep = small_trace.new()
  call(deep, "cudaStreamBeginCapture", 1)
  for i = 1, DEPTH do deep:op("my::op", 10 + i, 4 * DEPTH - 2 * i) end
  call(deep, "cudaLaunchKernel", 11 + DEPTH)
  call(deep, "cudaStreamEndCapture", 5 * DEPTH)
  assert(file.make_folder(captures))
  assert(os.rename(deep:write "deep", captures .. "/deep.json"))
  local trace = small_trace.new()
  replay(trace, 100, { STEP[1] })
  luaunit.assertEquals(times((sheets_of(trace))), { ["my::op"] = 10 })
end

-- More than 4096 kernels, and one that no graph has.
function TestCaptures.test_long_lists_are_not_aligned()
  captured(true)
  local trace, long = small_trace.new(), { { "other", 1 } }
  for i = 1, 4096 do long[i + 1] = STEP[1] end
  replay(trace, 100, long)
  local _, without, counts = sheets_of(trace)
  luaunit.assertEquals({ without, counts["graph kernels not compared"] }, { 4097, 4097 })
end

-- A trace without a capture: its kernels in order, also if the graph's begin behind others.
function TestCaptures.test_a_trace_of_the_same_step_without_graphs_is_a_capture_too()
  local eager = small_trace.new()
  eager:ran("aten::add", 1, 2, nil, { kernel = "add_kernel" })
  product(eager, 20)
  eager:launch(25, 7, { kernel = "gemm_kernel" })
  eager:ran("aten::silu", 60, 8, nil, { kernel = "silu_kernel" })
  assert(file.make_folder(captures))
  assert(os.rename(eager:write "eager", captures .. "/eager.json"))
  local trace = small_trace.new()
  replay(trace, 100, { STEP[1], STEP[3] })
  luaunit.assertEquals(times((sheets_of(trace))), { ["aten::mm"] = 10, ["aten::silu"] = 5 })
end

function TestCaptures.test_stacks_and_entry_points_are_those_of_the_capture()
  captured()
  local path = captures .. "/1.json"
  local frame = [[{"ph":"X","cat":"python_function","name":"model.py(7): forward","pid":1,"tid":1,"ts":15,
    "dur":40,"args":{}},]]
  assert(file.write(path, (assert(file.read(path)):gsub('"traceEvents": ?%[', "%0" .. frame, 1))))
  local trace = small_trace.new()
  replay(trace, 100, STEP)
  local sheet, found = sheets_of(trace, { stacks = true }).call_stacks, {}
  for row = 1, #sheet.rows do
    found[row] = { sheet.cell(row, "op"), sheet.cell(row, "entry point"), sheet.cell(row, "stack") }
  end
  luaunit.assertEquals(found, { { "aten::mm", "aten::linear", "model.py(7): forward" },
    { "aten::silu", "aten::silu" }, { "cudaMemcpyAsync", "cudaMemcpyAsync", "model.py(7): forward" } })
end

function TestCaptures.test_a_selected_step_keeps_its_copies()
  captured()
  local trace = small_trace.new()
  for i = 1, 2 do
    replay(trace, 100 * i, STEP)
    trace:add { ph = "X", cat = "user_annotation", name = "ProfilerStep#" .. i, pid = 1, tid = 1,
      ts = 100 * i - 5, dur = 50 }
  end
  opening.select { steps = { [2] = true } }
  local done, sheets = pcall(sheets_of, trace)
  opening.select(nil)
  luaunit.assertTrue(done, sheets)
  luaunit.assertEquals(times(sheets)["aten::mm"], 10)
end

-- ---- recorded, and the command -----------------------------------------------------------------

-- One eager step and five replays of its graph, on an H200: a product, a norm and a copy each.
function TestCaptures.test_a_recorded_replay_has_the_ops_of_its_eager_step()
  local path = os.getenv "SOURCE" .. "/tests/recorded/traces/graph_replay.json.gz"
  local function counts(capture)
    opening.capture(capture)
    local one = assert(rank.open(path))
    opening.capture(nil)
    local out, info = {}, one.trace:info()
    for _, sheet in ipairs((rank_report.sheets(one))) do
      if sheet.name == "ops_summary" then
        local count = sequences.indices(sheet.columns).Count
        for _, row in ipairs(sheet.rows) do out[row[1]] = row[count] end
      end
    end
    return out, info.graph_events, info.flaws
  end
  luaunit.assertEquals(counts()["cudaGraphLaunch"], 5)
  local with, events, flaws = counts(path)
  luaunit.assertEquals({ events, flaws }, { 15, {} })
  luaunit.assertEquals({ with["aten::mm"], with["aten::_fused_rms_norm"], with["cudaGraphLaunch"] }, { 6, 6 })
end

function TestCaptures.test_the_option()
  captured()
  local trace = small_trace.new()
  replay(trace, 100, { STEP[1], STEP[2], STEP[3], { "other", 1 } })
  local path, out = trace:write "rank0", lib.work .. "/out"
  local function report(folder, ...)
    return lib.run("trace", "report", path, "--out", out, "--csv", "--capture", folder, ...)
  end
  lib.reports(0, WITHOUT .. " 4", report(captures, "--page"))
  luaunit.assertStrContains(file.read(out .. "/overview.html"),
    ("1 trace, with the captured traces in %s. Each figure"):format(captures))
  luaunit.assertStrContains(file.read(out .. "/rank0_csvs/incomplete.csv"),
    "of 4 GPU events of replayed graphs")
  assert(file.make_folder(lib.work .. "/empty"))
  lib.reports(2, "empty has no trace (.json, .json.gz, .json.zst)", report(lib.work .. "/empty"))
  lib.reports(2, "absent", report(lib.work .. "/absent"))
  assert(file.write(lib.work .. "/empty/meta.json", "{}"))
  local words = "it has no traceEvents; give a folder with traces alone"
  lib.reports(2, words, report(lib.work .. "/empty"))
  lib.reports(2, words, lib.run("trace", "gemm", path, "--out", out, "--capture", lib.work .. "/empty",
    "--digests", lib.work .. "/kept"))
  -- Digests depend on the captured traces.
  lib.ends_with(0, lib.run("trace", "digest", path, "--capture", captures))
  assert(os.remove(path))
  lib.reports(2, "was made with other --steps, --annotation or --capture; give the same ones",
    lib.run("trace", "gemm", path .. ".digest", "--out", out))
end

-- Over ranks: rank 0 has a kernel without an op, rank 1 no launch of a graph.
function TestCaptures.test_other_commands_list_what_is_left_out()
  captured()
  local folder, out = lib.work .. "/ranks", lib.work .. "/out"
  assert(file.make_folder(folder))
  for i = 0, 1 do
    local trace = small_trace.new()
    product(trace, 20)
    trace:launch(25, 7, { kernel = "gemm_kernel" })
    if i == 0 then replay(trace, 100, { { "other", 1 } }) end
    assert(os.rename(trace:write "rank", ("%s/trace_rank_%d.json"):format(folder, i)))
  end
  local function check(extension, ...)
    lib.ends_with(0, lib.run("trace", "report", "-b", folder, "-f", folder, "-e", extension, "--csv", "-o",
      out .. ".xlsx", "--capture", captures, ...))
    luaunit.assertEquals(file.read(out .. "_csvs/incomplete.csv"),
      ("rank,what,count\n0,%s,1\n1,%s,0\n"):format(WITHOUT, NONE))
    local errors = lib.reports(0, WITHOUT .. ": 1 kernel", lib.run("trace", "gemm", folder, "--out", out,
      "--capture", captures, ...))
    luaunit.assertStrContains(errors, NONE .. ": 1 trace")
  end
  check "json"
  for _ = 1, 2 do check("json", "--digests", lib.work .. "/kept") end
  lib.ends_with(0, lib.run("trace", "digest", folder, "--capture", captures))
  check "digest"
end

return require "suites" { { "TestCaptures", TestCaptures } }
