-- --digests DIR: the commands over ranks add the digests of the traces that they read, and read them in place
-- of unchanged traces; the results are the same bytes.
-- Needs: xlsx
local digests = require "unit.trace.digests.lib_digests"
local file = require "core.file"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local process = require "core.process"

local TestDigestFolder = {}

local sweep, kept, x = digests.sweep, lib.work .. "/kept", lib.work .. "/x"

function TestDigestFolder.setUp()
  lib.clean()
  digests.plant()
end

-- Replaces the contents of these traces, as if the digests of `folder` were of them: each command that reads
-- one fails.
local function garbage_instead_of_traces(paths, folder)
  for _, path in ipairs(paths) do assert(file.write(path, "{ no JSON")) end
  for name in pairs(digests.tree(folder)) do digests.renew(folder .. "/" .. name) end
end

local function paths_of_sweep()
  local paths = {}
  for _, threads in ipairs { 256, 512 } do
    for rank = 0, 1 do paths[#paths + 1] = lib.path("sweep", threads, 28, rank) end
  end
  return paths
end

-- The number of digests in the folder, and the number of those that are not in `before`.
local function count(before)
  local all, new = 0, 0
  for name, text in pairs(digests.tree(kept)) do
    luaunit.assertStrMatches(name, ".*%.json%.digest%.%x+")
    all, new = all + 1, new + (text == (before or {})[name] and 0 or 1)
  end
  return all, new
end

-- The results of trace collectives, as files, and what it printed on stderr.
local function collectives(input, ...)
  os.execute(("rm -rf '%s'"):format(x))
  local _, errors = lib.ends_with(0, lib.run("trace", "collectives", input, "--out", x, "--csv", ...))
  return digests.tree(x), errors
end

function TestDigestFolder.test_results_are_the_same_bytes()
  local wanted = digests.results(sweep)
  luaunit.assertEquals(digests.results(sweep, "--digests", kept .. "/"), wanted)
  luaunit.assertEquals(count(), 4)
  local before = digests.tree(kept)
  garbage_instead_of_traces(paths_of_sweep(), kept)
  local renewed = digests.tree(kept)
  luaunit.assertEquals(digests.results(sweep, "--digests", kept), wanted)
  luaunit.assertEquals(digests.tree(kept), renewed)
  luaunit.assertEquals(digests.results(kept .. "/../sweep", "--digests", kept), wanted) -- another spelling
  -- A folder of digests is no folder of traces.
  luaunit.assertEquals(count(before), 4)
  digests.one_line(2, "is a folder of --digests", "trace", "gemm", kept, "--out", x)
end

function TestDigestFolder.test_only_changed_traces_are_read()
  collectives(sweep, "--digests", kept)
  local paths = paths_of_sweep()
  local changed = table.remove(paths)
  digests.trace(1, 9):write(changed)
  local wanted = collectives(sweep)
  garbage_instead_of_traces(paths, kept) -- also gives the old digest of the changed one its new identity
  digests.trace(1, 9):write(changed)
  local before = digests.tree(kept)
  luaunit.assertEquals({ collectives(sweep, "--digests", kept) }, { wanted, "" })
  luaunit.assertEquals({ count(before) }, { 4, 1 })
end

function TestDigestFolder.test_selections_and_kernels_have_their_own_digests()
  digests.plant { first_step = 3, last_step = 4 }
  local kernels = lib.work .. "/kernels.lua"
  assert(file.write(kernels, 'return { { pattern = "mesh_sum", operation = "AllReduce" } }\n'))
  local lists = { {}, { "--steps", "4" }, { "--collectives", kernels } }
  for i, words in ipairs(lists) do
    local wanted = collectives(sweep, table.unpack(words))
    luaunit.assertEquals(collectives(sweep, "--digests", kept, table.unpack(words)), wanted)
    luaunit.assertEquals(count(), 4 * i)
  end
  local before = digests.tree(kept)
  for _, words in ipairs(lists) do collectives(sweep, "--digests", kept, table.unpack(words)) end
  luaunit.assertEquals({ count(before) }, { 12, 0 })
end

function TestDigestFolder.test_a_pipeline_reads_each_trace_once_for_its_report_and_its_digest()
  local function pipeline(...)
    os.execute(("rm -rf '%s'"):format(x))
    local _, errors = lib.ends_with(0, lib.run("trace", "pipeline", sweep, "--out", x, "--csv", "--without",
      "merge,plots", ...))
    os.execute(("rm -r '%s/tracelens_analysis/.gentables'"):format(x))
    return { digests.tree(x), errors }
  end
  local wanted, collective = pipeline(), collectives(sweep)
  luaunit.assertNotNil(wanted[1]["tracelens_analysis/overview.html"])
  luaunit.assertEquals(pipeline("--digests", kept), wanted)
  local before = digests.tree(kept)
  luaunit.assertEquals(pipeline("--digests", kept), wanted) -- the reports need the traces
  luaunit.assertEquals({ count(before) }, { 4, 0 })
  garbage_instead_of_traces(paths_of_sweep(), kept)
  luaunit.assertEquals({ collectives(sweep, "--digests", kept) }, { collective, "" })
end

-- Two runs with the same names of traces, and reports of both in one command.
function TestDigestFolder.test_the_report_over_ranks_is_the_same()
  local base, paths = lib.work .. "/runs", {}
  for run = 1, 2 do
    for rank = 0, 1 do
      paths[#paths + 1] = ("%s/run%d/rank_%d.json"):format(base, run, rank)
      digests.trace(rank, rank + 3 * run):write(paths[#paths])
    end
  end
  local function report(...)
    os.execute(("rm -rf '%s'/*/*_csvs '%s'/*/*.xlsx '%s'/*/*.html"):format(base, base, base))
    local _, errors = lib.ends_with(0, lib.run("trace", "report", "-b", base, "-f", "rank", ...))
    local found = digests.tree(base)
    for _, path in ipairs(paths) do found[path:sub(#base + 2)] = nil end
    return found, errors
  end
  report("-d", "--digests", kept)
  luaunit.assertFalse(file.exists(kept))
  local wanted, all = report(), report("-a", "--csv")
  luaunit.assertEquals(report("--digests", kept), wanted)
  luaunit.assertEquals(count(), 4)
  luaunit.assertEquals(report("-a", "--csv", "--digests", kept), all)
  garbage_instead_of_traces(paths, kept)
  luaunit.assertEquals({ report("--digests", kept) }, { wanted, "" })
  digests.one_line(2, "--digests requires -b", "trace", "report", base .. "/run1", "--out", x, "--digests",
    kept)
end

function TestDigestFolder.test_digests_of_trace_digest_are_read()
  local wanted = collectives(sweep)
  digests.make(0, sweep, "--out", kept)
  garbage_instead_of_traces(paths_of_sweep(), kept)
  local before = digests.tree(kept)
  luaunit.assertEquals({ collectives(sweep, "--digests", kept) }, { wanted, "" })
  luaunit.assertEquals({ collectives(kept) }, { wanted, "" })
  luaunit.assertEquals(digests.tree(kept), before)
end

function TestDigestFolder.test_contents_are_compared_on_request()
  local paths, beside = paths_of_sweep(), lib.work .. "/beside"
  os.execute(("cp -r '%s' '%s'"):format(sweep, beside))
  local old = collectives(sweep, "--digests", kept)
  digests.make(0, beside)
  for _, path in ipairs { paths[4], beside .. paths[4]:sub(#sweep + 1) } do
    digests.overwrite(path, (assert(file.read(path)):gsub('("dur": ?)30%.', "%131.")))
  end
  local wanted = collectives(sweep)
  luaunit.assertNotEquals(wanted, old)
  for name in pairs(digests.tree(kept)) do digests.renew(kept .. "/" .. name) end
  digests.renew(beside .. paths[4]:sub(#sweep + 1) .. ".digest")
  luaunit.assertEquals(collectives(sweep, "--digests", kept), old)
  luaunit.assertEquals({ collectives(beside, "--verify") }, { wanted, "" })
  local before = digests.tree(kept)
  luaunit.assertEquals({ collectives(sweep, "--digests", kept, "--verify") }, { wanted, "" })
  luaunit.assertEquals({ count(before) }, { 4, 1 })
  luaunit.assertEquals(collectives(sweep, "--digests", kept), wanted)
end

local function start()
  return assert(process.start { os.getenv("GENTABLES"), "trace", "collectives", sweep, "--out", x, "--csv",
    "--jobs", "1", "--digests", kept })
end

function TestDigestFolder.test_two_runs_at_once()
  local wanted = collectives(sweep)
  local both = { start(), start() }
  for _, one in ipairs(both) do luaunit.assertEquals(one:close(60), "exit code 0") end
  luaunit.assertEquals(digests.tree(x), wanted)
  luaunit.assertEquals(count(), 4)
  garbage_instead_of_traces(paths_of_sweep(), kept)
  luaunit.assertEquals(collectives(sweep, "--digests", kept), wanted)
end

function TestDigestFolder.test_a_killed_run_leaves_complete_digests()
  for rank = 2, 9 do digests.trace(rank, rank, { count = 200 }):write(lib.path("sweep", 256, 28, rank)) end
  local wanted = collectives(sweep)
  for _, signal in ipairs { 2, 9 } do
    os.execute(("rm -rf '%s' '%s'"):format(kept, x))
    local run = start()
    repeat until os.execute(("find '%s' -name '*.digest.*' 2>/dev/null | grep -q ."):format(kept))
    run:kill(signal)
    run:close(60)
    local complete = digests.tree(kept)
    luaunit.assertEquals(collectives(sweep, "--digests", kept), wanted)
    local after, same = digests.tree(kept), 0
    for name, text in pairs(complete) do
      local is_same = after[name] == text
      luaunit.assertTrue(is_same or signal == 9 and name:find("%.tmp$"), name)
      same = same + (is_same and 1 or 0)
    end
    luaunit.assertTrue(same > 0 and same < 12, "the kill was too late")
  end
end

return require "suites" { { "TestDigestFolder", TestDigestFolder } }
