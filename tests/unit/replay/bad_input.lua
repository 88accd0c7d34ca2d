-- Ops that cannot be replayed are reported, in one clear line or in their row, and the others are replayed.
local file = require "core.file"
local lib = require "unit.replay.lib"
local luaunit = require "luaunit"

local lacks = lib.lacks("openblas", "onednn")
if lacks then require "skip" (lacks) end

local function two_ops(more)
  local one = lib.trace()
  one:run("aten::mm", 300, lib.mm(32, 24, 16, more))
  one:run("aten::mm", 200, lib.mm(16, 16, 16))
  return one
end

local out, sheets = lib.out, lib.sheets

local function replay(front, trace, ...)
  lib.clean()
  local path = lib.save(trace, "t.json")
  return lib.run_with(front, "replay", path, "--out", out, "--csv", "--samples", "1", ...)
end

local function notes()
  local list = {}
  for i, row in ipairs(lib.rows(sheets, "gemm_node_replay")) do list[i] = row.note end
  return list
end

local function one_line(errors)
  luaunit.assertEquals(select(2, errors:gsub("\n", "")), 1, errors)
  luaunit.assertStrContains(errors, "gentables: ")
end

local TestBadInput = { setUp = lib.clean }

function TestBadInput.test_a_trace_without_shapes()
  local one = lib.trace()
  one:run("aten::mm", 300, {})
  local errors = lib.reports(2, "/t.json: no GEMM or convolution with shapes", replay("env", one))
  luaunit.assertStrContains(errors, "1 ops left out: aten::mm")
  luaunit.assertStrContains(errors, "profile with record_shapes")
  luaunit.assertNil((file.list(out)))
end

function TestBadInput.test_a_type_that_no_library_computes()
  lib.ends_with(0, replay("env", two_ops { types = { "c10::Half", "c10::Half" } }))
  luaunit.assertEquals(notes()[1], "not replayed: no library computes a matrix product in float16")
  luaunit.assertEquals(lib.rows(sheets, "gemm_node_replay")[1]["Avg. replay time (us)"], "")
  luaunit.assertTrue(tonumber(lib.rows(sheets, "gemm_node_replay")[2]["Avg. replay time (us)"]) > 0)
end

function TestBadInput.test_a_type_that_is_not_known()
  local types = { "c10::complex<float>", "c10::complex<float>" }
  lib.ends_with(0, replay("env", two_ops { types = types }))
  luaunit.assertEquals(notes()[1], "not replayed: replay does not support complex<float>")
end

function TestBadInput.test_missing_strides()
  lib.ends_with(0, replay("env", two_ops { strides = {} }))
  luaunit.assertStrContains(notes()[1], "strides are not in the trace: taken as contiguous")
end

function TestBadInput.test_without_openblas_onednn_computes()
  one_line(lib.reports(0, "GENTABLES_OPENBLAS",
    replay("env GENTABLES_OPENBLAS=/nowhere/libopenblas.so", two_ops())))
  luaunit.assertEquals(lib.rows(sheets, "gemm_node_replay")[1].library, "onednn")
end

function TestBadInput.test_without_onednn_only_convolutions_have_no_time()
  local one = two_ops()
  one:run("aten::convolution", 70, lib.convolution(2, 4, 9, "float"))
  local said, errors = lib.ends_with(0, replay("env GENTABLES_ONEDNN=/nowhere/libdnnl.so", one))
  one_line(errors)
  luaunit.assertStrContains(said, "2 of 3 ops have a time")
  luaunit.assertStrContains(lib.rows(sheets, "conv_node_replay")[1].note,
    "not replayed: no library computes a convolution in float32; GENTABLES_ONEDNN")
end

function TestBadInput.test_without_any_library_the_ops_are_saved()
  lib.reports(1, "no op has a time; the sheet has the reasons",
    replay("env GENTABLES_OPENBLAS=/nowhere/a GENTABLES_ONEDNN=/nowhere/b", two_ops()))
  luaunit.assertNotNil(file.read(out .. "/node_replay_report_ops/gemm_001.op"))
end

function TestBadInput.test_without_the_program_the_ops_are_saved()
  lib.reports(1, "/nowhere/gentables-replay",
    replay("env", two_ops(), "--program", "/nowhere/gentables-replay"))
  luaunit.assertNotNil(file.read(out .. "/node_replay_report_ops/gemm_002.op"))
end

-- The first op ends the process; the next one gets a new process.
function TestBadInput.test_an_op_that_ends_the_process()
  local program = lib.program("replay", [[
echo "hello protocol=1 threads=1 device=a stand-in"
echo "ready"
read -r line
case $line in
*gemm_001*) kill -SEGV $$ ;;
esac
warm="warm_mean_us=1 warm_median_us=1 warm_low_us=1 warm_high_us=1 warm_samples=1"
cold="cold_mean_us=2 cold_median_us=2 cold_low_us=2 cold_high_us=2 cold_samples=1"
echo "replayed id=x by=b computed=float32 kernel=k $warm $cold note="
]])
  local path = lib.save(two_ops(), "t.json")
  local said = lib.ends_with(0, lib.run("replay", path, "--out", out, "--csv", "--program", program))
  luaunit.assertStrContains(said, "1 of 2 ops have a time")
  luaunit.assertStrContains(notes()[1], "not replayed: the library ended the process")
  luaunit.assertEquals(lib.rows(sheets, "gemm_node_replay")[2]["warm median (us)"], "1")
end

-- Runs a program that greets and answers like this.
local function lying(greeting, answer)
  lib.clean()
  local program = lib.program("replay",
    ("cat <<'END'\n%s\nready\nEND\nread -r line\necho '%s'\nread -r line\n"):format(greeting, answer))
  return lib.run("replay", lib.save(two_ops(), "t.json"), "--out", out, "--csv", "--program", program)
end

local HELLO = "hello protocol=1 threads=1 backend=host device=a stand-in"

function TestBadInput.test_wrong_greetings_are_reported()
  for greeting, problem in pairs {
    ["hello protocol=1 threads=many device=a"] = "unexpected line: hello protocol=1 threads=many device=a",
    ["hello protocol=1 threads=1"] = "unexpected line: hello protocol=1 threads=1",
    ["hello threads=1 device=a"] = "its version differs", ["error now=1"] = "unexpected line: error now=1",
    [HELLO .. "\npresent version=1"] = "unexpected line: present version=1",
    [HELLO .. "\nabsent name=1"] = "unexpected line: absent name=1",
    [HELLO .. "\n" .. ("x"):rep(9000)] = "unexpected line: " .. ("x"):rep(160),
  } do
    lib.ends_with(1, lying(greeting, ""))
    local why = lib.about(sheets, "not here")
    luaunit.assertStrContains(why, problem)
    luaunit.assertTrue(#why < 2000, greeting)
  end
end

function TestBadInput.test_wrong_answers_are_reported_in_their_row()
  local times = "warm_mean_us=1 warm_median_us=1 warm_low_us=1 warm_high_us=1 warm_samples=1 cold_mean_us=2 "
    .. "cold_median_us=2 cold_low_us=2 cold_high_us=2 cold_samples="
  for _, answer in ipairs { "error id=1", "none id=1", "hello", "Text", "replayed by=b " .. times .. "0x1",
    "replayed by=b " .. times:gsub("=2", "=1e999") .. "1", "replayed " .. times .. "1" } do
    lib.ends_with(1, lying(HELLO, answer))
    luaunit.assertStrContains(notes()[1], "not replayed: gentables-replay sent an unexpected line: "
      .. answer:sub(1, 160))
  end
end

-- Runs a program that prints a text and then waits, with this stall timeout. Returns what is on stderr.
local function silent_after(text, patience)
  lib.clean()
  local program = lib.program("replay", ("printf '%%s' '%s'\nwhile read -r line; do :; done\n"):format(text))
  local one = lib.trace()
  one:run("aten::mm", 50, lib.mm(8, 8, 8))
  local _, errors = lib.ends_with(1, lib.run("replay", lib.save(one, "t.json"), "--out", out, "--csv",
    "--program", program, "--patience", patience))
  return errors
end

-- The default is far beyond the deadline of a test.
function TestBadInput.test_a_silent_program_is_ended()
  for _, text in ipairs { "", HELLO .. "\n" } do
    luaunit.assertStrContains(silent_after(text, "0.2"), "replay: no answer within 0.2 s; the ops are saved")
  end
  silent_after(HELLO .. "\nready\nreplayed id=gemm_001 by=b", "2") -- it stops within a line
  luaunit.assertEquals(notes()[1], "not replayed: no answer within 2 s")
end

function TestBadInput.test_a_budget_that_is_used_up()
  lib.ends_with(1, replay("env", two_ops(), "--budget", "0.000001"))
  luaunit.assertStrContains(notes()[2], "the budget of 1e-06 s was used up")
end

-- Two configurations share the time: the second has only the time that the first leaves, so each op has no
-- more than the one before.
function TestBadInput.test_a_budget_is_one_for_the_whole_command()
  local program = lib.program("replay", lib.serving [[
    echo "$line" >>"${0%/*}/asked"
    echo "none id=x reason=not asked for"]])
  local names, left = { "256", "512" }, {}
  for _, threads in ipairs(names) do
    lib.save(two_ops(), ("sweep/%sthread/nccl_28channels/torch_profiler/rank0/t.json"):format(threads))
  end
  local said = lib.ends_with(1, lib.run("replay", lib.work .. "/sweep", "--out", out, "--csv", "--budget",
    "1000", "--program", program))
  luaunit.assertStrContains(said, "0 of 2 ops have a time")
  for us in assert(file.read(lib.work .. "/bin/asked")):gmatch("limit_us=(%S+)") do
    left[#left + 1] = tonumber(us)
  end
  luaunit.assertEquals(#left, 4)
  for i = 2, #left do luaunit.assertTrue(left[i] < left[i - 1]) end
end

-- A batch ends like one configuration: gentables replay and the batch report alike.
function TestBadInput.test_a_batch_without_any_time_is_a_failed_measurement()
  lib.save(two_ops(), "runs/a/t_rank_0.json")
  local said, errors = lib.ends_with(1,
    lib.run_with("env GENTABLES_OPENBLAS=/nowhere/a GENTABLES_ONEDNN=/nowhere/b", "trace", "report",
      "-b", lib.work .. "/runs", "-r", "--csv"))
  luaunit.assertStrContains(said, "0 of 2 ops have a time")
  luaunit.assertStrContains(errors, "/runs/a: no op has a time; the sheet has the reasons")
end

function TestBadInput.test_an_empty_product()
  local one = two_ops()
  one:run("aten::mm", 400, lib.mm(0, 24, 16))
  lib.ends_with(0, replay("env", one))
  luaunit.assertEquals(notes()[1], "not replayed: an empty product cannot be timed")
end

function TestBadInput.test_wrong_use()
  local path = lib.save(two_ops(), "t.json")
  local wrong = {
    { { "replay", path }, "replay needs --out DIR" },
    { { "replay", path, "--out", out, "--budget", "soon" }, '--budget: "soon" is not a number above 0' },
    { { "replay", path, "--out", out, "--samples", "0" }, '--samples: "0" is not a whole number' },
    { { "replay", path, lib.work .. "/x.op", "--out", out }, "saved ops and traces together" },
    { { "trace", "report", path, "--out", out, "--budget", "3" }, "--budget requires -b" },
    { { "trace", "report", "-b", lib.work, "--budget", "3" }, "--budget requires -r" },
  }
  for _, case in ipairs(wrong) do
    one_line(lib.reports(2, case[2], lib.run(table.unpack(case[1]))))
  end
end

function TestBadInput.test_files_that_hold_no_op()
  local good = "gemm id=a dtype=float32 batch=1 m=2 n=2 k=2 trans_a=0 trans_b=0 lda=2 ldb=2 stride_a=0 "
    .. "stride_b=0 addend=none"
  local wrong = {
    { "hello", "it begins with neither gemm nor convolution" },
    { "gemm m=1 n", "n is not a field name=value" },
    { good:gsub("m=2", "m=0"), "the field m is missing or wrong" },
    { good:gsub("lda=2", "lda=1"), "lda is below A's width" },
    { good .. " colour=red", "there is no field colour" },
    { good:gsub("float32", "float31"), "the field dtype is missing or wrong" },
  }
  for i, case in ipairs(wrong) do
    local path = ("%s/%d.op"):format(lib.work, i)
    assert(file.write(path, case[1] .. "\n"))
    local code, said, errors = lib.run("replay", path)
    luaunit.assertTrue(code > 0)
    luaunit.assertStrContains(said .. errors, case[2])
  end
end

-- Terabytes: no memory is allocated for it.
function TestBadInput.test_an_op_that_memory_does_not_hold()
  lib.ends_with(0, replay("env", two_ops { dims = { { 900000, 900000 }, { 900000, 900000 } },
    strides = { { 900000, 1 }, { 900000, 1 } } }))
  luaunit.assertStrMatches(notes()[1], "not replayed: takes [%d.]+ GB of memory, and [%d.]+ GB are available")
end

return require "suites" { { "TestBadInput", TestBadInput } }
