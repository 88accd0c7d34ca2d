-- protocol.lua: the lines that sweep and bench exchange.
local lu = require "luaunit"
local protocol = require "conversation.protocol"

local TestProtocol = {}

local cell = { world_size = 2, op = "allreduce", dtype = "bfloat16", fusion = "NONE", hidden_size = 64,
  num_tokens = 4, mode = "eager", size = 512 }
local row = "row id=1 strategy=MPI time_us=1.5 low_us=1.2 high_us=1.75 samples=50 min_us=1.1 p95_us=1.9 "
  .. "p99_us=2.5 skew_us=0.05 bound_us=0 bits=00f mode=eager accumulate=fp32 placement=dedicated"

function TestProtocol.test_fields_are_read()
  local kind, fields = protocol.parse("none id=1 strategy=TWOSHOT reason=fewer tokens than ranks = 2")
  lu.assertEquals(kind, "none")
  lu.assertEquals(fields, { id = "1", strategy = "TWOSHOT", reason = "fewer tokens than ranks = 2" })
end

function TestProtocol.test_invalid_lines_are_rejected()
  local lines = { "", " row id=1", "Row id=1", "row  id=1", "row id=1 ", "row id", "row id=1 id=2", "42" }
  for _, line in ipairs(lines) do
    lu.assertNil(protocol.parse(line), line)
  end
end

function TestProtocol.test_a_request_is_complete()
  local limits = { min_samples = 1, max_samples = 2, cell_us = 3, precision = 0.02 }
  local text = protocol.request(7, cell, { "MPI", "ONESHOT" }, limits)
  lu.assertEquals(text, "measure id=7 op=allreduce dtype=bfloat16 fusion=NONE hidden_size=64 num_tokens=4 "
    .. "mode=eager min_samples=1 max_samples=2 budget_us=3 precision=0.02 seed=1284007620 "
    .. "strategies=MPI,ONESHOT\n")
end

function TestProtocol.test_a_request_has_the_remaining_budget()
  local limits = { min_samples = 1, max_samples = 2, cell_us = 3, precision = 0.02, left_us = 70 }
  lu.assertStrContains(protocol.request(7, cell, { "MPI" }, limits), " left_us=70 strategies=MPI\n")
end

-- The bits of results can be compared between launches only if the data are the same.
function TestProtocol.test_the_data_of_a_cell_are_always_the_same()
  local limits = { min_samples = 1, max_samples = 2, cell_us = 3, precision = 0 }
  local function seed(id, strategies)
    return protocol.request(id, cell, strategies, limits):match(" seed=%d+")
  end
  lu.assertEquals(seed(1, { "MPI" }), seed(2, { "ONESHOT", "MPI" }))
end

function TestProtocol.test_a_row_becomes_a_record_and_back()
  local _, fields = protocol.parse(row)
  local record = protocol.row_record(cell, fields)
  lu.assertEquals({ record.time_us, record.samples, record.size, record.fusion }, { 1.5, 50, 512, "NONE" })
  local _, again = protocol.parse(protocol.line("row", protocol.row_fields(record)):sub(1, -2))
  lu.assertEquals(protocol.row_record(cell, again), record)
end

function TestProtocol.test_no_bits_are_bits_that_vary()
  local _, fields = protocol.parse((row:gsub("bits=00f", "bits=0000")))
  local record = protocol.row_record(cell, fields)
  lu.assertEquals(record.bits, "varies")
  lu.assertStrContains(protocol.line("row", protocol.row_fields(record)), " bits=0 ")
end

function TestProtocol.test_numbers_that_are_none_are_refused()
  local wrong = { "time_us=nan", "time_us=0", "time_us=-1", "time_us=inf", "time_us=0x10", "samples=1.5",
    "samples=0", "bits=xyz", "time_us=1.3 ", "low_us=1.6", "high_us=1.4", "p99_us=-1", "mode=graph" }
  for _, change in ipairs(wrong) do
    local name = change:match("^[^=]*")
    local _, fields = protocol.parse((row:gsub(name .. "=%S*", (change:gsub(" ", "x")))))
    local record, problem = protocol.row_record(cell, fields)
    lu.assertNil(record, change)
    lu.assertIsString(problem)
  end
  for _, name in ipairs { "time_us", "samples", "placement" } do
    local _, fields = protocol.parse((row:gsub(" " .. name .. "=%S*", "")))
    lu.assertNil((protocol.row_record(cell, fields)), name)
  end
end

function TestProtocol.test_a_value_cannot_break_the_line()
  lu.assertEquals(protocol.line("none", { { "reason", "a\nb\r\0c" } }), "none reason=a b c\n")
end

return require "suites" { { "TestProtocol", TestProtocol } }
