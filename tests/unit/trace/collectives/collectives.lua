-- trace collectives over planted sweeps with known answers, and over incomplete ones.
-- Needs: xlsx
local file = require "core.file"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"

local TestCollectives = {}

function TestCollectives.setUp() lib.clean() end

-- The default events of each of two ranks: an allreduce, an all-gather, a broadcast. Rank 1 arrives 10 us
-- late.
local function planted(rank, world_size)
  local trace = lib.trace { rank = rank, world_size = world_size or 2 }
  local late = 10 * rank
  trace:collective { name = "allreduce", elements = 2 ^ 20 | 0, start = 1000 + late, duration = 110 - late }
  trace:collective { name = "_allgather_base", elements = 1024, out_elements = 2048, dtype = "Float8_e4m3fn",
    start = 2000 + late, duration = 60 - late }
  trace:collective { name = "broadcast", elements = 8, start = 3000, duration = 5 }
  return trace
end

local function write_sweep(change)
  for rank = 0, 1 do
    local trace = planted(rank)
    if change then change(trace, rank) end
    trace:write(lib.path("sweep", 256, 28, rank))
  end
end

local function sheet(name, folder)
  folder = folder or "256thread/collective_reports/collective_28ch_csvs"
  return lib.csv(("%s/out/%s/%s.csv"):format(lib.work, folder, name))
end

local function run(...) return lib.run("trace", "collectives", lib.work .. "/sweep", "--out",
  lib.work .. "/out", ...) end

local function near(text, number)
  luaunit.assertAlmostEquals(tonumber(text), number, math.abs(number) * 1e-9)
end

function TestCollectives.test_numbers_of_a_planted_sweep()
  write_sweep()
  lib.ends_with(0, run())
  local rows = sheet "nccl_implicit_sync"
  luaunit.assertEquals(#rows, 2) -- no latency for a broadcast
  local one = rows[1]
  luaunit.assertEquals(one.collective_id, "0_0")
  near(one.comm_latency, 100)
  near(one["skew in start time"], 10)
  near(one["skew in end time"], 0.0)
  near(one.rank_0_wait_time, 10)
  near(one.rank_1_wait_time, 0.0)
  near(one.avg_wait_time, 5)
  luaunit.assertEquals(one["earliest arrival rank"], "0")
  near(one["algo bw (GB/s)"], 2 ^ 21 / 2 ^ 30 / 100e-6)
  near(one["bus bw (GB/s)"], 2 ^ 21 / 2 ^ 30 / 100e-6) -- 2 (n - 1) / n is 1 for two ranks
  near(rows[2]["Full msg size (MB)"], 2048 / 2 ^ 20) -- the data of all ranks afterwards, fp8
  near(rows[2]["bus bw (GB/s)"], 2048 / 2 ^ 30 / 50e-6 / 2)
  local long = sheet "nccl_long"
  luaunit.assertEquals(#long, 6)
  luaunit.assertEquals(long[6]["Collective name"], "broadcast")
  near(long[1]["In msg size (MB)"], 2)
  luaunit.assertEquals(long[1]["Process Group Ranks"], "[0, 1]")
  luaunit.assertTrue(file.exists(lib.work .. "/out/256thread/collective_reports/collective_28ch.xlsx"))
end

function TestCollectives.test_summaries_and_stragglers()
  write_sweep(function(trace, rank)
    trace:collective { name = "allreduce", elements = 2 ^ 20 | 0, start = 4000 - 30 * rank, duration = 300 }
  end)
  lib.ends_with(0, run("--csv"))
  luaunit.assertFalse(file.exists(lib.work .. "/out/256thread/collective_reports/collective_28ch.xlsx"))
  local summary = sheet("nccl_summary_implicit_sync")[1]
  luaunit.assertEquals({ summary["Collective name"], summary.count }, { "allreduce", "2" })
  near(summary.comm_latency_mean, 200)
  near(summary.comm_latency_min, 100)
  near(summary["skew in start time_max"], 30)
  near(summary["Total comm latency (ms)"], 0.4)
  local stragglers = sheet "straggler_summary"
  luaunit.assertEquals(stragglers[1].rank, "0") -- it waits 10 + 10, the other one 30
  near(stragglers[1].total_wait_time_us, 20)
  near(stragglers[2].total_wait_time_us, 30)
  luaunit.assertEquals({ stragglers[1].times_arrived_last, stragglers[2].times_arrived_last }, { "1", "2" })
  near(stragglers[1].total_nccl_dur_us, 110 + 60 + 5 + 300)
  local long = sheet "nccl_summary_long"
  luaunit.assertEquals({ long[1].rank, long[1]["Collective name"], long[1].count }, { "0", "allreduce", "2" })
  near(long[1].dur_sum, 410)
end

local RING = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
local VLLM = "void (anonymous namespace)::cross_device_reduce_1stage<__nv_bfloat16, 2>"

-- As a graph replays them: kernels without metadata, each twice. Rank 1 arrives 10 us late.
local function replayed(rank)
  local trace, late = lib.trace { rank = rank, world_size = 2 }, 10 * rank
  for start = 1000, 2000, 1000 do
    trace:collective { kernel = RING .. "(ncclDevKernelArgsStorage<4096ul>)", start = start + late,
      duration = 110 - late }
    trace:collective { kernel = VLLM .. "(vllm::RankData*, int)", start = start + 300 + late,
      duration = 60 - late }
    trace:collective { kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
      start = start + 600, duration = 7 }
  end
  return trace
end

function TestCollectives.test_collectives_without_metadata_are_inferred_from_their_kernels()
  for rank = 0, 1 do replayed(rank):write(lib.path("sweep", 256, 28, rank)) end
  lib.reports(0, "names inferred from their kernels, matched by their order (6): Unknown_Group_0",
    run("--csv"))
  local rows = sheet "nccl_implicit_sync"
  luaunit.assertEquals(#rows, 4) -- point to point has no latency
  for i, row in ipairs(rows) do
    local is_ring = i % 2 == 1
    luaunit.assertEquals({ row["Collective name"], row["inferred from kernel"], row.ranks },
      { "AllReduce", is_ring and RING or VLLM, "2" })
    near(row.comm_latency, is_ring and 100 or 50)
    near(row.rank_0_wait_time, 10)
    near(row.rank_1_wait_time, 0.0)
    luaunit.assertEquals({ row["algo bw (GB/s)"], row["In msg size (MB)"] }, { "", "" })
  end
  local summary = sheet "nccl_summary_implicit_sync"
  luaunit.assertEquals({ #summary, summary[1].count, summary[1]["inferred from kernel"] }, { 2, "2", RING })
  near(summary[1]["Total comm latency (ms)"], 0.2)
  local last = sheet "straggler_summary"[1]
  luaunit.assertEquals({ last.rank, last.times_arrived_last }, { "1", "4" })
  luaunit.assertEquals(#sheet "nccl_summary_long", 6) -- three kernels of two ranks
  luaunit.assertEquals(#sheet "nccl_long", 12)
end

-- Rank 0 has a kernel more: only this one is alone.
function TestCollectives.test_an_inferred_collective_that_is_missing_shifts_no_others()
  for rank = 0, 1 do
    local trace = replayed(rank)
    if rank == 0 then trace:collective { kernel = RING .. "()", start = 1500, duration = 100 } end
    trace:write(lib.path("sweep", 256, 28, rank))
  end
  lib.reports(0, "not found on every rank (1): Unknown_Group_2", run("--csv"))
end

function TestCollectives.test_columns_do_not_change_if_all_have_metadata()
  write_sweep()
  lib.ends_with(0, run("--csv"))
  luaunit.assertNil(sheet "nccl_long"[1]["inferred from kernel"])
end

-- The report of a rank groups its own kernels, faster than the report of all ranks: its rows are those of the
-- report of all ranks. Planted out of order, with kernels and splits that differ, and without metadata.
function TestCollectives.test_a_rank_alone_is_summed_up_alike()
  write_sweep(function(trace, rank)
    for i = 8, 1, -1 do
      trace:collective { name = "allreduce", elements = 2 ^ 20 | 0, start = 9000 + 100 * i,
        duration = 7.125 * i + rank, kernel = i % 2 == 0 and "ncclDevKernel_Other" or nil }
      trace:collective { name = "allreduce", elements = 64 * (i % 3), start = 20000 + 100 * i,
        duration = 10 }
    end
    trace:collective { start = 8000, duration = 5 + rank }
  end)
  lib.ends_with(0, run("--csv"))
  local all = sheet "nccl_summary_long"
  lib.ends_with(0, lib.run("trace", "report", lib.work .. "/sweep", "--out", lib.work .. "/out", "--csv"))
  for rank = 0, 1 do
    local of_rank = {}
    for _, row in ipairs(all) do
      if row.rank == tostring(rank) then of_rank[#of_rank + 1] = row end
    end
    luaunit.assertEquals(#of_rank, 7)
    luaunit.assertEquals(sheet("nccl_summary_long",
      ("256thread/individual_reports/perf_28ch_rank%d_csvs"):format(rank)), of_rank)
  end
end

function TestCollectives.test_uneven_all_to_all()
  write_sweep(function(trace, rank)
    trace:collective { name = "all_to_allv", elements = (1 + 2 * rank) * 2 ^ 19 | 0, start = 5000 + rank * 20,
      duration = 100 }
  end)
  lib.ends_with(0, run("--csv"))
  local one = sheet("nccl_all2allv")[1]
  near(one.wall_time, 120)
  near(one["total size (MB)"], 4)
  near(one.size_imbalance, 1.5)
  near(one["throughput (GB/s)"], 4 / 1024 / 120e-6)
  near(one["rank_1_size (MB)"], 3)
end

function TestCollectives.test_a_lost_collective_is_reported_and_shifts_no_other()
  for rank = 0, 2 do
    local trace = lib.trace { rank = rank, world_size = 3 }
    for i = 1, 20 do
      if not (rank == 1 and i == 7) then
        trace:collective { name = "allreduce", elements = 64, start = 1000 * i + 3 * rank,
          duration = 50 - 3 * rank }
      end
    end
    trace:write(lib.path("sweep", 256, 28, rank))
  end
  lib.reports(0, "0_6 (not on rank 1)", run "--csv")
  local rows = sheet "nccl_implicit_sync"
  luaunit.assertEquals(#rows, 20)
  for i, row in ipairs(rows) do
    near(row["skew in start time"], 6)
    luaunit.assertEquals(row.ranks, i == 7 and "2" or "3")
  end
  luaunit.assertStrContains(sheet("nccl_notes")[1].note, "not on rank 1")
end

function TestCollectives.test_clocks_with_different_bases_are_aligned()
  for rank = 0, 1 do
    local trace = lib.trace { rank = rank, world_size = 2, base = 1767189312000000000 + rank * 2500000 }
    trace:collective { name = "allreduce", elements = 64, start = 5000 - 2490 * rank, duration = 40 }
    trace:write(lib.path("sweep", 256, 28, rank))
  end
  lib.reports(0, "2500.000 us later", run "--csv")
  local one = sheet("nccl_implicit_sync")[1]
  near(one["skew in start time"], 10)
  near(one.rank_1_ts, 5010)
end

function TestCollectives.test_configurations_stand_side_by_side()
  for _, threads in ipairs { 256, 512 } do
    for rank = 0, 1 do planted(rank):write(lib.path("sweep", threads, 28, rank)) end
  end
  lib.ends_with(0, run "--csv")
  local rows = sheet("nccl_summary_implicit_sync", "comparisons/collectives_across_configurations_csvs")
  luaunit.assertEquals(#rows, 4)
  luaunit.assertEquals({ rows[1].threads, rows[4].threads, rows[1].channels }, { "256", "512", "28" })
  lib.ends_with(2, run("--csv", "--threads", "1024"))
end

-- The first configuration has metadata, and so a column less.
function TestCollectives.test_configurations_with_a_column_more_keep_it()
  for rank = 0, 1 do
    planted(rank):write(lib.path("sweep", 256, 28, rank))
    replayed(rank):write(lib.path("sweep", 512, 28, rank))
  end
  lib.reports(0, "names inferred", run "--csv")
  local rows = sheet("nccl_summary_implicit_sync", "comparisons/collectives_across_configurations_csvs")
  luaunit.assertEquals({ rows[1]["inferred from kernel"], rows[#rows - 1]["inferred from kernel"] },
    { "", RING })
end

function TestCollectives.test_a_missing_rank_is_reported()
  planted(0, 3):write(lib.path("sweep", 256, 28, 0))
  planted(2, 3):write(lib.path("sweep", 256, 28, 2))
  lib.reports(0, "nccl_28channels: rank 1 of 3 is missing", run())
  luaunit.assertStrContains(sheet("nccl_notes")[1].note, "rank 1 of 3 is missing")
end

function TestCollectives.test_a_rank_of_another_group_size_is_left_out_and_reported()
  write_sweep()
  planted(2, 2):write(lib.path("sweep", 256, 28, 2))
  planted(3, 4):write(lib.path("sweep", 256, 28, 3))
  lib.reports(0, "torch_profiler/rank3/trace.json: is a rank of 4, the others are of 2", run())
  local ranks = {}
  for _, row in ipairs(sheet "nccl_long") do ranks[row.rank] = true end
  luaunit.assertEquals(ranks, { ["0"] = true, ["1"] = true, ["2"] = true })
end

function TestCollectives.test_duplicate_ranks_are_reported_with_their_files()
  write_sweep()
  planted(1):write((lib.path("sweep", 256, 28, 1):gsub("trace.json", "other.json")))
  lib.reports(2, "rank1/other.json", run())
  lib.reports(0, "", run("--trace-name", "trace.json"))
  planted(0):write(lib.path("sweep", 256, 28, 1)) -- a copy of rank 0
  lib.reports(0, "both have rank 0 in distributedInfo", run("--trace-name", "trace.json"))
end

function TestCollectives.test_a_failure_does_not_end_the_others()
  write_sweep()
  for rank = 0, 1 do planted(rank):write(lib.path("sweep", 512, 28, rank)) end
  local path = lib.path("sweep", 512, 28, 1)
  local text = assert(file.read(path))
  assert(file.write(path, text:sub(1, #text // 2)))
  lib.reports(1, path, run())
  luaunit.assertEquals(#sheet "nccl_long", 6)
  luaunit.assertEquals(#sheet("nccl_long", "512thread/collective_reports/collective_28ch_csvs"), 3)
end

function TestCollectives.test_nothing_to_read_is_wrong_use()
  assert(file.make_folder(lib.work .. "/sweep"))
  lib.reports(2, "no trace here", run())
  lib.reports(2, "absent", lib.run("trace", "collectives", lib.work .. "/absent", "--out", lib.work .. "/o"))
end

function TestCollectives.test_a_trace_without_collectives_is_reported()
  local trace = lib.trace { rank = 0, world_size = 1 }
  trace:gemm { m = 8, n = 8, k = 8, kernel = "gemm", start = 100, duration = 5 }
  trace:write(lib.path("sweep", 256, 28, 0))
  lib.reports(1, "no collective", run())
end

function TestCollectives.test_an_unknown_type_has_no_bandwidth_and_is_reported()
  write_sweep(function(trace)
    trace:collective { name = "allreduce", elements = 64, dtype = "Quantum", start = 6000, duration = 5 }
  end)
  lib.reports(0, "without bandwidth", run("--csv"))
  local rows = sheet "nccl_implicit_sync"
  luaunit.assertEquals(rows[3]["algo bw (GB/s)"], "")
  near(rows[3].comm_latency, 5)
end

return require "suites" { { "TestCollectives", TestCollectives } }
