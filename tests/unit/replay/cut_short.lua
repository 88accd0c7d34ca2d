-- The results that an interrupted replay keeps: after a signal, and at the end of a budget. Stand-ins for
-- gentables-replay interrupt it at a given op.
local file = require "core.file"
local lib = require "unit.replay.lib"
local luaunit = require "luaunit"

local out, sheets = lib.out, lib.sheets

local function three_ops()
  local one = lib.trace()
  for i = 1, 3 do one:run("aten::mm", 400 - 100 * i, lib.mm(32, 24, 16 * i)) end
  return lib.save(one, "t.json")
end

local function ops_file()
  local lines = {}
  for i = 1, 3 do
    lines[i] = ("gemm id=gemm_00%d dtype=float32 batch=1 m=2 n=2 k=2 trans_a=0 trans_b=0 lda=2 ldb=2 "
      .. "stride_a=0 stride_b=0 addend=none\n"):format(i)
  end
  assert(file.write(lib.work .. "/ops.op", table.concat(lines)))
  return lib.work .. "/ops.op"
end

-- A program that records its requests, and answers as `cases`, which see $line; otherwise with as many
-- samples as the request's maximum.
local function program(cases)
  return lib.program("replay", lib.serving([[
    echo "$line" >>"${0%/*}/asked"
    samples=5
    case $line in *max_samples=*) samples=${line##*max_samples=} samples=${samples%% *} ;; esac
    case $line in
]] .. cases .. [[
    esac
    warm="warm_mean_us=1 warm_median_us=1 warm_low_us=1 warm_high_us=1 warm_samples=$samples"
    cold="cold_mean_us=2 cold_median_us=2 cold_low_us=2 cold_high_us=2 cold_samples=$samples"
    echo "replayed id=x by=b computed=float32 kernel=k $warm $cold note="]]))
end

-- Ctrl-C during the second op, which would run for long.
local at_second = "*gemm_002*) kill -INT $PPID; exec sleep 600 ;;\n"
local front = "env --default-signal=INT"

local function rows() return lib.rows(sheets, "gemm_node_replay") end

local TestCutShort = { setUp = lib.clean }

function TestCutShort.test_results_before_a_signal_are_written()
  local said, errors = lib.ends_with(130, lib.run_with(front, "replay", three_ops(), "--out", out,
    "--csv", "--program", program(at_second)))
  luaunit.assertStrContains(errors, "interrupted by SIGINT; 1 of 3 ops have a time")
  luaunit.assertStrContains(said, "1 of 3 ops have a time")
  local times, notes = {}, {}
  for i, row in ipairs(rows()) do times[i], notes[i] = row["warm median (us)"], row.note end
  luaunit.assertEquals(times, { "1", "", "" })
  luaunit.assertEquals({ notes[2], notes[3] }, { "not replayed: interrupted", "not replayed: interrupted" })
  luaunit.assertStrContains(lib.about(sheets, "interrupted"), "by SIGINT")
end

-- Of two configurations the second does not start.
function TestCutShort.test_a_signal_ends_the_other_configurations_too()
  for _, threads in ipairs { "256", "512" } do
    local folder = ("%s/sweep/%sthread/nccl_28channels/torch_profiler/rank0"):format(lib.work, threads)
    assert(file.make_folder(folder))
    os.rename(three_ops(), folder .. "/t.json")
  end
  local said = lib.ends_with(130, lib.run_with(front, "replay", lib.work .. "/sweep", "--out", out, "--csv",
    "--program", program(at_second)))
  luaunit.assertEquals(select(2, said:gsub("ops have a time", "")), 1)
  luaunit.assertEquals(#lib.rows(out .. "/256thread_28ch_node_replay_report_csvs", "gemm_node_replay"), 3)
end

function TestCutShort.test_saved_ops_are_printed_as_they_come()
  local said = lib.ends_with(130, lib.run_with(front, "replay", ops_file(), "--program",
    program("*gemm_002*) cp '" .. lib.work .. "/stdout' '" .. lib.work .. "/seen' ;;\n" ..
    "*gemm_003*) kill -INT $PPID; exec sleep 600 ;;\n")))
  luaunit.assertStrMatches(assert(file.read(lib.work .. "/seen")), "op .*\ngemm_001 +1%.00 +2%.00 [^\n]*\n")
  luaunit.assertStrMatches(said, ".*\ngemm_002 +1%.00 .*\ngemm_003 +not replayed: interrupted\n")
end

-- The requests, in order: the op, and the maximum of samples.
local function requests()
  local list = {}
  for line in assert(file.read(lib.work .. "/bin/asked")):gmatch("[^\n]+") do
    list[#list + 1] = ("%s %s"):format(line:match("id=gemm_00(%d)"), line:match("max_samples=(%d+)") or "all")
  end
  return list
end

function TestCutShort.test_a_budget_gives_each_op_a_little_first()
  lib.ends_with(0, lib.run("replay", three_ops(), "--out", out, "--csv", "--budget", "1000", "--program",
    program("")))
  luaunit.assertEquals(requests(), { "1 1", "2 1", "3 1", "1 all", "2 all", "3 all" })
  for _, row in ipairs(rows()) do luaunit.assertEquals(row["warm samples"], "5") end
end

-- The second request has no answer: the first result stays, and the row has the reason for its few samples.
function TestCutShort.test_a_first_look_counts_where_nothing_follows()
  lib.ends_with(0, lib.run("replay", three_ops(), "--out", out, "--csv", "--budget", "1000", "--program",
    program('*gemm_002*max_samples=1*) ;;\n*gemm_002*) echo "none id=x reason=too warm"; continue ;;\n')))
  luaunit.assertEquals(rows()[2]["warm samples"], "1")
  luaunit.assertStrContains(rows()[2].note, "not measured again: too warm")
  luaunit.assertEquals(rows()[3]["warm samples"], "5")
end

function TestCutShort.test_fewer_samples_than_the_full_measure_are_reported()
  local lacks = lib.lacks("openblas")
  luaunit.skipIf(lacks, lacks)
  local path = ops_file()
  assert(file.write(path, (assert(file.read(path)):gsub(" addend", " max_samples=1%0"))))
  lib.ends_with(0, lib.run("replay", path, "--out", out, "--csv"))
  for _, row in ipairs(rows()) do
    luaunit.assertEquals({ row["warm samples"], row["cold samples"] }, { "1", "1" })
    luaunit.assertStrContains(row.note, "1 sample instead of 5")
  end
end

return require "suites" { { "TestCutShort", TestCutShort } }
