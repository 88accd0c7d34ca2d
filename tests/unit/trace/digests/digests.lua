-- trace digest: the commands over ranks give the same bytes from digests as from traces; digests are made
-- once, again after a change, by several processes, and after a kill.
-- Needs: xlsx
local digests = require "unit.trace.digests.lib_digests"
local file = require "core.file"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local process = require "core.process"

local TestDigests = {}

local sweep, out = digests.sweep, digests.out

function TestDigests.setUp()
  lib.clean()
  digests.plant()
end

-- Replaces the contents of the traces, as if the digests in `folder` (a sweep's) were of these.
local function garbage_instead_of_traces(folder)
  for _, threads in ipairs { 256, 512 } do
    for rank = 0, 1 do
      local path = lib.path("sweep", threads, 28, rank)
      assert(file.write(path, "{ no JSON"))
      digests.renew(folder .. path:sub(#sweep + 1) .. ".digest")
    end
  end
end

function TestDigests.test_results_are_the_same_bytes()
  local wanted = digests.results(sweep)
  luaunit.assertNotNil(wanted["256thread/collective_reports/collective_28ch_csvs/straggler_summary.csv"])
  luaunit.assertNotNil(wanted["256thread/collective_reports/collective_28ch_csvs/nccl_all2allv.csv"])
  luaunit.assertStrContains(wanted["tracelens_analysis/overview.html"], "straggler_summary.csv")
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out) }, { 4, 0, "" })
  luaunit.assertEquals(digests.results(out), wanted)
  -- Beside the traces: these are not read again, or they would be errors.
  luaunit.assertEquals({ digests.make(0, sweep) }, { 4, 0, "" })
  garbage_instead_of_traces(sweep)
  luaunit.assertEquals(digests.results(sweep), wanted)
end

function TestDigests.test_kernels_of_the_user_are_part_of_a_digest()
  local kernels = lib.work .. "/kernels.lua"
  assert(file.write(kernels, 'return { { pattern = "mesh_sum", operation = "AllReduce" } }\n'))
  local wanted = digests.results(sweep, "--collectives", kernels)
  luaunit.assertStrContains(wanted["256thread/collective_reports/collective_28ch_csvs/nccl_long.csv"],
    "mesh_sum")
  digests.make(0, sweep, "--out", out, "--collectives", kernels)
  luaunit.assertEquals(digests.results(out, "--collectives", kernels), wanted)
  lib.reports(2, "was made with other kernels of --collectives; give the same file",
    lib.run("trace", "gemm", out, "--out", lib.work .. "/x"))
end

function TestDigests.test_the_selection_of_steps_is_part_of_a_digest()
  digests.plant { first_step = 3, last_step = 4 }
  local wanted = digests.results(sweep, "--steps", "4")
  digests.make(0, sweep)
  luaunit.assertEquals(digests.results(sweep, "--steps", "4"), wanted) -- reads the traces
  luaunit.assertNotEquals(digests.results(sweep), wanted)
  digests.make(0, sweep, "--out", out, "--steps", "4")
  luaunit.assertEquals(digests.results(out, "--steps", "4"), wanted)
  lib.reports(2, "was made with other --steps, --annotation or --capture; give the same ones",
    lib.run("trace", "gemm", out, "--out", lib.work .. "/x"))
end

function TestDigests.test_a_selection_in_another_order_is_the_same()
  digests.plant { first_step = 3, last_step = 4 }
  digests.make(0, sweep, "--out", out, "--steps", "3,4")
  local function pipeline(...)
    local said = lib.ends_with(0, lib.run("trace", "pipeline", out, "--out", lib.work .. "/x", "--without",
      "reports,merge,plots", "--csv", "--steps", ...))
    return tonumber(said:match("(%d+) made"))
  end
  luaunit.assertTrue(pipeline "3-4" > 0)
  luaunit.assertEquals(pipeline("4", "3"), 0)
end

function TestDigests.test_notes_are_the_same()
  for rank = 0, 2 do -- rank 1 is one of 4, and rank 3 is missing
    digests.trace(rank, 0, { world_size = rank == 1 and 8 or 4 })
      :write(("%s/run/rank%d/trace.json"):format(lib.work, rank))
  end
  local wanted = digests.results(lib.work .. "/run")
  luaunit.assertStrContains(wanted["collective_csvs/nccl_notes.csv"], "rank1/trace.json: is a rank of 8")
  luaunit.assertStrContains(wanted["collective_csvs/nccl_notes.csv"], "rank 3 of 4 is missing")
  digests.make(0, lib.work .. "/run", "--out", out)
  luaunit.assertEquals(digests.results(out), wanted)
end

function TestDigests.test_the_report_over_ranks_is_the_same()
  local function report(extension)
    local workbook = lib.work .. "/report.xlsx"
    lib.ends_with(0, lib.run("trace", "report", "-b", lib.work .. "/run", "-f", "rank", "-e", extension, "-o",
      workbook))
    local page = lib.work .. "/report.html"
    local made = { assert(file.read(workbook)), digests.tree(lib.work .. "/report_csvs"),
      assert(file.read(page)) }
    assert(os.remove(page))
    return made
  end
  for rank = 0, 1 do digests.trace(rank, rank):write(("%s/run/rank_%d.json"):format(lib.work, rank)) end
  local wanted = report "json"
  digests.make(0, lib.work .. "/run")
  os.execute(("rm '%s'/run/*.json"):format(lib.work))
  luaunit.assertEquals(report "digest", wanted)
  digests.one_line(2, "is a digest; -a and -r need the trace", "trace", "report", "-b", lib.work .. "/run",
    "-f", "rank", "-e", "digest", "-a", "--csv")
end

function TestDigests.test_kernels_of_the_user_are_in_the_report_over_ranks()
  local kernels, run = lib.work .. "/kernels.lua", lib.work .. "/run"
  assert(file.write(kernels, 'return { { pattern = "mesh_sum", operation = "AllReduce" } }\n'))
  for rank = 0, 1 do digests.trace(rank, rank):write(("%s/rank_%d.json"):format(run, rank)) end
  local function report(code, extension, ...)
    local _, errors = lib.ends_with(code, lib.run("trace", "report", "-b", run, "-f", "rank", "-e", extension,
      "-o", lib.work .. "/report.xlsx", "--csv", ...))
    return code == 0 and digests.tree(lib.work .. "/report_csvs") or errors
  end
  local wanted = report(0, "json", "--collectives", kernels)
  luaunit.assertStrContains(wanted["nccl_long.csv"], "mesh_sum")
  luaunit.assertNil(report(0, "json")["nccl_long.csv"]:find("mesh_sum", 1, true))
  digests.make(0, run, "--collectives", kernels)
  os.execute(("rm '%s'/*.json"):format(run))
  luaunit.assertEquals(report(0, "digest", "--collectives", kernels), wanted)
  luaunit.assertStrContains(report(2, "digest"), "was made with other kernels of --collectives")
end

function TestDigests.test_digests_are_made_once()
  digests.make(0, sweep, "--out", out)
  garbage_instead_of_traces(out) -- would fail if it was read
  local before = digests.tree(out)
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out) }, { 0, 4, "" })
  luaunit.assertEquals(digests.tree(out), before)
  -- The contents are compared only on request.
  local _, _, errors = digests.make(2, sweep, "--out", out, "--verify")
  luaunit.assertStrContains(errors, lib.path("sweep", 512, 28, 1))
  digests.plant { count = 12 }
  digests.make(0, sweep, "--out", out)
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out, "--verify") }, { 0, 4, "" })
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out, "--fresh") }, { 4, 0, "" })
end

function TestDigests.test_a_changed_trace_is_digested_again()
  digests.make(0, sweep)
  digests.make(0, sweep, "--out", out)
  local changed = lib.path("sweep", 512, 28, 1)
  digests.trace(1, 9):write(changed)
  local wanted = digests.results(sweep) -- not of the old digest beside the trace
  luaunit.assertEquals(wanted.stderr, "")
  for _, words in ipairs { { "gemm" }, { "pipeline", "--without", "reports,merge,plots", "--csv" } } do
    for _ = 1, 2 do -- also for results that are kept
      digests.one_line(0, "trace.json has changed since; gentables trace digest makes it again", "trace",
        words[1], out, "--out", lib.work .. "/x", table.unpack(words, 2))
    end
  end
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out) }, { 1, 3, "" })
  luaunit.assertEquals(digests.results(out), wanted)
  -- A change that leaves inode, size and the time of the contents.
  digests.overwrite(changed, (assert(file.read(changed)):gsub('("dur": ?)30%.', "%131.")))
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out) }, { 1, 3, "" })
  -- One that leaves all times would be found in the contents.
  digests.overwrite(changed, (assert(file.read(changed)):gsub('("dur": ?)31%.', "%132.")))
  digests.renew(out .. changed:match("/512thread/.*$") .. ".digest")
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out) }, { 0, 4, "" })
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out, "--verify") }, { 1, 3, "" })
end

function TestDigests.test_processes_share_the_traces()
  for i = 0, 2 do
    local made, kept = digests.make(0, sweep, "--out", out, "--part", i .. "/3")
    luaunit.assertEquals({ made, kept }, { i == 0 and 2 or 1, 0 })
  end
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out) }, { 0, 4, "" })
  for _, wrong in ipairs { "3/3", "1", "-1/2", "1/0", "a/b" } do
    digests.one_line(2, ("--part: %s is not I/N with I from 0 to N - 1"):format(wrong), "trace", "digest",
      sweep, "--part=" .. wrong)
  end
end

local function start()
  return assert(process.start { os.getenv("GENTABLES"), "trace", "digest", sweep, "--out", out, "--jobs",
    "1" })
end

function TestDigests.test_two_processes_work_on_one_folder()
  local wanted = digests.results(sweep)
  local both = { start(), start() }
  for _, one in ipairs(both) do luaunit.assertEquals(one:close(60), "exit code 0") end
  for name in pairs(digests.tree(out)) do luaunit.assertStrMatches(name, ".*/trace.json.digest") end
  luaunit.assertEquals({ digests.make(0, sweep, "--out", out) }, { 0, 4, "" })
  luaunit.assertEquals(digests.results(out), wanted)
end

function TestDigests.test_a_killed_run_is_resumed()
  for rank = 2, 9 do digests.trace(rank, rank, { count = 200 }):write(lib.path("sweep", 256, 28, rank)) end
  for _, signal in ipairs { 2, 9 } do
    os.execute(("rm -rf '%s'"):format(out))
    local run = start()
    repeat until os.execute(("find '%s' -name '*.digest' 2>/dev/null | grep -q ."):format(out))
    run:kill(signal)
    run:close(60)
    local complete = 0
    for name in pairs(digests.tree(out)) do
      if name:find("%.digest$") then complete = complete + 1 end
      if signal == 2 then luaunit.assertStrMatches(name, ".*%.digest") end
    end
    luaunit.assertTrue(complete < 12, "all were made before the kill")
    luaunit.assertEquals({ digests.make(0, sweep, "--out", out) }, { 12 - complete, complete, "" })
  end
end

return require "suites" { { "TestDigests", TestDigests } }
