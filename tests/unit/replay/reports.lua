-- gentables replay: the choice of ops, the content of sheets and files, and that only comparable times are
-- compared.
local file = require "core.file"
local lib = require "unit.replay.lib"
local luaunit = require "luaunit"

local lacks, device = lib.lacks("openblas", "onednn")
if lacks then require "skip" (lacks) end

-- GEMMs of 600, 300, 80, 18 and 2 µs: the fourth crosses 99%; and a convolution.
local function trace()
  local one = lib.trace()
  one:run("aten::mm", 300, lib.mm(32, 24, 16))
  one:run("aten::addmm", 80, lib.addmm(20, 30, 40, { 30 }, "c10::BFloat16"))
  one:run("aten::mm", 18, lib.mm(16, 8, 4, { strides = { { 1, 16 }, { 0, 1 } } }))
  one:run("aten::mm", 2, lib.mm(7, 7, 7))
  one:run("aten::bmm", 600, { dims = { { 3, 8, 6 }, { 3, 6, 5 } }, types = { "double", "double" },
    strides = { { 48, 6, 1 }, { 30, 1, 6 } }, concrete = { "", "" } })
  one:run("aten::convolution", 70, lib.convolution(2, 4, 9, "float"))
  return one
end

local function replay(name, header, ...)
  lib.clean()
  local path, out = lib.save(trace(), "t.json", header), lib.work .. "/" .. name
  local said, errors = lib.ends_with(0, lib.run("replay", path, "--out", out, "--samples", "3", ...))
  luaunit.assertEquals(errors, "")
  return out .. "/node_replay_report_csvs", said
end

local TestReports = {}

function TestReports.test_the_ops_that_make_99_percent_are_timed()
  local folder, said = replay("out", { device = "NVIDIA H100" }, "--csv")
  local rows = lib.rows(folder, "gemm_node_replay")
  luaunit.assertEquals(#rows, 4)
  local times = {}
  for i, row in ipairs(rows) do
    times[i] = tonumber(row["Avg. profile time (us)"])
    luaunit.assertEquals(row["gemm no."], tostring(i))
    luaunit.assertEquals(row["warm samples"], "3")
    luaunit.assertEquals(row["cold samples"], "3")
    luaunit.assertTrue(tonumber(row["Avg. replay time (us)"]) > 0)
    luaunit.assertEquals(row["replay device"], device)
  end
  luaunit.assertEquals(times, { 600, 300, 80, 18 })
  luaunit.assertEquals(#lib.rows(folder, "conv_node_replay"), 1)
  luaunit.assertStrContains(said, "5 of 5 ops have a time")
end

-- Forward and backward are of one kind, and a row has all gradients of a call.
function TestReports.test_backward_convolutions_are_timed()
  local one = lib.trace()
  one:run("aten::convolution_backward", 200,
    lib.convolution_backward(2, 4, 9, "float", "[True, True, True]"))
  one:run("aten::convolution", 70, lib.convolution(2, 4, 9, "float"))
  one:run("aten::convolution_backward", 50,
    lib.convolution_backward(2, 4, 9, "float", "[False, True, False]"))
  one:run("aten::convolution_backward", 20, lib.convolution_backward(2, 4, 9, "float", ""))
  lib.clean()
  local said, errors = lib.ends_with(0, lib.run("replay", lib.save(one, "t.json"), "--out", lib.out, "--csv",
    "--samples", "3"))
  luaunit.assertEquals(errors, "")
  luaunit.assertStrContains(said, "3 of 4 ops have a time")
  local rows = lib.rows(lib.sheets, "conv_node_replay")
  luaunit.assertEquals({ rows[1].name, rows[1]["param: gradients"], rows[1].library },
    { "aten::convolution_backward", "input,filter,bias", "onednn" })
  luaunit.assertEquals({ rows[2].name, rows[2]["param: gradients"] }, { "aten::convolution", "" })
  luaunit.assertEquals(rows[3]["param: gradients"], "filter")
  luaunit.assertEquals(rows[4].note,
    "not replayed: the trace does not show which gradients were computed (output_mask)")
  -- 2 × 4 × 81 results of 36 products each, and as many sums of the bias.
  local results, us = 2 * 4 * 81, tonumber(rows[1]["warm median (us)"])
  luaunit.assertAlmostEquals(tonumber(rows[1]["replay TFLOP/s"]),
    (2 * 2 * results * 36 + results) / us / 1e6, 1e-9)
  local said_again = lib.ends_with(0, lib.run("replay", lib.out .. "/node_replay_report_ops/conv_001.op"))
  luaunit.assertStrContains(said_again, "conv_001")
end

-- Of five samples the least and the greatest enclose the median in 93.75 % of all cases: no interval of 95 %.
function TestReports.test_an_interval_takes_six_samples()
  for _, case in ipairs { { "5", false }, { "6", true } } do
    lib.clean()
    local path, out = lib.save(trace(), "t.json"), lib.work .. "/out"
    lib.ends_with(0, lib.run("replay", path, "--out", out, "--csv", "--samples", case[1]))
    for _, row in ipairs(lib.rows(out .. "/node_replay_report_csvs", "gemm_node_replay")) do
      for _, kind in ipairs { "warm", "cold" } do
        local low, high = row[kind .. " median, 95% low (us)"], row[kind .. " median, 95% high (us)"]
        local median = tonumber(row[kind .. " median (us)"])
        luaunit.assertEquals({ low ~= "", high ~= "" }, { case[2], case[2] })
        if case[2] then luaunit.assertTrue(tonumber(low) <= median and median <= tonumber(high)) end
      end
      local says = row.note:find("no 95 % interval from fewer than 6 samples", 1, true) ~= nil
      luaunit.assertEquals(says, not case[2])
    end
  end
end

function TestReports.test_a_row_has_the_computed_type()
  local folder = replay("out", nil, "--csv")
  local rows = lib.rows(folder, "gemm_node_replay")
  luaunit.assertEquals(rows[1]["computed in"], "float64")
  luaunit.assertEquals(rows[1].library, "openblas")
  luaunit.assertStrContains(rows[1].note, "batch")
  luaunit.assertTrue(rows[3]["computed in"] == "bfloat16" and rows[3].library == "onednn"
    or rows[3].note:find("computed in float32", 1, true) ~= nil)
  luaunit.assertStrContains(rows[4].note, "B has strides (0, 1): copied first")
  luaunit.assertEquals(rows[2].library, "onednn") -- in float32 the first of two libraries
  luaunit.assertEquals(lib.rows(folder, "conv_node_replay")[1].library, "onednn")
end

function TestReports.test_nothing_is_compared_between_devices()
  for _, name in ipairs { "NVIDIA H100", "none" } do
    local folder = replay("out", name ~= "none" and { device = name } or nil, "--csv")
    for _, row in ipairs(lib.rows(folder, "gemm_node_replay")) do
      luaunit.assertEquals(row["Diff profile vs. replay (us)"], "")
      luaunit.assertEquals(row["Diff profile vs. replay (pct)"], "")
    end
    luaunit.assertStrContains(lib.about(folder, "Diff columns"), "empty: traced on")
  end
end

function TestReports.test_the_same_device_is_compared()
  local folder = replay("out", { device = device, threads = 1 }, "--csv")
  luaunit.assertStrContains(lib.about(folder, "replayed on"), ", 1 thread")
  for _, row in ipairs(lib.rows(folder, "gemm_node_replay")) do
    local time, profile = tonumber(row["Avg. replay time (us)"]), tonumber(row["Avg. profile time (us)"])
    local difference, percent = time - profile, 100 * (time - profile) / profile
    if row.note:find("computed in float32", 1, true) then -- instead of another type
      luaunit.assertEquals(row["Diff profile vs. replay (us)"], "")
      luaunit.assertEquals(row["Diff profile vs. replay (pct)"], "")
    else
      luaunit.assertAlmostEquals(tonumber(row["Diff profile vs. replay (us)"]), difference, 1e-6)
      luaunit.assertAlmostEquals(tonumber(row["Diff profile vs. replay (pct)"]), percent, 1e-6)
    end
  end
end

-- A call on one core and one on several are not compared.
function TestReports.test_calls_of_other_thread_counts_are_not_compared()
  local function comparison(header, ...)
    local folder = replay("out", header, "--csv", ...)
    local is_empty = lib.rows(folder, "gemm_node_replay")[1]["Diff profile vs. replay (us)"] == ""
    return is_empty, lib.about(folder, "Diff columns")
  end
  local is_empty, why = comparison({ device = device, threads = 1 }, "--threads-per-call", "2")
  luaunit.assertTrue(is_empty)
  luaunit.assertEquals(why, "empty: traced with 1 thread a call, replayed with 2")
  is_empty, why = comparison { device = device }
  luaunit.assertTrue(is_empty)
  luaunit.assertStrContains(why, "empty: the trace lacks the number of threads")
  is_empty, why = comparison({ device = device }, "--threads-per-call", "2")
  luaunit.assertFalse(is_empty)
  luaunit.assertStrContains(why, "with 2 threads a call")
end

function TestReports.test_a_saved_op_is_replayed_alone()
  replay("out", nil, "--csv")
  local op = lib.work .. "/out/node_replay_report_ops/gemm_001.op"
  local said = lib.ends_with(0, lib.run("replay", op))
  luaunit.assertStrContains(said, "gemm_001")
  luaunit.assertEquals((os.execute(("'%s' '%s' >'%s/by_hand'"):format(lib.replay, op, lib.work))), true)
  luaunit.assertStrContains(file.read(lib.work .. "/by_hand"), "openblas")
end

-- With as many threads a call as the replay; with another number, a note reports that.
function TestReports.test_a_saved_op_keeps_its_threads()
  replay("out", nil, "--csv", "--threads-per-call", "1")
  local op, alone = lib.work .. "/out/node_replay_report_ops/gemm_001.op", lib.work .. "/alone"
  luaunit.assertStrContains(file.read(op), " threads=1")
  lib.ends_with(0, lib.run("replay", op, "--out", alone, "--csv"))
  luaunit.assertStrMatches(lib.about(alone .. "/node_replay_report_csvs", "replayed on"), ".*, 1 thread")
  local what = "saved with 1 thread a call, and timed with 2"
  for _, case in ipairs { { "", false }, { "--threads 2", true } } do
    os.execute(("'%s' %s '%s' >'%s/by_hand'"):format(lib.replay, case[1], op, lib.work))
    luaunit.assertEquals(file.read(lib.work .. "/by_hand"):find(what, 1, true) ~= nil, case[2])
  end
  local _, said = lib.run("replay", op, "--threads-per-call", "2")
  luaunit.assertStrContains(said, what)
end

function TestReports.test_a_saved_op_keeps_its_notes()
  replay("out", nil, "--csv")
  local op, what = lib.work .. "/out/node_replay_report_ops/gemm_004.op", "B has strides (0, 1): copied first"
  local _, said = lib.run("replay", op)
  luaunit.assertStrContains(said, what)
  os.execute(("'%s' '%s' >'%s/by_hand'"):format(lib.replay, op, lib.work))
  luaunit.assertStrContains(file.read(lib.work .. "/by_hand"), what)
end

function TestReports.test_products_are_written_for_tunableop()
  replay("out", nil, "--csv")
  local folder = lib.work .. "/out/node_replay_report_ops/"
  luaunit.assertEquals(file.read(folder .. "gemm_001.tunableop.csv"),
    "GemmStridedBatchedTunableOp_double_TN,tn_5_8_6_B_3_ld_6_6_5\n")
  luaunit.assertEquals(file.read(folder .. "gemm_003.tunableop.csv"),
    "GemmAndBiasTunableOp_BFloat16_TN,tn_30_20_40_ld_40_40_30\n")
  luaunit.assertStrContains(file.read(folder .. "tunableop_untuned0.csv"),
    "GemmTunableOp_float_NN,nn_24_32_16_ld_24_16_24\n")
end

function TestReports.test_all_libraries_are_tried_on_request()
  local folder = replay("out", nil, "--csv", "--try-all")
  local rows = lib.rows(folder, "gemm_node_replay")
  luaunit.assertStrContains(rows[2].note, "by a first trial")
  luaunit.assertNotStrContains(rows[1].note, "by a first trial") -- in float64 there is only one
end

-- Ranks are one run: the times of an op are those of all of them.
function TestReports.test_ranks_are_put_together()
  lib.clean()
  local names = {}
  for rank = 0, 1 do
    local one = lib.trace()
    one:run("aten::mm", 100 + 100 * rank, lib.mm(32, 24, 16))
    names[rank + 1] = lib.save(one, ("run/rank%d/t.json"):format(rank), { rank = rank, world_size = 2 })
  end
  local said = lib.ends_with(0, lib.run("replay", names[1], names[2], "--out", lib.work .. "/out", "--csv",
    "--samples", "1"))
  luaunit.assertStrContains(said, "run/rank0/t.json and 1 more: 1 of 1 ops have a time")
  local rows = lib.rows(lib.work .. "/out/node_replay_report_csvs", "gemm_node_replay")
  luaunit.assertEquals(#rows, 1)
  luaunit.assertEquals(rows[1]["profile count"], "2")
  luaunit.assertEquals(tonumber(rows[1]["Avg. profile time (us)"]), 150)
end

function TestReports.test_the_batch_report_replays_too()
  lib.clean()
  lib.save(trace(), "runs/a/t_rank_0.json")
  local said, errors = lib.ends_with(0, lib.run("trace", "report", "-b", lib.work .. "/runs", "-r", "--csv"))
  luaunit.assertEquals(errors, "")
  luaunit.assertStrContains(said, "5 of 5 ops have a time")
  local base = lib.work .. "/runs/a/a_rank_0_node_replay_report"
  luaunit.assertEquals(#lib.rows(base .. "_csvs", "gemm_node_replay"), 4)
  luaunit.assertNotNil(file.read(base .. "_ops/conv_001.op"))
  luaunit.assertEquals(#lib.rows(lib.work .. "/runs/a/a_rank_0_performance_report_csvs", "gemm"), 5)
end

return require "suites" { { "TestReports", TestReports } }
