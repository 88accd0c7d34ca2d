-- Kernel summaries are read from every dialect, to the last digit; other texts are rejected, with the line.
local file = require "core.file"
local kernel_summary = require "profile.kernel_summary"
local luaunit = require "luaunit"

local work = assert(os.getenv("WORK"))
assert(file.make_folder(work))
local path = work .. "/summary"
local tests = {}

local gui = "Time,Total Time,Instances,Avg,Med,Min,Max,StdDev,Name\n"
local nsys = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
local row = "60.0,6000,3,2000.5,1999.5,1000,3000,1000.0,a_kernel\n"

local function read(text)
  assert(file.write(path, text))
  return kernel_summary.read(path)
end

-- The first kernel of a valid text.
local function first(text) return assert(read(text)).kernels[1] end

-- Expects that a text is rejected with this in the message.
local function refused(text, message)
  local model, problem = pcall(read, text)
  luaunit.assertFalse(model)
  luaunit.assertStrContains(tostring(problem), message)
  luaunit.assertStrContains(tostring(problem), path)
end

local wanted = { name = "a_kernel", total_ns = 6000, instances = 3, avg_ns = 2000.5, med_ns = 1999.5,
  min_ns = 1000, max_ns = 3000, std_ns = 1000, time_pct = 100 }

function tests.test_a_gui_export_has_units_in_its_cells()
  for _, micro in ipairs { "\u{B5}", "\u{3BC}", "\xB5", "u" } do
    for _, space in ipairs { " ", "", "\u{A0}", "\u{202F}" } do
      local cells = "48.30%,102.664_s,267576,383.682_Ms,1.014_ms,2.592_Ms,239.809_ms,241_ns,x\n"
      local kernel = first(gui .. cells:gsub("_", space):gsub("Ms", micro .. "s"))
      luaunit.assertEquals(kernel, { name = "x", total_ns = 102664000000, instances = 267576,
        avg_ns = 383682, med_ns = 1014000, min_ns = 2592, max_ns = 239809000, std_ns = 241, time_pct = 100 })
    end
  end
end

function tests.test_line_ends_marks_and_quotes_are_read()
  luaunit.assertEquals(first("\xEF\xBB\xBF" .. (nsys .. row):gsub("\n", "\r\n")), wanted)
  luaunit.assertEquals(first(nsys .. row:sub(1, -2)), wanted)
  luaunit.assertEquals(first(nsys .. row:gsub("a_kernel", '"a<1, ""b"">(int, long)"')).name,
    'a<1, "b">(int, long)')
  luaunit.assertEquals(first((nsys .. row):gsub("([^,\n]+)", '"%1"')), wanted)
  luaunit.assertEquals(first(nsys .. row:gsub("6000", '"6,000"'):gsub("2000.5", '"2,000.5"')), wanted)
end

function tests.test_the_header_has_the_unit()
  for unit, decimals in pairs { us = 3, usec = 3, ["\u{3BC}s"] = 3, ms = 6, msec = 6, s = 9, sec = 9 } do
    local function shift(digits)
      return ("%." .. decimals + 1 .. "f"):format(digits / 10 ^ decimals)
    end
    local header, cells = nsys:gsub("%(ns%)", "(" .. unit .. ")"), {}
    for i, digits in ipairs { 6000, 2000.5, 1999.5, 1000, 3000, 1000 } do cells[i] = shift(digits) end
    cells[1] = cells[1] .. ",3"
    luaunit.assertEquals(first(header .. "60.0," .. table.concat(cells, ",") .. ",a_kernel\n"), wanted)
  end
end

function tests.test_older_headers_are_nanoseconds()
  local old = { name = "a_kernel", total_ns = 6000, instances = 3, avg_ns = 2000.5, min_ns = 1000,
    max_ns = 3000, time_pct = 100 }
  for _, title in ipairs { "Total Time (ns)", "Total Time" } do
    luaunit.assertEquals(first("Time(%)," .. title .. ",Instances,Average,Minimum,Maximum,Name\n"
      .. "60.0,6000,3,2000.5,1000,3000,a_kernel\n"), old)
  end
end

function tests.test_columns_come_in_any_order()
  luaunit.assertEquals(first(
    "Name,StdDev (ns),Max (ns),Min (ns),Med (ns),Avg (ns),Instances,Total Time (ns)\n"
    .. "a_kernel,1000.0,3000,1000,1999.5,2000.5,3,6000\n"), wanted)
end

function tests.test_other_reports_and_notices_are_left_out()
  local api = "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    .. "90.0,9000,1,9000.0,9000.0,9000,9000,0.0,cudaLaunchKernel\n"
  local memory = nsys:gsub("Instances", "Count"):gsub("Name", "Operation")
    .. "100.0,5,1,5.0,5.0,5,5,0.0,[CUDA memcpy HtoD]\n"
  local ranges = nsys:gsub("Name", "Style,Range") .. "100.0,5,1,5.0,5.0,5,5,0.0,PushPop,step\n"
  local preamble = 'Generating SQLite file "x".sqlite from x.nsys-rep\n'
    .. "Processing [x.sqlite] with [reports/cuda_gpu_kern_sum.py]...\n\n ** CUDA GPU Kernel Summary:\n\n"
  for _, text in ipairs { preamble .. nsys .. row, api .. "\n" .. nsys .. row .. "\n" .. memory,
    api .. nsys .. row .. api .. memory, ranges .. nsys .. row .. ranges,
    nsys .. row .. "\nProcessing [x.sqlite] with [a, b]\n" .. api, nsys .. "\n" .. row .. "\n\n" .. memory,
    nsys .. row .. "SKIPPED: x.sqlite does not contain NV Tools Extension (NVTX) data.\n" } do
    local model = assert(read(text))
    luaunit.assertEquals(model.kernels, { wanted })
    luaunit.assertEquals(model.total_ns, 6000)
  end
end

function tests.test_summaries_by_grid_are_added_up()
  local by_grid = nsys:gsub(",Name", ",GridXYZ,BlockXYZ,Name")
    .. "50.0,300,2,150.0,150.0,100,200,70.7,1 1 1,32 1 1,k\n"
    .. "50.0,900,2,450.0,450.0,400,500,70.7,2 1 1,32 1 1,k\n"
  -- 100, 200, 400, 500: the squares around 300 add up to 100000; 70.7 stands for 70.71.
  local kernel = first(by_grid)
  luaunit.assertEquals({ kernel.total_ns, kernel.instances, kernel.avg_ns, kernel.min_ns, kernel.max_ns },
    { 1200, 4, 300, 100, 500 })
  luaunit.assertAlmostEquals(kernel.std_ns, math.sqrt(100000 / 3), 0.02)
  luaunit.assertNil(kernel.med_ns)
  luaunit.assertEquals(assert(read(by_grid .. "\n" .. nsys .. row)).kernels, { wanted })
end

function tests.test_broken_rows_are_refused_with_their_line()
  refused(nsys .. row .. "60.0,6000,3\n", ":3: 3 fields, but 9 in the header")
  refused(nsys .. row .. row:gsub("a_kernel", '"a_'), ":3: a quote is opened and not closed")
  refused(nsys .. row .. row:gsub("a_kernel", '"a_kernel"b'), ":3: text after a closing quote")
  for _, broken in ipairs { "-6000", "nan", "", "1,2", "0x10", "6.0.0", "1,0000" } do
    refused(nsys .. row:gsub("6000", '"' .. broken .. '"'), ":2: \"" .. broken)
  end
  refused(nsys .. row:gsub("6000", "6000 h"), ":2: \"6000 h\" has an unknown unit; valid: ns, us, ms, s")
  refused(gui .. row, ":2: \"6000\" and its column have no unit")
  refused(nsys:gsub("Med %(ns%)", "Med (h)") .. row, ":1: column \"Med (h)\" has an unknown unit")
  refused(nsys .. row:gsub(",3,", ",0,"), ":2: \"0\" is not a number of calls")
  refused(nsys .. row:gsub("a_kernel", ""), ":2: \"\" is not the name of a kernel")
  refused(nsys .. row:gsub("6000", "99999999999999999999"), "is not a time")
  refused(nsys:gsub("%(ns%)", "(s)") .. row:gsub("6000", "99999999999"), "is longer than any time")
end

function tests.test_other_texts_are_rejected()
  for _, text in ipairs { "", "\n\n", "a,b\n1,2\n", "\0\1\2", nsys:gsub("Instances", "Num Calls") .. row,
    nsys:gsub("Name", "Source,Name") .. row } do
    refused(text, "has no CUDA GPU kernel summary")
  end
  refused(nsys, ":1: a kernel summary without a kernel")
  refused(nsys .. row .. "\n" .. nsys .. row, ":4: a second kernel summary, after that of line 1")
  refused("\xFF\xFET\0", "is UTF-16")
  refused(nsys .. row:gsub("6000", "0"), "all times of its kernels are 0")
  local model, problem = pcall(kernel_summary.read, work)
  luaunit.assertFalse(model)
  luaunit.assertStrContains(tostring(problem), "is not a file")
end

return require "suites" { { "overhead_summaries", tests } }
