-- The sheet call_stacks: the op, its entry point and the functions of Python around a launch.
local luaunit = require "luaunit"
local rank = require "trace.ops.rank"
local rank_report = require "trace.reports.rank_report"
local small_trace = require "unit.trace.reports.small_trace"

local trace

local function frame(name, start, stop, tid)
  trace:add { ph = "X", cat = "python_function", name = name, pid = 1, tid = tid or 1, ts = start,
    dur = stop - start }
end

-- The rows of call_stacks as texts, and the notes.
local function rows_of(name, options)
  local one = assert(rank.open(trace:write(name), { frames = true }))
  local list, notes = rank_report.sheets(one, options or { stacks = true })
  for _, sheet in ipairs(list) do
    if sheet.name == "call_stacks" then
      local out = {}
      for i, row in ipairs(sheet.rows) do
        out[i] = ("%s|%s|%s|%s|%d|%g|%s"):format(row[1], row[2], row[3] or "", row[4] or "", row[5], row[6],
          row[8] or "")
      end
      return out, notes
    end
  end
end

local TestStacks = { setUp = function() trace = small_trace.new() end }

function TestStacks.test_the_stack_is_that_of_the_launch()
  frame("train.py(7): step", 0, 1000)
  frame("torch/nn/modules/module.py(1): _call_impl", 10, 90)
  frame("nn.Module: Linear_0", 20, 80)
  trace:op("aten::linear", 30, 40)
  trace:ran("aten::mm", 40, 5)
  frame("ended.py(1): before", 100, 110)
  trace:ran("aten::relu", 200, 3)
  trace:ran("aten::sum", 2000, 1)
  luaunit.assertEquals(rows_of "stack", {
    "aten::mm|aten::linear|Linear_0|train.py(7): step|1|5|train.py(7): step > torch/nn/modules/module.py(1): "
      .. "_call_impl > nn.Module: Linear_0", "aten::relu|aten::relu||train.py(7): step|1|3|train.py(7): step",
    "aten::sum|aten::sum|||1|1|" })
end

function TestStacks.test_equal_stacks_are_summed_and_addresses_do_not_differ()
  for i, address in ipairs { "0x7f01", "0x7f02" } do
    frame(("<built-in method mm of type object at %s>"):format(address), 100 * i, 100 * i + 50)
    trace:ran("aten::mm", 100 * i + 10, 4)
  end
  frame("other.py(3): g", 300, 400, 2)
  luaunit.assertEquals(rows_of "sums", { "aten::mm|aten::mm|||2|8|<built-in method mm of type object>" })
end

function TestStacks.test_other_threads_have_their_own_stack()
  frame("main.py(1): f", 0, 1000)
  trace:op("MulBackward0", 100, 50, { tid = 2 })
  trace:launch(110, 6, { tid = 2 })
  local rows, notes = rows_of "threads"
  luaunit.assertEquals(rows, { "MulBackward0|MulBackward0|||1|6|" })
  luaunit.assertEquals(notes[#notes][1], "without call stacks")
end

function TestStacks.test_frames_change_no_other_sheet()
  trace:ran("aten::mm", 10, 5)
  local plain = trace:sheets("plain")
  frame("main.py(1): f", 5, 15) -- overlaps the op
  local framed = rank_report.sheets(assert(rank.open(trace:write("framed"), { frames = true })))
  for _, sheet in ipairs(framed) do luaunit.assertEquals(sheet.rows, plain[sheet.name].rows) end
  luaunit.assertNil(rows_of("framed", {}))
end

return require "suites" { { "TestStacks", TestStacks } }
