-- Digests and traces that cannot be used: one clear line each, and the others are used.
local digests = require "unit.trace.digests.lib_digests"
local file = require "core.file"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"

local TestBadDigests = {}

local run, out = lib.work .. "/run", digests.out

function TestBadDigests.setUp()
  lib.clean()
  for rank = 0, 1 do digests.trace(rank, rank):write(("%s/rank%d/trace.json"):format(run, rank)) end
end

local function collectives(input)
  return "trace", "collectives", input or out, "--out", lib.work .. "/x", "--csv"
end

local digest = out .. "/rank1/trace.json.digest"

-- Runs trace collectives with this text as the digest of rank 1.
local function with_digest(text, part)
  assert(file.write(digest, text))
  local errors = lib.reports(1, digest .. ": " .. part, lib.run(collectives()))
  luaunit.assertStrContains(errors, "rank1/trace.json.digest: is not in this report: " .. part)
  luaunit.assertNil(errors:find("traceback", 1, true))
  luaunit.assertEquals(#lib.csv(lib.work .. "/x/collective_csvs/nccl_long.csv"), 24)
end

function TestBadDigests.test_digests_that_cannot_be_read()
  digests.make(0, run, "--out", out)
  local whole = assert(file.read(digest))
  with_digest((whole:gsub("^(gentables digest %d+ of )[^\n]*", "%10.0.1")),
    "is a digest of another version of gentables (0.0.1, format ")
  local version = whole:match("^gentables digest %d+ of ([^\n]*)")
  with_digest((whole:gsub("^gentables digest %d+", "gentables digest 1")),
    ("is a digest of another version of gentables (%s, format 1; this is %s, format "):format(version,
      version))
  with_digest("", "is not a digest of gentables trace digest")
  with_digest("{}", "is not a digest of gentables trace digest")
  for _, size in ipairs { 40, 60, 300, #whole // 2, #whole - 1 } do
    with_digest(whole:sub(1, size), "is truncated; make it again with gentables trace digest")
  end
  with_digest(whole .. "x", "is truncated")
  local at = assert(whole:find("[0, 1]", 1, true)) -- ranks of a collective
  with_digest(whole:sub(1, at - 1) .. "(" .. whole:sub(at + 1),
    "is damaged in collectives; make it again with gentables trace digest --verify")
  -- With its trace it is made again, or the trace is read.
  luaunit.assertEquals({ digests.make(0, run, "--out", out, "--verify") }, { 1, 1, "" }, "a damaged part")
  assert(file.write(run .. "/rank1/trace.json.digest", whole:sub(1, 300)))
  luaunit.assertEquals(select(2, lib.ends_with(0, lib.run(collectives(run)))), "")
end

function TestBadDigests.test_a_damaged_digest_beside_its_trace()
  local traces, x = lib.work .. "/traces", lib.work .. "/x"
  for rank = 0, 1 do digests.trace(rank, rank):write(("%s/rank_%d.json"):format(traces, rank)) end
  local function results(run_one)
    os.execute(("rm -rf '%s'"):format(x))
    run_one("trace", "collectives", traces, "--out", x, "--csv")
    run_one("trace", "timestamps", traces, "--out", x, "--all")
    run_one("trace", "report", "-b", traces, "-f", "rank", "-o", x .. "/report.xlsx", "--csv")
    run_one("trace", "pipeline", traces, "--out", x, "--without", "reports,merge,plots", "--csv")
    os.execute(("rm -r '%s/tracelens_analysis/.gentables'"):format(x))
    return digests.tree(x)
  end
  local wanted = results(function(...) lib.ends_with(0, lib.run(...)) end)
  digests.make(0, traces)
  local beside = traces .. "/rank_1.json.digest"
  local whole = assert(file.read(beside))
  assert(file.write(beside, (whole:gsub("ncclDevKernel", "ncclDevKernal"):gsub("nvjet", "nvjat"))))
  luaunit.assertEquals(results(function(...)
    local errors = lib.reports(0, beside .. ": is damaged in ", lib.run(...))
    luaunit.assertStrContains(errors, "; the trace is read")
    luaunit.assertEquals(select(2, errors:gsub("\n", "")), 1, errors)
  end), wanted)
end

function TestBadDigests.test_a_broken_trace_costs_itself_only()
  local broken = run .. "/rank1/trace.json"
  assert(file.write(broken, assert(file.read(broken)):sub(1, 900)))
  digests.trace(2, 2):write(run .. "/rank2/trace.json")
  local made, kept, errors = digests.make(1, run, "--out", out)
  luaunit.assertEquals({ made, kept }, { 2, 0 })
  luaunit.assertStrContains(errors, broken)
  luaunit.assertStrContains(errors, "1 failed, the others are written")
  luaunit.assertFalse(file.exists(digest))
  lib.reports(0, "rank 1 of 2 is missing", lib.run(collectives()))
end

function TestBadDigests.test_ranks_that_are_there_twice()
  digests.make(0, run, "--out", out)
  os.execute(("cp '%s' '%s/rank1/other.json.digest'"):format(digest, out))
  lib.reports(2, ("%s/rank1/other.json.digest and %s are both of rank 1; choose one of them with --trace-")
    :format(out, digest), lib.run(collectives()))
  lib.ends_with(0, lib.run("trace", "collectives", out, "--out", lib.work .. "/x", "--trace-name",
    "trace.json"))
  -- A trace and its digest are one.
  digests.make(0, run)
  local paths = {}
  for rank = 0, 1 do
    local path = ("%s/rank%d/trace.json"):format(run, rank)
    table.move({ path, path .. ".digest" }, 1, 2, #paths + 1, paths)
  end
  luaunit.assertEquals(select(2, lib.ends_with(0, lib.run("trace", "collectives", "--out", lib.work .. "/x",
    table.unpack(paths)))), "")
end

function TestBadDigests.test_traces_of_different_steps()
  for rank, step in ipairs { 10, 8, 10, 10 } do
    digests.trace(rank - 1, rank, { world_size = 4, first_step = step, last_step = step + rank // 4 })
      :write(("%s/rank%d/trace.json"):format(run, rank - 1))
  end
  digests.make(0, run, "--out", out)
  for _, input in ipairs { run, out } do
    local errors = lib.reports(0, "rank1/trace.json: has steps 8, the others have 10; left out of",
      lib.run(collectives(input)))
    luaunit.assertStrContains(errors, "rank3/trace.json: has steps 10-11, the others have 10; --steps 10 ")
  end
end

function TestBadDigests.test_no_digest_that_can_be_read()
  digests.make(0, run, "--out", out)
  for rank = 0, 1 do assert(file.write(("%s/rank%d/trace.json.digest"):format(out, rank), "")) end
  local errors = lib.reports(2, "is not a digest of gentables trace digest", lib.run(collectives()))
  luaunit.assertStrContains(errors, "nothing is written")
  luaunit.assertNil(errors:find("no collective", 1, true), errors)
end

function TestBadDigests.test_a_folder_that_cannot_be_made()
  local place = lib.work .. "/file"
  assert(file.write(place, ""))
  digests.one_line(2, place .. ": ", "trace", "digest", run, "--out", place)
  digests.one_line(2, "; give another --out", "trace", "digest", run, "--out", place .. "/below")
end

function TestBadDigests.test_folders_of_other_traces()
  digests.trace(0, 5):write(lib.work .. "/other/rank0/trace.json")
  digests.one_line(2, ("have the same digest, %s/rank0/trace.json.digest; give one run at a time"):format(
    out), "trace", "digest", run .. "/rank0/trace.json", lib.work .. "/other/rank0/trace.json", "--out", out)
  digests.make(0, run, "--out", out)
  digests.one_line(2, ("is the digest of %s/rank0/trace.json; give another --out for"):format(run), "trace",
    "digest", lib.work .. "/other/rank0/trace.json", "--out", out)
  -- The old trace is gone, or has moved.
  os.execute(("mv '%s' '%s/moved'"):format(run, lib.work))
  luaunit.assertEquals({ digests.make(0, lib.work .. "/moved", "--out", out) }, { 0, 2, "" })
  luaunit.assertEquals({ digests.make(0, lib.work .. "/other", "--out", out) }, { 1, 0, "" })
end

function TestBadDigests.test_commands_that_need_traces()
  digests.make(0, run, "--out", out)
  local one = out .. "/rank0/trace.json.digest"
  for part, words in pairs {
    ["reports of single ranks need the traces; -b -e digest"] = { "trace", "report", out, "--out", "x" },
    ["trace merge needs the traces, with all events"] = { "trace", "merge", out, "-o", "x" },
    ["add --without reports,merge"] = { "trace", "pipeline", out },
    ["with the data for results over ranks; give the trace"] = { "trace", "compare", one, one, "--out", "x" },
    ["trace digest takes traces"] = { "trace", "digest", out },
    ["replay needs the trace"] = { "replay", out, "--out", "x" },
  } do
    digests.one_line(2, one .. ": is a digest", table.unpack(words))
    digests.one_line(2, part, table.unpack(words))
  end
end

return require "suites" { { "TestBadDigests", TestBadDigests } }
