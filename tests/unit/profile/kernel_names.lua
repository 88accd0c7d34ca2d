-- Names of kernels from public traces and sources (kernel_names.tsv): those that communicate have the
-- library, the operation and the algorithm of the file; library "-" marks those that do not communicate.
local communication = require "lists.communication"
local file = require "core.file"
local luaunit = require "luaunit"

local tests = {}

local function each_name(call)
  local text = assert(file.read(arg[0]:match("^(.*/)") .. "kernel_names.tsv"))
  for line in text:gsub("^.-\n", ""):gmatch("[^\n]+") do
    local kernel, library, operation, algorithm = line:match("^(.-)\t(.-)\t(.-)\t(.-)\t")
    call(kernel, library, operation, algorithm)
  end
end

function tests.test_kernels_that_communicate_have_library_operation_and_algorithm()
  local count = 0
  each_name(function(kernel, library, operation, algorithm)
    if library == "-" then return end
    count = count + 1
    local row = communication.of_kernel(kernel) or {}
    luaunit.assertEquals({ row.pattern and row.library or "", communication.operation_of_kernel(kernel) or "",
      row.algorithm or "" }, { library, operation, algorithm }, kernel)
  end)
  luaunit.assertTrue(count > 50)
end

function tests.test_other_kernels_do_not_communicate()
  local count = 0
  each_name(function(kernel, library)
    if library ~= "-" then return end
    count = count + 1
    luaunit.assertFalse(communication.of_kernel(kernel), kernel)
  end)
  luaunit.assertTrue(count > 30)
end

function tests.test_patterns_are_in_lower_case_and_none_hides_a_later_one()
  local seen = {}
  for _, row in ipairs(communication.kernels) do
    luaunit.assertEquals(row.pattern, row.pattern:lower())
    for _, earlier in ipairs(seen) do
      luaunit.assertNil(row.pattern:find(earlier, 1, true), earlier .. " hides " .. row.pattern)
    end
    seen[#seen + 1] = row.pattern
  end
end

return require "suites" { { "kernel_names", tests } }
