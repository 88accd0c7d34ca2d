-- The page of trace pipeline and trace report in a browser: its figures are those of the sheets that it
-- names, its links name files, and it fits wide windows, phones and paper, light and dark.
-- Needs: zlib
local browser = require "unit.pages.lib"
local file = require "core.file"
local lib = require "unit.trace.overview.lib"
local lu = require "luaunit"
local traces = require "unit.trace.lib"

if not browser.has_browser() then return 77 end

traces.clean()
lib.plant_sweep("sweep")
lib.plant_sweep("slower", 9)

-- A name with markup: a folder's path is part of links and of the title.
local NAME = "new <b>run & more"
local NEW = lib.work .. "/" .. NAME
local OLD, ANALYSIS = lib.work .. "/old", NEW .. "/tracelens_analysis"

local function pipeline(sweep, out, ...)
  return traces.ends_with(0, traces.run("trace", "pipeline", lib.work .. "/" .. sweep, "--out", out, "--csv",
    "--without=plots,merge", ...))
end

local function report(wanted, ...) return traces.ends_with(wanted, traces.run("trace", "report", ...)) end

-- A single trace without collectives; its name has markup, and characters that a URL must escape.
local GEMMS = "gemms <b>#1 & 100%"

local function report_gemms()
  local path = ("%s/%s.json"):format(lib.work, GEMMS)
  lib.plant_gemms(path)
  report(0, path, "--out", lib.work .. "/single")
end

-- A rank of a sweep, and a trace that cannot be read.
local function report_broken()
  assert(file.write(lib.work .. "/rank1.json", "{"))
  report(1, traces.path("sweep", 256, 28, 0), lib.work .. "/rank1.json", "--out", lib.work .. "/broken")
end

local BATCH = lib.work .. "/batch"

local function report_over_ranks()
  assert(file.make_folder(BATCH))
  for _, rank in ipairs { 0, 1, 3 } do
    local text = assert(file.read(traces.path("sweep", 256, 28, rank)))
    assert(file.write(("%s/rank_%d.json"):format(BATCH, rank), text))
  end
  return report(0, "-b", BATCH, "-f", "rank_")
end

pipeline("sweep", OLD)
local said = pipeline("slower", NEW, "--against", OLD)
report_gemms()
report_broken()
local said_of_batch = report_over_ranks()
local pages = lib.browse [[
  const folder = encodeURIComponent("new <b>run & more") + "/tracelens_analysis/overview.html";
  return { pipeline: await read(folder), single: await read("single/overview.html"),
    broken: await read("broken/overview.html"),
    batch: await read("batch/batch_rank__performance_report.html"),
    views: { light: await see(folder, "none", 1280), dark: await see(folder, "dark", 1280),
      phone: await see(folder, "none", 390), print: await see(folder, "print", 1000) } };]]
local seen = pages.pipeline

local function answer(question)
  for _, one in ipairs(seen.answers) do
    if one.question == question then return one end
  end
end

local function table_of(section, count)
  for _, one in ipairs(seen.tables) do
    if one.section == section then
      count = count - 1
      if count == 0 then return one end
    end
  end
end

-- Whether a text is the number `value` with as many decimals as the text has.
local function is_rounded(text, value)
  local decimals = #(text:match "%.(%d+)" or "")
  return math.abs(tonumber(text) - value) <= 0.5000001 * 10.0 ^ -decimals
end

local function has(values, is_such)
  for _, value in ipairs(values) do
    if is_such(value) then return true end
  end
  return false
end

-- Every number of every table is in one of the files below it, to the last digit, and is shown rounded.
-- Returns the number of numbers.
local function check_tables(folder, page)
  local checked = 0
  for _, one in ipairs(page.tables) do
    local values = lib.numbers(folder, one.sources)
    for _, row in ipairs(one.rows) do
      for i, cell in ipairs(row) do
        local number = tonumber(cell.sort ~= "" and cell.sort or cell.number and cell.text or nil)
        if number then
          local head = ("%s %s %s"):format(one.section, one.heads[i], number)
          checked = checked + 1
          lu.assertTrue(has(values, function(value)
            return math.abs(value - number) <= 1e-13 * math.abs(number)
          end), head)
          lu.assertTrue(is_rounded(cell.text:match "^[+-]?[%d.]+", number), head)
        end
      end
    end
  end
  return checked
end

local TestPage = {}

function TestPage.test_the_last_line_names_it()
  lu.assertEquals(lib.last_line(said),
    ("written   %s/overview.html: the page to open first"):format(ANALYSIS))
end

function TestPage.test_the_answers()
  lu.assertEquals(answer("Arrives last").figure, "rank 1")
  lu.assertStrContains(answer("Arrives last").words, "100.0 % of 13 collectives")
  lu.assertEquals(answer("Arrives last").sources,
    { "256thread/collective_reports/collective_28ch_csvs/straggler_summary.csv" })
  lu.assertStrContains(answer("Most kernel time").words, "aten::mm")
  lu.assertStrContains(answer("Total time").words, "against old")
  for _, name in ipairs { "Exposed communication", "Idle", "Prefill and decode", "Most varying GEMM" } do
    lu.assertNotNil(answer(name), name)
  end
  for _, one in ipairs(seen.answers) do
    local values = lib.numbers(ANALYSIS, one.sources)
    for number in one.figure:gmatch "%d+%.%d+" do
      lu.assertTrue(has(values, function(value) return is_rounded(number, math.abs(value)) end),
        one.question .. " " .. number)
    end
  end
end

function TestPage.test_tables_equal_their_sheets() lu.assertTrue(check_tables(ANALYSIS, seen) > 300) end

-- Each row of the time lines has the values of its own rank.
function TestPage.test_rows_are_those_of_their_ranks()
  for count, threads in ipairs { 256, 512 } do
    local made = table_of("time-of-each-rank", count)
    lu.assertEquals(#made.rows, 3)
    for i, rank in ipairs { 0, 1, 3 } do
      lu.assertEquals(made.rows[i][1].text, "rank " .. rank)
      local folder = ("%s/%dthread/individual_reports/perf_28ch_rank%d_csvs"):format(ANALYSIS, threads, rank)
      local line = traces.csv(folder .. "/gpu_timeline.csv")
      for column, type in pairs { [2] = "total_time", [3] = "computation_time", [5] = "exposed_comm_time",
        [7] = "exposed_memcpy_time", [9] = "idle_time", [11] = "total_comm_time" } do
        for _, row in ipairs(line) do
          if row.type == type then
            lu.assertEquals(made.rows[i][column].text, ("%.3f"):format(tonumber(row["time ms"])), type)
          end
        end
      end
    end
  end
end

-- The phases of a rank with the values of its own sheet; each is a bar, too.
function TestPage.test_phases_are_those_of_their_ranks()
  local bars = {}
  for _, one in ipairs(seen.strips) do
    if one.section == "prefill-and-decode" then bars[#bars + 1] = one.rows end
  end
  for count, threads in ipairs { 256, 512 } do
    local made, at = table_of("prefill-and-decode", count), 0
    lu.assertEquals({ #made.rows, #bars[count] }, { 6, 6 })
    for _, rank in ipairs { 0, 1, 3 } do
      local folder = ("%s/%dthread/individual_reports/perf_28ch_rank%d_csvs"):format(ANALYSIS, threads, rank)
      for _, row in ipairs(traces.csv(folder .. "/phases.csv")) do
        at = at + 1
        local cells = {}
        for i, cell in ipairs(made.rows[at]) do cells[i] = cell.text end
        lu.assertEquals(bars[count][at].name, ("rank %d, %s"):format(rank, row.phase))
        lu.assertEquals({ cells[1], cells[2], cells[3] },
          { "rank " .. rank, row.phase, row.phase == "decode" and "3" or "1" })
        for column, title in pairs { [4] = "time per step ms", [5] = "total_time ms",
          [8] = "exposed_comm_time ms", [10] = "idle_time ms" } do
          lu.assertEquals(cells[column], ("%.3f"):format(tonumber(row[title])), title)
        end
        lu.assertEquals(cells[6], ("%.1f"):format(tonumber(row.percent)))
      end
    end
  end
end

function TestPage.test_inferred_phases_are_marked()
  local words = answer("Prefill and decode").words
  lu.assertStrContains(answer("Prefill and decode").figure, " % decode")
  lu.assertStrContains(words, "inferred from names of kernels")
  lu.assertStrContains(seen.text, "Inferred from names of kernels: no annotation names a phase.")
end

-- Numbers of bars are values of the files below them; the parts of a time line add up to its share of the
-- longest one.
function TestPage.test_bars_equal_their_sheets()
  lu.assertTrue(#seen.strips >= 5)
  for _, one in ipairs(seen.strips) do
    local values = lib.numbers(ANALYSIS, one.sources)
    for _, row in ipairs(one.rows) do
      for number in (row.value .. row.hint:gsub("^.*:", "")):gmatch "%d+%.%d+" do
        lu.assertTrue(has(values, function(value) return is_rounded(number, value) end),
          one.section .. " " .. number)
      end
    end
  end
  local longest, lines = 0, {}
  for _, one in ipairs(seen.strips) do
    for _, row in ipairs(one.section == "time-of-each-rank" and one.rows or {}) do
      lines[#lines + 1] = row
      longest = math.max(longest, tonumber((row.value:match "[%d.]+")))
    end
  end
  lu.assertEquals(#lines, 6)
  for _, row in ipairs(lines) do
    local sum = 0
    for _, width in ipairs(row.widths) do sum = sum + width end
    lu.assertAlmostEquals(sum, 1000 * tonumber((row.value:match "[%d.]+")) / longest, 0.5)
  end
end

function TestPage.test_links_name_files()
  lu.assertTrue(#seen.links > 40)
  lu.assertEquals(lib.broken_links(ANALYSIS, seen.links), {})
end

function TestPage.test_names_with_markup_are_texts()
  lu.assertEquals(seen.broken, 0)
  lu.assertEquals(seen.bold, 0)
  lu.assertStrContains(seen.title, NAME)
  lu.assertStrContains(seen.text, "rank 2 of 4 is missing")
end

function TestPage.test_changes_are_those_of_the_comparison()
  local made = table_of("what-changed", 1)
  lu.assertEquals(#made.rows, 6)
  lu.assertEquals(made.rows[4][1].text, "512 threads, 28 channels, rank 0")
  for _, row in ipairs(traces.csv(ANALYSIS
    .. "/comparisons/512thread_perf_28ch_rank0_against_csvs/gpu_timeline.csv")) do
    if row.type == "computation_time" then
      lu.assertEquals(made.rows[4][6].text, ("%.3f"):format(tonumber(row["old::time ms"])))
      lu.assertEquals(made.rows[4][7].text, ("%.3f"):format(tonumber(row["now::time ms"])))
      lu.assertEquals(made.rows[4][8].text, ("%+.1f %%"):format(tonumber(row["time ms__now_pct"])))
    end
  end
end

function TestPage.test_light_dark_phone_and_print()
  local views = pages.views
  for name, view in pairs(views) do
    lu.assertTrue(view.wide <= 0, ("%s scrolls sideways: %d"):format(name, view.wide))
    lu.assertEquals(view.overlaps, 0, name)
    for _, contrast in ipairs(view.texts) do lu.assertTrue(contrast >= 4.5, name .. " text " .. contrast) end
    for _, contrast in ipairs(view.bars) do lu.assertTrue(contrast >= 3, name .. " bar " .. contrast) end
  end
  lu.assertTrue(views.light.back > 0.9)
  lu.assertTrue(views.dark.back < 0.05)
  lu.assertTrue(views.light.first < 600, "the answers are not on the first screen")
  lu.assertEquals(views.print.menu, "none")
  lu.assertEquals(views.print.copy, "none")
  lu.assertTrue(views.print.tables <= 0, "a table is cut off on paper: " .. views.print.tables)
end

-- ---- other commands ----------------------------------------------------------------------------

function TestPage.test_a_single_trace_without_collectives()
  local page = pages.single
  lu.assertEquals(page.answers[1].figure, "none")
  lu.assertEquals(page.sections, { "answers", "time-of-each-rank", "operations", "files" })
  lu.assertEquals(lib.broken_links(lib.work .. "/single", page.links), {})
  lu.assertEquals(#page.strips[1].rows, 1)
  lu.assertEquals(page.strips[1].rows[1].name, GEMMS)
  lu.assertEquals(page.bold, 0)
end

function TestPage.test_a_collective_without_metadata_and_a_broken_trace()
  lu.assertStrContains(pages.broken.text, lib.KERNEL)
  lu.assertStrContains(pages.broken.text, "rank1.json: byte ")
  lu.assertEquals({ pages.broken.broken, pages.broken.bold }, { 0, 0 })
end

function TestPage.test_a_report_over_ranks()
  local page = pages.batch
  lu.assertStrContains(said_of_batch,
    ("written   %s/batch_rank__performance_report.html: the page to open first\n"):format(BATCH))
  lu.assertEquals(page.answers[2].figure, "rank 1")
  lu.assertEquals(#page.strips[1].rows, 3)
  lu.assertEquals(lib.broken_links(BATCH, page.links), {})
  lu.assertStrContains(page.text, "rank 2 of 4 is missing")
  lu.assertTrue(check_tables(BATCH, page) > 40)
end

return require "suites" { { "browser_overview", TestPage } }
