-- The page of trace report and trace pipeline: when it is written, what --against compares with, wrong use,
-- and its size.
-- Needs: zlib
local file = require "core.file"
local lib = require "unit.trace.overview.lib"
local lu = require "luaunit"
local traces = require "unit.trace.lib"

local TestOverview = {}

local trace, out = lib.work .. "/gemms.json", lib.work .. "/out"
local page = out .. "/overview.html"

function TestOverview.setUp()
  traces.clean()
  lib.plant_gemms(trace)
end

local function report(...) return traces.run("trace", "report", trace, "--out", out, ...) end

local function pipeline(...)
  return traces.run("trace", "pipeline", lib.work .. "/sweep", "--out", out, "--csv",
    "--without=plots,merge,comparisons", ...)
end

function TestOverview.test_it_is_written_unless_single_forms_are_requested()
  local said = traces.ends_with(0, report())
  lu.assertEquals(lib.last_line(said), ("written   %s: the page to open first"):format(page))
  lu.assertTrue(file.exists(page))
  os.remove(page)
  lu.assertNotStrContains(traces.ends_with(0, report("--csv")), "overview.html")
  lu.assertFalse(file.exists(page))
  traces.ends_with(0, report("--csv", "--page"))
  lu.assertTrue(file.exists(page))
end

-- Annotations name the phases of three GEMMs, of 21, 22 and 23 µs of 324 µs; the fourth is outside of them.
function TestOverview.test_annotated_phases_are_not_called_inferred()
  lib.plant_gemms(trace, { "prefill", "decode", "decode" })
  traces.ends_with(0, report())
  local text = assert(file.read(page))
  lu.assertStrContains(text, ">13.9 % decode<")
  lu.assertStrContains(text, "of the time; 2 steps of 0.022 ms; prefill 6.5 %<")
  lu.assertStrContains(text, "By names of annotations.")
  lu.assertNotStrContains(text:lower(), "inferred from names")
  lib.plant_gemms(trace)
  traces.ends_with(0, report())
  lu.assertNotStrContains(assert(file.read(page)), "Prefill and decode")
end

function TestOverview.test_a_report_is_compared_with_a_report_a_trace_or_a_folder_of_reports()
  traces.ends_with(0, report())
  lu.assertNotStrContains(assert(file.read(page)), "What changed")
  assert(os.rename(out, lib.work .. "/before"))
  for _, earlier in ipairs { "before", "before/gemms_csvs", "gemms.json" } do
    traces.ends_with(0, report("--against", lib.work .. "/" .. earlier))
    local text = assert(file.read(page))
    lu.assertStrContains(text, "What changed")
    lu.assertStrContains(text, "against " .. (earlier == "before" and "before" or "gemms"))
    lu.assertTrue(file.exists(out .. "/gemms_against_csvs/gpu_timeline.csv"))
  end
end

function TestOverview.test_wrong_use_ends_in_one_line()
  for pattern, words in pairs { ["--page: the page shows CSVs; add --csv"] = { "--xlsx", "--page" },
    ["--against: the page shows changes; add --page"] = { "--csv", "--against", trace },
    ["absent: cannot be read"] = { "--against", lib.work .. "/absent" } } do
    local errors = traces.reports(2, pattern, report(table.unpack(words)))
    lu.assertEquals(select(2, errors:gsub("\n", "")), 1)
  end
  assert(file.make_folder(lib.work .. "/empty"))
  lib.plant_sweep "sweep"
  traces.reports(2, "has no report of these traces", traces.run("trace", "report", lib.work .. "/sweep",
    "--out", out, "--against", lib.work .. "/empty"))
  -- The products of a pipeline are complete by then.
  traces.reports(1, "has no report of these traces", pipeline("--against", lib.work .. "/empty"))
  lu.assertStrContains(assert(file.read(out .. "/tracelens_analysis/overview.html")),
    "has no report of these traces")
  traces.reports(2, "absent: cannot be read", pipeline("--against", lib.work .. "/absent"))
  traces.reports(2, "--against does not go with -b", traces.run("trace", "report", "-b", lib.work,
    "--against", trace))
end

function TestOverview.test_a_pipeline_makes_it_again_if_a_product_or_an_option_changes()
  lib.plant_sweep "sweep"
  local page_of_all = out .. "/tracelens_analysis/overview.html"
  local said = traces.ends_with(0, pipeline())
  local first, made = assert(file.read(page_of_all)), tonumber(said:match "(%d+) made")
  lu.assertStrContains(traces.ends_with(0, pipeline()), ("0 made, %d already present"):format(made))
  os.remove(page_of_all)
  lu.assertStrContains(traces.ends_with(0, pipeline()), ("1 made, %d already present"):format(made - 1))
  lu.assertEquals(assert(file.read(page_of_all)), first)
  -- Another trace: its report, its configuration's collectives, three tables and the page.
  lib.plant_gemms(traces.path("sweep", 256, 28, 3))
  lu.assertStrContains(traces.ends_with(0, pipeline()), "6 made")
  lu.assertNotEquals(assert(file.read(page_of_all)), first)
  traces.ends_with(0, pipeline("--without", "page"))
  lu.assertTrue(file.exists(page_of_all)) -- nothing was made that it lacks
  lib.plant_gemms(traces.path("sweep", 256, 28, 1))
  local said_last = traces.ends_with(0, pipeline("--without", "page"))
  lu.assertNotStrContains(said_last, "overview.html")
  lu.assertFalse(file.exists(page_of_all))
end

-- The compared values of a folder's time line: { [type] = { before, now } } of "time ms".
local function changes_in(folder, base)
  local values = {}
  for _, row in ipairs(traces.csv(folder .. "/gpu_timeline.csv")) do
    values[row.type] = { row[base .. "::time ms"], row["now::time ms"] }
  end
  return values
end

-- A trace with a GPU event without a launch, which only --include-unlinked counts.
local function plant_unlinked(path)
  lib.plant_gemms(path)
  local text = assert(file.read(path))
  local event = [[{"ph": "X", "cat": "kernel", "name": "alone", "pid": 0, "tid": 7, "ts": 600.0, "dur": 50.0,
    "args": {"stream": 7}}]]
  assert(file.write(path, (text:gsub('"traceEvents": ?%[', "%0" .. event .. ",", 1))))
end

-- A pipeline counts GPU events without a launch unless --linked-only is given, trace report does not.
function TestOverview.test_an_earlier_trace_is_reported_with_the_options_of_the_command()
  plant_unlinked(trace)
  local of_pipeline = out .. "/tracelens_analysis/comparisons/perf_gemms.json_against_csvs"
  local totals = {}
  for _, words in ipairs { {}, { "--include-unlinked", "--micro-idle", "60" } } do
    traces.ends_with(0, report("--against", trace, table.unpack(words)))
    local values = changes_in(out .. "/gemms_against_csvs", "gemms")
    for type, pair in pairs(values) do lu.assertEquals(pair[2], pair[1], type) end
    totals[#totals + 1] = values.total_time[1]
  end
  lu.assertNotEquals(totals[1], totals[2])
  for i, words in ipairs { { "--linked-only" }, {} } do
    traces.ends_with(0, traces.run("trace", "pipeline", trace, "--out", out, "--csv", "--against", trace,
      "--without=plots,merge", table.unpack(words)))
    local values = changes_in(of_pipeline, "gemms")
    lu.assertEquals(values.total_time, { totals[i], totals[i] })
  end
end

function TestOverview.test_a_run_is_not_compared_with_its_own_output()
  lib.plant_sweep "sweep"
  local refused = "is the output of this command itself"
  assert(file.make_folder(out))
  for _ = 1, 2 do -- in an empty folder, and in one with reports
    for _, path in ipairs { out, out .. "/../out/" } do
      local errors = traces.reports(2, refused, report("--against", path))
      lu.assertEquals(select(2, errors:gsub("\n", "")), 1)
      traces.reports(2, refused, pipeline("--against", path))
    end
    lu.assertFalse(file.exists(out .. "/gemms_against_csvs"))
    lu.assertFalse(file.exists(out .. "/tracelens_analysis/comparisons"))
    traces.ends_with(0, report())
    traces.ends_with(0, pipeline())
  end
  traces.reports(2, refused, report("--against", out .. "/gemms_csvs"))
  traces.reports(2, refused, pipeline("--against", out .. "/tracelens_analysis"))
  assert(os.execute(("ln -s out '%s/link'"):format(lib.work)))
  traces.reports(2, refused, report("--against", lib.work .. "/link"))
  -- An earlier run below the output folder is another one.
  traces.ends_with(0, traces.run("trace", "report", trace, "--out", out .. "/before"))
  traces.ends_with(0, report("--against", out .. "/before"))
end

function TestOverview.test_a_comparison_has_the_forms_of_the_report()
  if not require("base.optional") "core.sqlite" then return lu.skip "no SQLite" end
  traces.ends_with(0, report("--csv"))
  assert(os.rename(out, lib.work .. "/before"))
  local said = traces.ends_with(0, report("--formats", "csv,sqlite", "--page", "--against",
    lib.work .. "/before"))
  local listed = assert(assert(file.read(page)):match 'id="files".*')
  for _, name in ipairs { "gemms.sqlite", "gemms_against.sqlite" } do
    lu.assertTrue(file.exists(out .. "/" .. name), name)
    lu.assertStrContains(said, ("written   %s/%s: "):format(out, name))
    lu.assertStrContains(listed, ('href="%s"'):format(name))
  end
  lu.assertStrContains(listed, 'href="gemms_against_csvs/gpu_timeline.csv"')
  local function again()
    return traces.ends_with(0, traces.run("trace", "pipeline", trace, "--out", out, "--formats", "sqlite",
      "--without=plots,merge", "--against", lib.work .. "/gemms.json"))
  end
  again()
  local base = out .. "/tracelens_analysis/comparisons/perf_gemms.json_against"
  lu.assertTrue(file.exists(base .. ".sqlite"))
  lu.assertStrContains(again(), " 0 made")
  lib.plant_gemms(lib.work .. "/batch/rank_0.json")
  said = traces.ends_with(0, traces.run("trace", "report", "-b", lib.work .. "/batch", "--page", "--formats",
    "csv,sqlite"))
  listed = assert(assert(file.read((said:match "written   (%S+%.html)"))):match 'id="files".*')
  lu.assertStrContains(listed, ('href="%s"'):format(said:match "/([^/%s]+%.sqlite)"))
end

function TestOverview.test_a_page_without_reports_shows_none_of_another_run()
  lib.plant_sweep "sweep"
  local page_of_all = out .. "/tracelens_analysis/overview.html"
  for _, step in ipairs { "nothing", "reports" } do
    local words = { "--without=plots,merge,comparisons,reports" }
    if step == "reports" then traces.ends_with(0, pipeline()) end
    traces.ends_with(0, traces.run("trace", "pipeline", lib.work .. "/sweep", "--out", out, "--csv",
      table.unpack(words)))
    local text = assert(file.read(page_of_all))
    lu.assertStrContains(text, "time lines: reports were left out")
    lu.assertNotStrContains(text, "Exposed communication")
    lu.assertNotStrContains(text, "no trace has GPU events")
  end
  local errors = traces.reports(2, "--against compares reports, which --without leaves out",
    traces.run("trace", "pipeline", lib.work .. "/sweep", "--without=reports", "--against", lib.work))
  lu.assertEquals(select(2, errors:gsub("\n", "")), 1)
end

-- Replaces all traces of the sweep by ones of collectives alone.
local function plant_collectives()
  for _, threads in ipairs { 256, 512 } do
    for _, rank in ipairs { 0, 1, 3 } do
      local one = traces.trace { rank = rank, world_size = 4 }
      one:collective { name = "allreduce", elements = 64, start = 100, duration = 30 }
      one:write(traces.path("sweep", threads, 28, rank))
    end
  end
end

function TestOverview.test_tables_of_gemms_of_an_earlier_run_are_removed()
  lib.plant_sweep "sweep"
  local analysis = out .. "/tracelens_analysis"
  local table_of_gemms = analysis .. "/top5_gemm_kernels_time_variance.csv"
  traces.ends_with(0, pipeline())
  lu.assertStrContains(assert(file.read(analysis .. "/overview.html")), "Most varying GEMM")
  lu.assertTrue(file.exists(table_of_gemms))
  local plot = analysis .. "/plots/variance_by_threads_boxplot.png"
  assert(file.make_folder(analysis .. "/plots"))
  assert(file.write(plot, "old"))
  plant_collectives()
  traces.ends_with(0, traces.run("trace", "pipeline", lib.work .. "/sweep", "--out", out, "--csv",
    "--without=merge,comparisons"))
  lu.assertFalse(file.exists(table_of_gemms))
  lu.assertFalse(file.exists(plot))
  lu.assertNotStrContains(assert(file.read(analysis .. "/overview.html")), "GEMM")
end

function TestOverview.test_it_names_the_selected_steps()
  local steps = traces.trace {}
  for step = 3, 4 do
    steps:step(step)
    steps:gemm { m = 64, n = 64, k = 32, kernel = "nvjet", start = 120 + 500 * (step % 2), duration = 20 }
  end
  steps:write(trace)
  traces.ends_with(0, report())
  lu.assertStrContains(assert(file.read(page)), "1 trace. Each figure")
  for lead, words in pairs { ["1 trace, of which only steps 3."] = { "--steps", "3" },
    ["1 trace, of which only the annotations Profiler*."] = { "--annotation", "Profiler*" },
    ["1 trace, of which only occurrences 0, 1 of the annotations Profiler*."] =
      { "--annotation", "Profiler*", "--steps", "0-1" } } do
    traces.ends_with(0, report(table.unpack(words)))
    lu.assertStrContains(assert(file.read(page)), lead)
  end
end

function TestOverview.test_the_page_of_replaced_csvs_is_removed()
  traces.ends_with(0, report())
  traces.ends_with(0, report("--xlsx"))
  lu.assertTrue(file.exists(page)) -- its CSVs are still the same
  traces.ends_with(0, report("--csv"))
  lu.assertFalse(file.exists(page))
  lib.plant_gemms(lib.work .. "/batch/rank_0.json")
  local function batch(...)
    return traces.ends_with(0, traces.run("trace", "report", "-b", lib.work .. "/batch", ...))
  end
  local of_batch = assert(batch():match "written   (%S+%.html)")
  lu.assertTrue(file.exists(of_batch))
  batch "--csv"
  lu.assertFalse(file.exists(of_batch))
end

function TestOverview.test_a_time_that_was_zero_is_new_and_gemms_of_no_time_have_bars()
  local before, now = traces.trace {}, traces.trace {}
  for i, one in ipairs { before, now } do
    one:gemm { m = 64, n = 64, k = 32, kernel = "nvjet", start = 100, duration = 20 }
    one:gemm { m = 64, n = 64, k = 32, kernel = "nvjet", start = i == 1 and 120 or 150, duration = 20 }
  end
  before:write(lib.work .. "/before.json")
  now:write(trace)
  traces.ends_with(0, report("--against", lib.work .. "/before.json"))
  lu.assertStrContains(assert(file.read(page)), ">new<")
  local zero = traces.trace {}
  for i = 1, 3 do
    zero:gemm { m = 64, n = 64, k = 32, kernel = "nvjet", start = 100 * i, duration = 0 }
  end
  zero:gemm { m = 64, n = 64, k = 32, kernel = "nvjet", start = 500, duration = 0 }
  zero:write(trace)
  traces.ends_with(0, traces.run("trace", "pipeline", trace, "--out", out, "--csv", "--without=plots,merge"))
  local text = assert(file.read(out .. "/tracelens_analysis/overview.html"))
  lu.assertStrContains(text, "GEMMs with varying time")
  lu.assertNil(text:find "nan")
end

-- A trace with many ops, eight times.
function TestOverview.test_eight_ranks_are_small()
  for rank = 0, 7 do
    local many = traces.trace { rank = rank, world_size = 8 }
    for i = 1, 400 do
      many:gemm { m = i, n = 64, k = 32, kernel = ("nvjet_%d_"):format(i):rep(40), start = i * 100,
        duration = 20 }
      many:collective { name = "allreduce", elements = i, start = i * 100 + 30, duration = 40 }
    end
    many:write(("%s/run/rank_%d.json"):format(lib.work, rank))
  end
  traces.ends_with(0, traces.run("trace", "pipeline", lib.work .. "/run", "--out", out, "--csv",
    "--without=plots,merge"))
  local text = assert(file.read(out .. "/tracelens_analysis/overview.html"))
  print(("%d bytes"):format(#text))
  lu.assertTrue(#text < 3e6)
  lu.assertNil(text:find "https?://", "it needs a network")
end

return require "suites" { { "TestOverview", TestOverview } }
