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
  os.remove(page_of_all)
  local said_last = traces.ends_with(0, pipeline("--without", "page"))
  lu.assertNotStrContains(said_last, "overview.html")
  lu.assertFalse(file.exists(page_of_all))
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
