-- provenance.lua: the machine, what its fingerprint covers and what not, and the file.
package.path = package.path .. ";" .. arg[0]:match("^(.*/)") .. "?.lua"
local lu = require "luaunit"
local lib = require "lib"
local provenance = require "provenance"

local TestProvenance = {}

local function machine(changes)
  local facts = { cpu = "A CPU", cores = 4, caches = { L1d = "32K", L2 = "1M" }, memory_gib = 16,
    os = "Debian", kernel = "6.1", mpi = "Open MPI 4.1.4" }
  for key, value in pairs(changes or {}) do facts[key] = value end
  return facts
end

local bench = { protocol = 1, hash = "abc", isa = "avx2", compiler = "gcc-12" }
local limits = { min_samples = 1, max_samples = 2, cell_us = 3, message_bytes = 4 }

local function fingerprint(changes, other_bench, other_limits)
  return provenance.fingerprint(machine(changes), other_bench or bench, other_limits or limits)
end

function TestProvenance.test_the_fingerprint_covers_what_changes_a_time()
  local same = fingerprint()
  local others = { { cpu = "B" }, { cores = 2 }, { caches = { L1d = "32K" } }, { mpi = "MPICH 4" } }
  for _, changes in ipairs(others) do
    lu.assertNotEquals(fingerprint(changes), same)
    lu.assertFalse(provenance.same_machine(machine(changes), machine()))
  end
  lu.assertNotEquals(fingerprint({}, { protocol = 1, hash = "abd", isa = "avx2", compiler = "gcc-12" }), same)
  lu.assertNotEquals(fingerprint({}, bench, { min_samples = 1, max_samples = 2, cell_us = 4 }), same)
end

function TestProvenance.test_the_fingerprint_leaves_out_what_does_not()
  lu.assertEquals(fingerprint { kernel = "6.2", os = "Fedora", memory_gib = 8 }, fingerprint())
  local larger = { min_samples = 1, max_samples = 2, cell_us = 3, message_bytes = 9 }
  lu.assertEquals(fingerprint({}, bench, larger), fingerprint())
end

function TestProvenance.test_this_machine_is_described()
  local facts = provenance.machine("Open MPI v4.1.4, package: someone@somewhere, ident: 4.1.4")
  lu.assertEquals(facts.mpi, "Open MPI 4.1.4")
  lu.assertTrue(facts.cores >= 1)
  lu.assertStrMatches(provenance.describe(facts), ".+, %d+ cores?, Open MPI 4.1.4")
end

function TestProvenance.test_the_hash_is_fnv_1a()
  lu.assertEquals(provenance.hash(""), "cbf29ce484222325")
  lu.assertEquals(provenance.hash("foobar"), "85944171f73967e8")
end

function TestProvenance.test_a_record_is_written_and_read_back()
  local folder = lib.scratch()
  local csv = folder .. "/benchmark.tp2.host.csv"
  local path = provenance.path_of(csv)
  lu.assertEquals(path, folder .. "/benchmark.tp2.host.json")
  local record = { world_size = 2, arch = "host", fingerprint = fingerprint(), machine = machine(),
    bench = bench, spec = { hash = "1" }, placement = "dedicated", date = "2026-01-01T00:00:00Z",
    no_time = {} }
  lu.assertTrue(provenance.write(csv, "rows", record))
  lu.assertEquals(provenance.read(path), record)
  lu.assertEquals(lib.read(csv), "rows")
  lu.assertTrue(provenance.describes(record, "rows"))
  lu.assertFalse(provenance.describes(record, "others"))
  lu.assertStrContains(lib.read(path), '"no_time": []')
  lib.clean(folder)
end

function TestProvenance.test_what_is_no_provenance_is_told_with_its_file()
  local path = os.tmpname()
  for _, text in ipairs { "{", "[]", "{}", '{"version": 2, "fingerprint": "x", "machine": {}}', "7",
    '{"version": 1, "fingerprint": "x", "machine": {"cpu": 1}}' } do
    lib.write(path, text)
    local record, message = provenance.read(path)
    lu.assertNil(record)
    lu.assertEquals(message:sub(1, #path + 1), path .. ":")
  end
  os.remove(path)
end

return lu.LuaUnit.new():runSuiteByInstances({ { "TestProvenance", TestProvenance } })
