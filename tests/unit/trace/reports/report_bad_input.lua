-- Incomplete traces give a report that lists the missing parts, and no silently wrong number.
local luaunit = require "luaunit"
local rank_report = require "trace.reports.rank_report"
local small_trace = require "unit.trace.reports.small_trace"

local MATRICES = { dims = { { 4, 8 }, { 8, 2 } }, types = { "float", "float" } }

-- The note with this name: count and text; nil: there is none.
local function note(notes, what)
  for _, row in ipairs(notes) do
    if row[1] == what then return row[2], row[4], row[3] end
  end
end

local trace
local TestBadInput = { setUp = function() trace = small_trace.new() end }

function TestBadInput.test_a_whole_trace_has_no_notes()
  trace:ran("aten::mm", 0, 5, MATRICES)
  local sheets, notes = trace:sheets("whole")
  luaunit.assertEquals(notes, {})
  luaunit.assertNil(sheets.incomplete)
  luaunit.assertNil(rank_report.warning("path", notes))
end

function TestBadInput.test_gpu_events_that_overlap_on_a_stream_keep_their_durations_and_are_counted()
  trace:ran("aten::mm", 0, 10, MATRICES, { at = 100 })
  trace:ran("aten::mm", 20, 10, MATRICES, { at = 104 }) -- 6 of it beside the first
  trace:op("aten::mm", 40, 10, MATRICES)
  local inside = trace:launch(41, 2, { at = 105 }) -- within both
  trace:ran("aten::mm", 60, 10, MATRICES, { at = 106, stream = 8 }) -- another stream: no overlap
  local sheets, notes = trace:sheets("overlapping")
  local count, text, first = note(notes, "overlapping GPU")
  luaunit.assertEquals(count, 2)
  luaunit.assertStrContains(text, "begin before the last one of their stream ends")
  luaunit.assertEquals(first, "event " .. inside - 5) -- the second kernel
  luaunit.assertEquals(sheets.GEMM.cell(1, "Kernel Time (µs)_sum"), 10.0 + 10 + 2 + 10)
  luaunit.assertEquals(sheets.kernel_summary.cell(1, "Kernel duration (µs)_sum"), 22.0)
  luaunit.assertEquals(sheets.gpu_timeline.cell(1, "time ms"), 0.016)
  luaunit.assertStrContains(rank_report.warning("a.json", notes), "a.json: incomplete: overlapping GPU 2;")
end

function TestBadInput.test_missing_shapes_leave_ops_out_counted()
  for i = 0, 2 do
    trace:ran("aten::mm", 20 * i, 5)
  end
  trace:ran("aten::mm", 80, 5, { dims = { { 4, 8 }, { 9, 2 } }, types = { "float", "float" } })
  local sheets, notes = trace:sheets("shapes")
  luaunit.assertNil(sheets.GEMM)
  luaunit.assertEquals(sheets.ops_summary.cell(1, "Count"), 4)
  luaunit.assertEquals(#notes, 2)
  luaunit.assertEquals({ notes[1][2], notes[1][4] }, { 3, "aten::mm: shapes are missing" })
  luaunit.assertEquals({ notes[2][2], notes[2][4] }, { 1, "aten::mm: the shapes of A and B do not fit" })
  luaunit.assertEquals(sheets.unified_perf_summary.cell(1, "has_perf_model"), "False")
end

function TestBadInput.test_arguments_of_any_form_do_no_harm()
  local forms = { { dims = { "x", { 8, 2 } } }, { dims = { { 4, 8 }, { 8, { 2 } } } },
    { dims = { { -1, 8 }, { 8, 2 } } }, { dims = { { 4, 8 } } }, { dims = {} }, { dims = { {}, {} } },
    { dims = { { { 4, 8 } }, { 8, 2 } } }, { dims = { { 4.5, 8 }, { 8, 2 } } }, { types = { 1, 2 } } }
  local ops = { "aten::mm", "aten::addmm", "aten::_scaled_dot_product_flash_attention",
    "aten::convolution", "aten::convolution_backward", "aten::copy_", "aten::add", "aten::mean",
    "aten::cumsum", "aten::layer_norm", "aten::native_batch_norm_backward", "aten::upsample_nearest2d",
    "aten::replication_pad2d" }
  local at = 0
  for _, name in ipairs(ops) do
    for _, form in ipairs(forms) do
      form.concrete = { "?", "[x]", "[]", "True", "[0", "-", "1e999" }
      trace:ran(name, at, 5, form)
      at = at + 20
    end
  end
  local sheets = trace:sheets("forms")
  local launched = 0
  for row = 1, #sheets.ops_summary.rows do launched = launched + sheets.ops_summary.cell(row, "Count") end
  luaunit.assertEquals(launched, #ops * #forms)
end

function TestBadInput.test_without_gpu_events_times_are_zero_and_it_is_reported()
  trace:op("aten::mm", 0, 10, MATRICES)
  local sheets, notes = trace:sheets("no_gpu")
  luaunit.assertEquals(note(notes, "no GPU events"), 0)
  for row = 1, 8 do
    luaunit.assertEquals(sheets.gpu_timeline.cell(row, "time ms"), 0.0)
    luaunit.assertEquals(sheets.gpu_timeline.cell(row, "percent"), 0.0)
  end
  luaunit.assertEquals(#sheets.ops_summary.rows, 0)
  luaunit.assertEquals(#sheets.short_kernel_histogram.rows, 0)
end

function TestBadInput.test_without_flows_correlations_link()
  trace:ran("aten::mm", 0, 5, MATRICES, { without_flow = true })
  local sheets, notes = trace:sheets("no_flows")
  luaunit.assertEquals(notes, {})
  luaunit.assertEquals(sheets.GEMM.cell(1, "Kernel Time (µs)_sum"), 5.0)
end

function TestBadInput.test_kernels_without_a_launch_are_reported_and_counted_on_request()
  trace:kernel(100, 10)
  local sheets, notes = trace:sheets("unlinked")
  luaunit.assertEquals(note(notes, "unlinked"), 1)
  luaunit.assertEquals(note(notes, "no linked GPU events"), 0)
  luaunit.assertEquals(sheets.gpu_timeline.cell(1, "time ms"), 0.0)
  luaunit.assertNil(sheets.kernel_summary.cell(1, "Parent cpu_op"))
  sheets = trace:sheets("unlinked", { include_unlinked = true })
  luaunit.assertEquals(sheets.gpu_timeline.cell(1, "time ms"), 0.01)
end

function TestBadInput.test_an_op_with_kernels_of_no_time_has_no_rate()
  trace:ran("aten::mm", 0, 0, MATRICES)
  local gemm = trace:sheets("no_time").GEMM
  luaunit.assertEquals(gemm.cell(1, "Kernel Time (µs)_sum"), 0.0)
  luaunit.assertNil(gemm.cell(1, "TFLOPS/s_mean"))
end

function TestBadInput.test_ops_without_gpu_events_are_reported()
  trace:ran("aten::mm", 0, 6, MATRICES)
  trace:op("aten::mm", 20, 10, MATRICES)
  local sheets, notes = trace:sheets("idle")
  luaunit.assertEquals(note(notes, "without GPU events"), 1)
  luaunit.assertEquals(sheets.GEMM.cell(1, "name_count"), 2)
  luaunit.assertEquals(sheets.GEMM.cell(1, "Kernel Time (µs)_min"), 0.0)
end

-- Threads without a name in the trace are one row, and so are arguments that differ only in omitted parts.
function TestBadInput.test_no_two_rows_of_a_sheet_have_the_same_key()
  for i = 0, 3 do
    local types = i < 2 and { "float", "float" } or { "c10::BFloat16", "float" }
    trace:op("my::op", 20 * i, 10, { dims = MATRICES.dims, types = types, tid = i % 2 + 1 })
    trace:launch(20 * i + 1, 5, { tid = i % 2 + 1 })
  end
  local sheets = trace:sheets("same_keys")
  luaunit.assertEquals(#sheets.ops_unique_args.rows, 2)
  luaunit.assertEquals(#sheets.unified_perf_summary.rows, 2)
  luaunit.assertEquals(#sheets.short_kernels_summary.rows, 1)
  luaunit.assertEquals(sheets.short_kernels_summary.cell(1, "Short Kernel count"), 4)
end

function TestBadInput.test_names_that_need_quotes_are_python_literals()
  trace:op("my::'op'", 0, 10, { dims = { {} }, types = { "it's" }, concrete = { 'say "it\'s"\n' } })
  trace:launch(1, 5, { kernel = "kernel<'a'>" })
  local ops = trace:sheets("quotes").ops_unique_args
  luaunit.assertEquals(ops.cell(1, "Input type"), '("it\'s",)')
  luaunit.assertEquals(ops.cell(1, "Concrete Inputs"), [[('say "it\'s"\n',)]])
  luaunit.assertStrContains(ops.cell(1, "kernel_details_summary"), [["kernel<'a'>"]])
end

return require "suites" { { "TestBadInput", TestBadInput } }
