-- trace gemm, variance, timestamps and overlap over planted traces: each row has the times of its own GEMM,
-- also if one kernel serves two, and simultaneous collectives are not counted twice.
local file = require "core.file"
local input_csv = require "trace.gemm.input_csv"
local json = require "codec.json"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local overlap = require "trace.gemm.overlap"
local variance_plots = require "trace.gemm.variance_plots"

local TestVariance = {}

function TestVariance.setUp() lib.clean() end

-- One kernel name, two shapes. The small one takes 10, 14 and 11 us, the large one 30, 50, 32; the small
-- one's longest is neither the kernel's shortest nor its longest.
local KERNEL = "nvjet_tst_64x64_NT"

local function plant(rank, shift)
  local trace = lib.trace { rank = rank, world_size = 2 }
  local times = { { 64, 10 }, { 512, 30 }, { 64, 14 }, { 512, 50 }, { 64, 11 }, { 512, 32 } }
  for i, one in ipairs(times) do
    trace:gemm { m = one[1], n = 64, k = 32, kernel = KERNEL, start = i * 1000 + shift, duration = one[2] }
  end
  -- Over the large one's longest (4000 to 4050): 3990-4010 and 4005-4020 on two streams, 4040-4100; one that
  -- ends as it begins, and one that begins as it ends.
  local collectives = { { 3990, 20, 20 }, { 4005, 15, 21 }, { 4040, 60, 20 }, { 3950, 50, 22 },
    { 4050, 5, 23 } }
  for i, one in ipairs(collectives) do
    trace:collective { name = i == 2 and "broadcast" or "allreduce", elements = 64, start = one[1] + shift,
      duration = one[2], stream = one[3] }
  end
  -- A kernel of the same name within something that is no GEMM.
  trace:collective { kernel = "ncclKernel", start = 9000 + shift, duration = 1 }
  trace:write(lib.path("sweep", 256, 28, rank))
end

-- Two GEMMs and six collectives of each rank.
function TestVariance.test_sheets_are_printed_as_json()
  for rank = 0, 1 do plant(rank, 10 * rank) end
  local sizes = { collectives = 12, gemm = 4, variance = 4, overlap = 4 }
  for command, count in pairs(sizes) do
    local text = lib.ends_with(0, lib.run("trace", command, lib.work .. "/sweep", "--json"))
    local answer = assert(json.decode(text))
    local sheets = answer[1].sheets
    local rows = command == "collectives" and sheets.nccl_long or select(2, next(sheets))
    luaunit.assertEquals(#rows, count, command)
    luaunit.assertEquals(rows[1].rank, 0)
    luaunit.assertNil(file.status(lib.work .. "/sweep/tracelens_analysis"))
  end
  lib.reports(2, "trace gemm needs --out DIR, or --json", lib.run("trace", "gemm", lib.work .. "/sweep"))
  lib.reports(2, "--json prints, and --out writes files", lib.run("trace", "gemm", lib.work .. "/sweep",
    "--json", "--out", lib.work .. "/out"))
end

local function run(command, ...)
  return lib.run("trace", command, lib.work .. "/sweep", "--out", lib.work .. "/out", ...)
end

local function rows_of(name) return lib.csv(("%s/out/%s.csv"):format(lib.work, name)) end

-- An op with a launch that is outside of it has a row, and no instance.
function TestVariance.test_a_gemm_without_instances_is_left_out()
  local trace = lib.trace { rank = 0, world_size = 1 }
  for i, elements in ipairs { 64, 512 } do
    trace:gemm { m = elements, n = 64, k = 32, kernel = KERNEL, start = i * 1000, duration = 10 }
  end
  local path = lib.path("sweep", 256, 28, 0)
  trace:write(path)
  local text = assert(file.read(path))
  assert(file.write(path, (text:gsub("1990", "5"))))
  for _, command in ipairs { "variance", "timestamps", "overlap" } do lib.ends_with(0, run(command)) end
  luaunit.assertEquals(#rows_of "top5_gemm_kernels_time_variance", 1)
end

local function near(text, number) luaunit.assertAlmostEquals(tonumber(text), number, 1e-9) end

function TestVariance.test_columns_are_the_documented_ones()
  plant(0, 0)
  lib.ends_with(0, run "overlap")
  local name = "top5_gemm_kernels_time_variance_with_collective_overlap"
  local text = assert(file.read(("%s/out/%s.csv"):format(lib.work, name)))
  local header = text:match("^[^\n]*")
  luaunit.assertStrMatches(header, "^threads,channel,rank,kernel_name,kernel_time_min_us,"
    .. "kernel_time_max_us,time_diff_us,col_Compute Spec,.*")
  luaunit.assertStrContains(header,
    ",min_duration_timestamp_ms,max_duration_timestamp_ms,"
    .. "time_between_min_max_ms,min_duration_found_us,max_duration_found_us,overlapping_collective_count,"
    .. "overlapping_collective_names,max_overlap_percentage,max_overlap_collective,total_overlap_duration_ms")
  local columns = {}
  for title in header:gmatch("col_([^,]*)") do columns[#columns + 1] = title end
  local sorted = table.move(columns, 1, #columns, 1, {})
  table.sort(sorted)
  luaunit.assertEquals(columns, sorted)
end

function TestVariance.test_each_row_has_its_own_gemm()
  plant(0, 0)
  lib.ends_with(0, run("timestamps"))
  local rows = rows_of "top5_gemm_kernels_time_variance_with_timestamps"
  luaunit.assertEquals(#rows, 2)
  local large, small = rows[1], rows[2]
  luaunit.assertEquals({ large["col_param: M"], small["col_param: M"] }, { "512", "64" })
  luaunit.assertEquals({ large.kernel_name, small.kernel_name }, { KERNEL, KERNEL })
  luaunit.assertEquals({ large.threads, large.channel, large.rank }, { "256", "28", "0" })
  near(large.time_diff_us, 20)
  near(small.time_diff_us, 4)
  near(large.min_duration_timestamp_ms, 2)
  near(large.max_duration_timestamp_ms, 4)
  near(small.min_duration_timestamp_ms, 1)
  near(small.max_duration_timestamp_ms, 3)
  near(small.time_between_min_max_ms, 2)
  near(small.min_duration_found_us, 10)
  near(small.max_duration_found_us, 14)
end

function TestVariance.test_overlap_is_clipped_merged_and_of_the_same_rank()
  plant(0, 0)
  plant(1, 200) -- its collectives are elsewhere in time
  lib.ends_with(0, run("overlap", "--top-k", "1"))
  local rows = rows_of "top1_gemm_kernels_time_variance_with_collective_overlap"
  luaunit.assertEquals(#rows, 2)
  for rank, row in ipairs(rows) do
    luaunit.assertEquals(row.rank, tostring(rank - 1))
    luaunit.assertEquals(row.overlapping_collective_count, "3")
    luaunit.assertEquals(row.overlapping_collective_names, "allreduce;broadcast;allreduce")
    near(row.max_overlap_percentage, 30) -- the broadcast's 15 of 50
    luaunit.assertEquals(row.max_overlap_collective, "broadcast")
    near(row.total_overlap_duration_ms, 0.03) -- 4000-4020 and 4040-4050
  end
end

function TestVariance.test_every_instance_on_demand()
  plant(0, 0)
  lib.ends_with(0, run("overlap", "--all", "--top-k", "2"))
  local rows = rows_of "top2_gemm_kernels_instances_with_collective_overlap"
  luaunit.assertEquals(#rows, 6)
  near(rows[2].timestamp_ms, 4)
  near(rows[2].duration_us, 50)
  luaunit.assertEquals(rows[2].overlapping_collective_count, "3")
  luaunit.assertEquals(rows[1].overlapping_collective_count, "0")
  luaunit.assertEquals(rows[1].max_overlap_collective, "")
end

-- A CSV as other tools write it: numbers as floats, another kernel's name, columns of its own.
function TestVariance.test_an_input_csv_selects_gemms()
  plant(0, 0)
  plant(1, 200)
  local input = lib.work .. "/mine.csv"
  assert(file.write(input, "threads,channel,rank,kernel_name,col_name,col_param: M,mine,"
    .. "max_duration_timestamp_ms\n256,28,1,other,aten::mm,64.0,\"a,b\",77\n"
    .. "256,28,0,other,aten::mm,512,c,\n256,28,0,other,aten::mm,513,d,\n"))
  local analysis = lib.work .. "/sweep/tracelens_analysis"
  lib.reports(1, "mine.csv: 1 rows match no GEMM", lib.run("trace", "overlap", "--base-path", analysis,
    "--tracelens-path", analysis, "--input-csv", input))
  local rows = lib.csv(lib.work .. "/mine_with_collective_overlap.csv")
  luaunit.assertEquals(#rows, 3)
  luaunit.assertEquals({ rows[1].kernel_name, rows[1].mine }, { "other", "a,b" })
  near(rows[1].max_duration_timestamp_ms, 3.2)
  near(rows[2].max_duration_timestamp_ms, 4)
  luaunit.assertEquals(rows[2].overlapping_collective_count, "3")
  luaunit.assertEquals(rows[3].max_duration_timestamp_ms .. rows[3].overlapping_collective_count, "")
end

-- Products of fp32 in TF32 have rows of their own.
function TestVariance.test_an_input_csv_selects_gemms_by_their_spec()
  local columns = { "name", "param: M", "Compute Spec" }
  local gemm = { columns = columns, rows = { { "aten::mm", 64, "matrix_fp32" },
    { "aten::mm", 64, "matrix_tf32" } } }
  for spec, wanted in pairs { matrix_fp32 = 1, matrix_tf32 = 2, other = 1 } do
    local input = { columns = { "col_name", "col_param: M", "col_Compute Spec" }, rows = { {
      col_name = "aten::mm", ["col_param: M"] = "64", ["col_Compute Spec"] = spec } } }
    luaunit.assertEquals(input_csv.find(input, 1, gemm), wanted, spec)
  end
end

function TestVariance.test_filters_and_the_number_of_gemms()
  plant(0, 0)
  plant(1, 0)
  lib.ends_with(0, run("variance", "--top-k", "1", "--ranks", "1", "--threads", "256", "512",
    "--channels", "28"))
  local rows = rows_of "top1_gemm_kernels_time_variance"
  luaunit.assertEquals(#rows, 1)
  luaunit.assertEquals({ rows[1].rank, rows[1].time_diff_us }, { "1", "20.0" })
  luaunit.assertNil(rows[1].min_duration_timestamp_ms)
  lib.ends_with(2, run("variance", "--ranks", "7"))
  lib.ends_with(2, run("variance", "--top-k", "0"))
  lib.ends_with(2, run("variance", "--ranks", "1-x"))
end

function TestVariance.test_all_gemms_of_all_ranks()
  plant(0, 0)
  plant(1, 0)
  lib.ends_with(0, run("gemm", "--csv"))
  local rows = rows_of "gemm_csvs/GEMM"
  luaunit.assertEquals(#rows, 4)
  luaunit.assertEquals({ rows[4].threads, rows[4].channel, rows[4].rank, rows[4]["param: M"],
    rows[4].name_count }, { "256", "28", "1", "64", "3" })
end

-- They show no variance, whatever their files are named.
function TestVariance.test_titles_of_pictures_name_the_difference_of_times()
  local rows = { { threads = 256, channel = 28, rank = 0, time_diff_us = 3.5 } }
  for _, picture in ipairs(variance_plots.list) do
    local model = picture.model(rows)
    local title = model.texts[1].text
    luaunit.assertStrContains(title, "Longest − shortest kernel time")
    luaunit.assertStrContains(model.y_label, "longest − shortest kernel time (µs)")
    luaunit.assertNotStrContains(title, "variance")
  end
end

function TestVariance.test_no_gemm_is_reported()
  local trace = lib.trace { rank = 0, world_size = 1 }
  trace:collective { name = "allreduce", elements = 64, start = 100, duration = 5 }
  trace:write(lib.path("sweep", 256, 28, 0))
  lib.reports(1, "no GEMM in these traces", run "variance")
end

-- The result of overlap_of, computed by checking every tenth of a microsecond.
local function by_counting(list, start, stop)
  local covered = 0
  for tick = start * 10, stop * 10 - 1 do
    local is_covered = false
    for _, one in ipairs(list) do
      is_covered = is_covered or (one.start * 10 <= tick and tick < (one.start + one.duration) * 10)
    end
    covered = covered + (is_covered and 1 or 0)
  end
  return covered / 10
end

function TestVariance.test_overlap_of_many_random_intervals()
  math.randomseed(7)
  for _ = 1, 40 do
    local events = {}
    for i = 1, 30 do
      events[i] = { start = math.random(0, 300), duration = math.random(0, 5) ^ 2, uid = i, metadata = 1 }
    end
    local list = overlap.index(events, { { name = "x" } })
    for _ = 1, 5 do
      local start = math.random(0, 300)
      local stop = start + math.random(1, 40)
      local found, count = overlap.stretch(list, start, stop), 0
      for _, one in ipairs(events) do
        if one.start < stop and one.start + one.duration > start then count = count + 1 end
      end
      luaunit.assertEquals(found.count, count)
      luaunit.assertAlmostEquals(found.total_us, by_counting(events, start, stop), 1e-9)
    end
  end
end

return require "suites" { { "TestVariance", TestVariance } }
