-- trace pipeline: the documented tree, failures of single configurations, a second run that does only the
-- missing parts, and a run that is killed.
-- Needs: zlib xlsx
local file = require "core.file"
local gnuplot = require "pages.gnuplot"
local json = require "codec.json"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local process = require "core.process"

local TestPipeline = {}

local function plant(threads, channels, rank, count)
  local trace = lib.trace { rank = rank, world_size = 2 }
  for i = 1, count or 6 do
    trace:gemm { m = i % 2 == 0 and 64 or 512, n = 64, k = 32, kernel = "nvjet_tst_64x64_NT", start = i * 100,
      duration = 10 + (i * 7 + threads + channels + rank) % 13 }
    trace:collective { name = "allreduce", elements = 64, start = i * 100 + 5 * rank, duration = 30 }
  end
  trace:write(lib.path("sweep", threads, channels, rank))
end

local function plant_sweep(count)
  for _, threads in ipairs { 256, 512 } do
    for _, channels in ipairs { 28, 42 } do
      for rank = 0, 1 do plant(threads, channels, rank, count) end
    end
  end
end

function TestPipeline.setUp()
  lib.clean()
  plant_sweep()
end

local out = lib.work .. "/out/tracelens_analysis"

local function run_all(...)
  return lib.run("trace", "pipeline", lib.work .. "/sweep", "--out", lib.work .. "/out", ...)
end

-- Without the slowest parts.
local function run(...) return run_all("--without=plots,comparisons,merge", ...) end

local function rows_of(configuration)
  local threads, channels = configuration:match("(%d+)/(%d+)")
  return lib.csv(("%s/%sthread/collective_reports/collective_%sch_csvs/nccl_long.csv"):format(out, threads,
    channels))
end

-- The files below a folder, with their bytes.
local function tree(folder, into, prefix)
  into, prefix = into or {}, prefix or ""
  for _, name in ipairs(assert(file.list(folder))) do
    local path = folder .. "/" .. name
    if file.status(path) == "folder" then
      tree(path, into, prefix .. name .. "/")
    else
      into[prefix .. name] = assert(file.read(path))
    end
  end
  return into
end

local function made(text)
  local count, there = text:match("(%d+) made, (%d+) already present")
  return tonumber(count), tonumber(there)
end

function TestPipeline.test_the_tree_is_the_documented_one()
  local before = tree(lib.work .. "/sweep")
  luaunit.assertEquals(run_all(), gnuplot.is_here() and 0 or 1)
  for _, path in ipairs { "256thread/individual_reports/perf_28ch_rank0.xlsx",
    "512thread/individual_reports/perf_42ch_rank1.xlsx", "256thread/collective_reports/collective_42ch.xlsx",
    "512thread/collective_reports/collective_28ch.xlsx", "top5_gemm_kernels_time_variance.csv",
    "top5_gemm_kernels_time_variance_with_timestamps.csv",
    "top5_gemm_kernels_time_variance_with_collective_overlap.csv",
    "comparisons/collectives_across_configurations.xlsx",
    "comparisons/compare_28ch_rank1_across_threads.xlsx",
    "comparisons/compare_256thread_rank0_across_channels.xlsx",
    "../merged_traces/256thread_28ch_merged.json" } do
    luaunit.assertTrue(file.exists(out .. "/" .. path), path)
  end
  if gnuplot.is_here() then
    for _, name in ipairs { "variance_by_threads_boxplot", "variance_by_channels_boxplot",
      "variance_by_ranks_boxplot", "variance_violin_combined", "variance_thread_channel_interaction" } do
      luaunit.assertTrue(file.exists(("%s/plots/%s.png"):format(out, name)), name)
    end
  end
  luaunit.assertEquals(tree(lib.work .. "/sweep"), before)
end

function TestPipeline.test_it_prints_the_results_of_the_single_commands()
  lib.ends_with(0, run_all("--csv", "--without", "plots"))
  lib.ends_with(0, lib.run("trace", "overlap", lib.work .. "/sweep", "--out", lib.work .. "/single"))
  lib.ends_with(0, lib.run("trace", "collectives", lib.work .. "/sweep", "--out", lib.work .. "/single",
    "--csv"))
  local single, all = tree(lib.work .. "/single"), tree(out)
  luaunit.assertNotNil(next(single))
  for name, text in pairs(single) do luaunit.assertEquals(all[name], text, name) end
end

function TestPipeline.test_the_default_place_is_the_sweep()
  lib.ends_with(0, lib.run("trace", "pipeline", lib.work .. "/sweep/256thread", "--without", "plots",
    "variance,collectives,merge,comparisons"))
  luaunit.assertTrue(file.exists(lib.work ..
    "/sweep/tracelens_analysis/256thread/individual_reports/perf_28ch_rank0.xlsx"))
end

function TestPipeline.test_files_that_name_their_rank_are_a_configuration()
  for rank = 0, 1 do
    local text = assert(file.read(lib.path("sweep", 256, 28, rank)))
    assert(file.make_folder(lib.work .. "/run"))
    assert(file.write(("%s/run/trace_rank_%d_step_8.json"):format(lib.work, rank), text))
  end
  lib.ends_with(0, lib.run("trace", "pipeline", lib.work .. "/run", "--without", "plots"))
  for _, name in ipairs { "tracelens_analysis/individual_reports/perf_rank1.xlsx",
    "tracelens_analysis/collective.xlsx", "merged_traces/run_merged.json",
    "tracelens_analysis/top5_gemm_kernels_time_variance.csv" } do
    luaunit.assertTrue(file.exists(lib.work .. "/run/" .. name), name)
  end
end

function TestPipeline.test_a_second_run_does_the_missing_parts()
  local _, first = run()
  local count = made(first)
  local before = tree(out)
  local _, second = run()
  luaunit.assertEquals({ made(second) }, { 0, count })
  os.remove(out .. "/512thread/individual_reports/perf_28ch_rank1.xlsx")
  os.remove(out .. "/top5_gemm_kernels_time_variance.csv")
  luaunit.assertEquals({ made(select(2, run())) }, { 2, count - 2 })
  os.remove(out .. "/512thread/individual_reports/perf_28ch_rank1_csvs/gpu_timeline.csv")
  luaunit.assertEquals({ made(select(2, run())) }, { 1, count - 1 })
  luaunit.assertEquals({ made(select(2, run("--fresh"))) }, { count, 0 })
  local after = tree(out)
  for name, text in pairs(before) do
    if name:find("%.csv$") then luaunit.assertEquals(after[name], text, name) end
  end
end

-- Expects that each line of a run's progress has a text, and only the last one the part 1.
local function expect_progress()
  local path, lines = lib.work .. "/progress", {}
  lib.ends_with(0, lib.run_with("env GENTABLES_PROGRESS=" .. path, "trace", "pipeline", lib.work .. "/sweep",
    "--out", lib.work .. "/out", "--csv", "--without", "plots"))
  for text in assert(file.read(path)):gmatch("[^\n]+") do lines[#lines + 1] = assert(json.decode(text)) end
  os.remove(path)
  luaunit.assertTrue(#lines >= 2)
  for i, line in ipairs(lines) do
    luaunit.assertNotEquals(line.text, "")
    luaunit.assertEquals(line.part == 1, i == #lines)
  end
end

function TestPipeline.test_progress_ends_with_the_last_part()
  expect_progress()
  expect_progress() -- all parts are present
end

function TestPipeline.test_changed_parts_are_made_again()
  run_all("--csv", "--without", "plots")
  plant(512, 42, 1, 8)
  local _, text = run_all("--csv", "--without", "plots")
  local count = made(text)
  -- A report, its configuration's collectives and merged trace, four comparisons of these by threads and
  -- channels and that of all collectives, three tables, the page.
  luaunit.assertEquals(count, 12)
  luaunit.assertEquals(#rows_of "512/42", 14)
  local other = made(select(2, run("--csv", "--top-k", "1")))
  luaunit.assertTrue(other > 8)
  luaunit.assertTrue(file.exists(out .. "/top1_gemm_kernels_time_variance.csv"))
end

function TestPipeline.test_other_kernels_of_the_user_change_the_results()
  local kernels = lib.work .. "/kernels.lua"
  local function rows_with(text)
    assert(file.write(kernels, ('return { { pattern = %q } }\n'):format(text)))
    lib.ends_with(0, run("--csv", "--collectives", kernels))
    return #rows_of "512/28"
  end
  lib.ends_with(0, run("--csv"))
  luaunit.assertEquals(#rows_of "512/28", 12)
  luaunit.assertEquals(rows_with "nvjet", 24)
  luaunit.assertEquals(rows_with "no_kernel", 12)
end

function TestPipeline.test_a_trace_that_is_changed_in_place_is_read_again()
  run("--csv")
  local path = lib.path("sweep", 512, 28, 1)
  local text, kept = assert(file.read(path)), lib.work .. "/kept"
  os.execute(("touch -r '%s' '%s'"):format(path, kept))
  -- In place, with the same size and time of its contents; then replaced by such a file.
  for _, command in ipairs { "cat '%s' > '%s'", "mv '%s' '%s'" } do
    local _, before = run("--csv")
    luaunit.assertEquals((made(before)), 0)
    text = text:gsub('("dur": ?)(%d)(%d)%.0', function(name, a, b) return name .. b .. a .. ".0" end)
    assert(file.write(lib.work .. "/new", text))
    os.execute(("touch -r '%s' '%s/new'"):format(kept, lib.work))
    os.execute(command:format(lib.work .. "/new", path))
    os.execute(("touch -r '%s' '%s'"):format(kept, path))
    local _, after = run("--csv")
    luaunit.assertTrue(made(after) > 0, command)
  end
end

function TestPipeline.test_a_failure_does_not_end_the_others()
  local broken = lib.path("sweep", 512, 28, 0)
  local whole = assert(file.read(broken))
  assert(file.write(broken, whole:sub(1, 900)))
  plant(256, 56, 0)
  assert(file.write((lib.path("sweep", 256, 56, 0):gsub("trace.json", "second.json")), whole))
  local errors = lib.reports(1, broken, run("--csv"))
  luaunit.assertStrContains(errors, "second.json") -- two traces of a rank are ambiguous
  luaunit.assertEquals(#rows_of "512/28", 6)
  luaunit.assertEquals(#rows_of "256/42", 12)
  -- When it is complete, the results that were made without it are made again.
  assert(file.write(broken, whole))
  run("--csv")
  luaunit.assertEquals(#rows_of "512/28", 12)
end

function TestPipeline.test_steps_that_are_left_out()
  lib.ends_with(0, run_all("--without", "plots", "comparisons", "merge", "reports"))
  luaunit.assertNil(file.status(lib.work .. "/out/merged_traces"))
  luaunit.assertNil(file.status(out .. "/256thread/individual_reports"))
  luaunit.assertNil(file.status(out .. "/plots"))
  luaunit.assertTrue(file.exists(out .. "/top5_gemm_kernels_time_variance.csv"))
end

function TestPipeline.test_wrong_use_ends_in_one_line()
  for pattern, words in pairs { ['--short-limit: "soon" is not a number'] = { "--short-limit", "soon" },
    ['--without: "pictures" is not one of reports'] = { "--without", "pictures" },
    ['--top-k: "0" is not a whole number'] = { "--top-k", "0" },
    ["two configurations of one name"] = { "--csv", lib.work .. "/other" } } do
    os.execute(("cp -r '%s/sweep' '%s/other'"):format(lib.work, lib.work))
    local errors = lib.reports(2, pattern, run(table.unpack(words)))
    luaunit.assertEquals(select(2, errors:gsub("\n", "")), 1)
  end
end

function TestPipeline.test_nothing_that_can_be_read_is_an_error()
  for _, threads in ipairs { 256, 512 } do
    for _, channels in ipairs { 28, 42 } do
      for rank = 0, 1 do assert(file.write(lib.path("sweep", threads, channels, rank), "{")) end
    end
  end
  lib.ends_with(2, run())
end

function TestPipeline.test_temporary_files_of_a_killed_run_are_removed()
  run("--csv")
  local report = out .. "/256thread/individual_reports/perf_28ch_rank0_csvs"
  local left = { out .. "/x.csv.aB3dE6.tmp", report .. "/GEMM.csv.aB3dE6.tmp" }
  for _, path in ipairs(left) do assert(file.write(path, "half")) end
  run("--csv")
  for _, path in ipairs(left) do luaunit.assertFalse(file.exists(path), path) end
  luaunit.assertTrue(file.exists(report .. "/GEMM.csv"))
end

-- Kills it as soon as a report exists, and checks the leftovers.
function TestPipeline.test_a_run_that_is_killed_leaves_nothing_half_written()
  plant_sweep(40)
  run("--csv")
  local whole = tree(out)
  for _, signal in ipairs { 2, 9 } do
    os.execute(("rm -rf '%s'"):format(lib.work .. "/out"))
    local pipeline = assert(process.start { os.getenv("GENTABLES"), "trace", "pipeline", lib.work .. "/sweep",
      "--csv", "--out", lib.work .. "/out", "--jobs", "1", "--without", "plots", "comparisons" })
    local first = out .. "/256thread/individual_reports/perf_28ch_rank0_csvs/gpu_timeline.csv"
    repeat until file.exists(first)
    pipeline:kill(signal)
    local reason = pipeline:close(60)
    luaunit.assertEquals(reason, signal == 2 and "exit code 130" or "killed by SIGKILL (Killed)")
    for name, text in pairs(tree(out)) do
      if name:find("%.csv$") then luaunit.assertEquals(text, whole[name], name) end
      if signal == 2 then luaunit.assertNil(name:find("%.tmp$"), name) end
    end
    lib.ends_with(0, run("--csv"))
    luaunit.assertTrue(file.exists(lib.work .. "/out/merged_traces/512thread_42ch_merged.json"))
    local again = tree(out)
    for name, text in pairs(whole) do
      if name:find("%.csv$") then luaunit.assertEquals(again[name], text, name) end
    end
    for name in pairs(again) do luaunit.assertNil(name:find("%.tmp$"), name) end
  end
end

return require "suites" { { "TestPipeline", TestPipeline } }
