-- The sheets steps and phases, and reports of selected steps and annotations: a small trace with known
-- results.
local luaunit = require "luaunit"
local opening = require "trace.analysis.opening"
local small_trace = require "unit.trace.reports.small_trace"

local trace

local function mark(name, start, stop, tid)
  trace:add { ph = "X", cat = "user_annotation", name = name, pid = 1, tid = tid or 1, ts = start,
    dur = stop - start }
end

-- Steps 4, 5 and 6 of 100 µs each. Their kernels of 10, 20 and 30 µs run late: in the next step, and after
-- the last. Step 5 also has 40 µs of communication, 20 of them at the time of its kernel, by another thread.
-- A kernel of 5 µs is outside of all steps.
local function new_trace()
  trace = small_trace.new()
  trace:op("outer", 90, 400)
  for i, step in ipairs { 4, 5, 6 } do
    local start = 100 * i
    mark("ProfilerStep#" .. step, start, start + 100)
    mark("decode", start + 5, start + 50)
    trace:op("aten::mm", start + 10, 20)
    trace:launch(start + 11, 10 * i, { at = 1000 + 100 * i })
  end
  trace:launch(220, 40, { at = 1200, tid = 2, stream = 9, kernel = "ncclDevKernel_AllReduce" })
  trace:launch(450, 5, { at = 1500 })
end

local function selected(name, selection)
  opening.select(selection)
  local done, result = pcall(function() return trace:sheets(name) end)
  opening.select(nil)
  if not done then error(result, 0) end
  return result
end

local function column(sheet, title)
  local out = {}
  for row = 1, #sheet.rows do out[row] = sheet.cell(row, title) or "none" end
  return out
end

-- The value of a row of gpu_timeline, in µs.
local function time(sheets, name)
  for row, cells in ipairs(sheets.gpu_timeline.rows) do
    if cells[1] == name then return sheets.gpu_timeline.cell(row, "time ms") * 1000 end
  end
end

local TestSteps = { setUp = new_trace }

function TestSteps.test_gpu_events_belong_to_the_step_that_launched_them()
  local steps = trace:sheets("whole").steps
  luaunit.assertEquals(column(steps, "step"),
    { "ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6", "outside of steps" })
  luaunit.assertEquals(column(steps, "GPU events"), { 1, 2, 1, 1 })
  luaunit.assertAlmostEquals(steps.cell(1, "busy_time ms"), 0.010, 1e-9)
  luaunit.assertAlmostEquals(steps.cell(2, "busy_time ms"), 0.040, 1e-9)
  luaunit.assertAlmostEquals(steps.cell(2, "exposed_comm_time ms"), 0.020, 1e-9)
  luaunit.assertAlmostEquals(steps.cell(3, "total_time ms"), 0.030, 1e-9)
  luaunit.assertEquals(column(steps, "host time (µs)"), { 100.0, 100.0, 100.0, "none" })
end

function TestSteps.test_phases_are_summed_over_their_steps()
  mark("execute_context_0(0)_generation_3(3)", 440, 460)
  local phases = trace:sheets("phases").phases
  luaunit.assertEquals(column(phases, "phase"), { "decode" })
  luaunit.assertEquals(column(phases, "steps"), { 4 })
  luaunit.assertAlmostEquals(phases.cell(1, "busy_time ms"), 0.085, 1e-9)
end

function TestSteps.test_names_of_phases()
  for name, phase in pairs { ["execute_context_1(888_788544)_generation_0(0)"] = "prefill",
    ["execute_context_0(0)_generation_8(8)"] = "decode", ["execute_context_2(7)_generation_8(8)"] = "mixed",
    ["step[EXTEND bs=3]"] = "prefill", ["step[DECODE bs=3]"] = "decode", prefill_FLASH = "prefill",
    ["## decoder fp8 ##"] = "none", ["ProfilerStep#7"] = "none", extended = "none" } do
    luaunit.assertEquals(opening.phase_of(name) or "none", phase)
  end
end

function TestSteps.test_a_trace_without_annotations_has_neither_sheet()
  trace = small_trace.new()
  trace:ran("aten::mm", 10, 5)
  local sheets = trace:sheets("plain")
  luaunit.assertNil(sheets.steps)
  luaunit.assertNil(sheets.phases)
end

function TestSteps.test_only_the_work_of_a_selected_step_is_left()
  local sheets = selected("one", { steps = { [5] = true } })
  luaunit.assertAlmostEquals(time(sheets, "computation_time"), 20, 1e-9)
  luaunit.assertAlmostEquals(time(sheets, "total_comm_time"), 40, 1e-9)
  luaunit.assertAlmostEquals(time(sheets, "total_time"), 40, 1e-9)
  luaunit.assertEquals(column(sheets.ops_summary, "name"), { "aten::mm" })
  luaunit.assertEquals(column(sheets.steps, "step"), { "ProfilerStep#5" })
  luaunit.assertEquals(#sheets.kernel_summary.rows, 2)
end

function TestSteps.test_the_time_between_selected_steps_is_not_idle()
  local sheets = selected("two", { steps = { [4] = true, [6] = true } })
  luaunit.assertAlmostEquals(time(sheets, "total_time"), 40, 1e-9)
  luaunit.assertAlmostEquals(time(sheets, "idle_time"), 0, 1e-9)
  luaunit.assertAlmostEquals(time(sheets, "unselected_time (between selected steps; not in total_time)"),
    1330 - 1100 - 40, 1e-9)
end

function TestSteps.test_annotations_are_selected_by_name_and_number()
  local sheets = selected("all", { annotations = { "dec*" } })
  luaunit.assertAlmostEquals(time(sheets, "computation_time"), 60, 1e-9)
  sheets = selected("last", { annotations = { "decode" }, steps = { [2] = true } })
  luaunit.assertAlmostEquals(time(sheets, "computation_time"), 30, 1e-9)
  luaunit.assertErrorMsgContains("no step 3; 3 with these names, counted from 0", selected, "few",
    { annotations = { "decode" }, steps = { [3] = true } })
end

function TestSteps.test_a_missing_step_or_annotation_names_those_of_the_trace()
  luaunit.assertErrorMsgContains("missing.json: no step 7; steps: 4, 5, 6; annotations: decode", selected,
    "missing", { steps = { [7] = true } })
  luaunit.assertErrorMsgContains("no annotation decod; steps: 4, 5, 6; annotations: decode", selected,
    "missing", { annotations = { "decod" } })
  trace = small_trace.new()
  trace:ran("aten::mm", 10, 5)
  luaunit.assertErrorMsgContains("it has neither steps nor annotations", selected, "plain",
    { steps = { [7] = true } })
  mark("idle", 500, 600)
  luaunit.assertErrorMsgContains("no op and no GPU event begins in the selected steps", selected, "idle",
    { annotations = { "idle" } })
end

return require "suites" { { "TestSteps", TestSteps } }
