-- --digests DIR with digests, folders and traces that cannot be used: the results stay those of the traces.
local digest_making = require "trace.digests.digest_making"
local digest_parts = require "trace.digests.digest_parts"
local digests = require "unit.trace.digests.lib_digests"
local file = require "core.file"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"
local trace_digest = require "trace.runs.trace_digest"
local trace_source = require "trace.runs.trace_source"

local TestBadDigestFolder = {}

local run, kept, x = lib.work .. "/run", lib.work .. "/kept", lib.work .. "/x"

local function path_of(rank) return ("%s/rank%d/trace.json"):format(run, rank) end

function TestBadDigestFolder.setUp()
  lib.clean()
  for rank = 0, 1 do digests.trace(rank, rank):write(path_of(rank)) end
end

local function collectives(code, ...)
  os.execute(("rm -rf '%s'"):format(x))
  local _, errors = lib.ends_with(code, lib.run("trace", "collectives", run, "--out", x, "--csv", ...))
  return digests.tree(x), errors
end

-- The paths of the digests, sorted.
local function paths()
  local found = {}
  for _, name in ipairs(assert(file.list(kept))) do found[#found + 1] = kept .. "/" .. name end
  table.sort(found)
  return found
end

function TestBadDigestFolder.test_digests_that_cannot_be_used_are_made_again()
  local wanted = collectives(0, "--digests", kept)
  local path = paths()[1]
  local function expect_whole()
    for _, one in ipairs(paths()) do luaunit.assertTrue(assert(trace_digest.open(one)):is_whole()) end
  end
  local text = assert(file.read(path))
  local texts = { "", "{}", text .. "x", (text:gsub("^(gentables digest %d+ of )[^\n]*", "%10.0.1")),
    (text:gsub("^gentables digest %d+", "gentables digest 1")) }
  for _, size in ipairs { 40, 60, 300, #text // 2, #text - 1 } do texts[#texts + 1] = text:sub(1, size) end
  for _, bad in ipairs(texts) do
    assert(file.write(path, bad))
    luaunit.assertEquals({ collectives(0, "--digests", kept) }, { wanted, "" })
    expect_whole()
  end
  -- Damage in a part shows when the part is read.
  for _, one in ipairs(paths()) do
    assert(file.write(one, (assert(file.read(one)):gsub("ncclDevKernel", "ncclDevKernal"))))
  end
  local found, errors = collectives(0, "--digests", kept)
  luaunit.assertEquals(found, wanted)
  luaunit.assertStrMatches(errors, "[^\n]*/kept/trace%.json%.digest%.%x+ %(and 1 more%): is damaged in "
    .. "collectives; the trace is read\n")
  expect_whole()
end

function TestBadDigestFolder.test_digests_that_cannot_be_written()
  local wanted = collectives(0, "--digests", kept)
  for _, path in ipairs(paths()) do
    assert(os.remove(path))
    assert(file.make_folder(path))
  end
  for _ = 1, 2 do
    local found, errors = collectives(0, "--digests", kept)
    luaunit.assertEquals(found, wanted)
    luaunit.assertStrContains(errors, path_of(0)
      .. " (and 1 more): its digest is not kept: cannot be written: Is a directory")
    luaunit.assertEquals(select(2, errors:gsub("\n", "")), 1, errors)
  end
  local errors = lib.reports(0, ": its digest is not kept: ", lib.run("trace", "pipeline", run, "--out", x,
    "--csv", "--without", "reports,merge,plots", "--digests", kept))
  luaunit.assertEquals(select(2, errors:gsub("\n", "")), 1, errors)
end

-- Another run makes the digest again, or the folder is removed, after a digest was opened.
function TestBadDigestFolder.test_digests_that_others_replace()
  collectives(0, "--digests", kept)
  local path = paths()[1]
  local part = trace_source.info_part
  local opened, gone = assert(trace_digest.open(path)), assert(trace_digest.open(path))
  local wanted = opened:get(part)
  for _ = 1, 10 do
    digests.renew(path) -- with parts in any order
    luaunit.assertEquals(opened:get(part), wanted)
    luaunit.assertTrue(opened:is_whole())
  end
  assert(os.remove(path))
  luaunit.assertFalse(gone:is_whole())
  luaunit.assertStrContains(gone.damage, ": cannot be read again for ")
end

function TestBadDigestFolder.test_a_folder_that_cannot_be_made()
  os.execute(("mv '%s' '%s/trace1.json'"):format(path_of(0), run))
  assert(file.write(kept, ""))
  for _, words in ipairs { { "collectives", run, "--out", x }, { "pipeline", run, "--out", x },
    { "report", "-b", run, "-p", "trace", "-f", "trace" } } do
    digests.one_line(2, "/kept: is not a folder; give another --digests", "trace", words[1], "--digests",
      kept .. "/below", table.unpack(words, 2))
  end
end

function TestBadDigestFolder.test_a_folder_of_digests_in_place_of_traces()
  collectives(0, "--digests", kept)
  local wanted = "/kept: is a folder of --digests, which is given beside its traces; gentables trace digest "
  digests.one_line(2, wanted, "trace", "collectives", kept, "--out", x)
  digests.one_line(2, wanted, "trace", "gemm", kept, "--out", x)
  digests.one_line(2, wanted, "trace", "report", "-b", kept, "-e", "digest", "--csv")
end

function TestBadDigestFolder.test_a_broken_trace_costs_itself_only()
  digests.trace(2, 2):write(path_of(2))
  local text = assert(file.read(path_of(1)))
  assert(file.write(path_of(1), text:sub(1, 900)))
  local wanted, said = collectives(1)
  luaunit.assertStrContains(said, path_of(1))
  for _ = 1, 2 do
    luaunit.assertEquals({ collectives(1, "--digests", kept) }, { wanted, said })
    luaunit.assertEquals(#paths(), 2)
  end
  assert(file.write(path_of(1), text))
  wanted = collectives(0)
  luaunit.assertEquals({ collectives(0, "--digests", kept) }, { wanted, "" })
  luaunit.assertEquals(#paths(), 3)
end

function TestBadDigestFolder.test_a_trace_that_changes_while_it_is_read()
  local of = digest_parts.of
  function digest_parts.of(...)
    digests.trace(0, 7):write(path_of(0))
    return of(...)
  end
  local one, values, reason = digest_making.open(path_of(0), lib.work .. "/digest", {})
  digest_parts.of = of
  luaunit.assertNotNil(one.trace)
  luaunit.assertNil(values)
  luaunit.assertStrContains(reason, "has changed while it was read")
  luaunit.assertFalse(file.exists(lib.work .. "/digest"))
end

return require "suites" { { "TestBadDigestFolder", TestBadDigestFolder } }
