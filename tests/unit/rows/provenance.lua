-- provenance.lua: the machine, the facts that its fingerprint covers, and the file.
local lu = require "luaunit"
local json = require "codec.json"
local lib = require "unit.sweep.lib"
local file = require "core.file"
local machines = require "machine.machines"
local provenance = require "rows.provenance"

local TestProvenance = {}

local function machine(changes)
  local facts = { cpu = "A CPU", cores = 4, caches = { L1d = "32K", L2 = "1M" }, memory_gib = 16,
    os = "Debian", mpi = "Open MPI 4.1.4" }
  for key, value in pairs(changes or {}) do facts[key] = value end
  return facts
end

local bench = { protocol = 1, hash = "abc", isa = "avx2", compiler = "gcc-12" }
local limits = { min_samples = 1, max_samples = 2, cell_us = 3, message_bytes = 4 }

local function fingerprint(changes, other_bench, other_limits)
  return provenance.fingerprint(machine(changes), other_bench or bench, other_limits or limits)
end

function TestProvenance.test_the_fingerprint_covers_facts_that_change_times()
  local same = fingerprint()
  local others = { { cpu = "B" }, { cores = 2 }, { caches = { L1d = "32K" } }, { mpi = "MPICH 4" } }
  for _, changes in ipairs(others) do
    lu.assertNotEquals(fingerprint(changes), same)
    lu.assertFalse(machines.same(machine(changes), machine()))
  end
  lu.assertNotEquals(fingerprint({}, { protocol = 1, hash = "abd", isa = "avx2", compiler = "gcc-12" }), same)
  lu.assertNotEquals(fingerprint({}, bench, { min_samples = 1, max_samples = 2, cell_us = 4 }), same)
end

function TestProvenance.test_the_fingerprint_covers_a_launcher_that_was_given()
  local function with(launcher) return provenance.fingerprint(machine(), bench, limits, launcher) end
  lu.assertNotEquals(with("srun -n {ranks}"), with(nil))
  lu.assertNotEquals(with("srun -n {ranks}"), with("srun --exclusive -n {ranks}"))
end

function TestProvenance.test_the_fingerprint_leaves_out_other_facts()
  lu.assertEquals(fingerprint { os = "Fedora", memory_gib = 8 }, fingerprint())
  local larger = { min_samples = 1, max_samples = 2, cell_us = 3, message_bytes = 9 }
  lu.assertEquals(fingerprint({}, bench, larger), fingerprint())
end

function TestProvenance.test_this_machine_is_described()
  local facts = machines.facts("Open MPI v4.1.4, package: someone@somewhere, ident: 4.1.4")
  lu.assertEquals(facts.mpi, "Open MPI 4.1.4")
  lu.assertTrue(facts.cores >= 1)
  lu.assertStrMatches(machines.describe(facts), ".+, %d+ cores?, Open MPI 4.1.4")
end

function TestProvenance.test_the_hash_is_fnv_1a()
  lu.assertEquals(provenance.hash(""), "cbf29ce484222325")
  lu.assertEquals(provenance.hash("foobar"), "85944171f73967e8")
end

local function a_record()
  return { version = 1, world_size = 2, arch = "host", fingerprint = fingerprint(), machine = machine(),
    bench = bench, rows = { hash = "1" }, spec = { hash = "1" }, placement = "dedicated",
    date = "2026-01-01T00:00:00Z", no_time = { { strategy = "MPI", dtype = "bfloat16", op = "allreduce",
      mode = "eager", fusion = "NONE", hidden_size = 64, num_tokens = 1, reason = "too large" } } }
end

function TestProvenance.test_a_record_is_written_and_read_back()
  local folder = lib.scratch()
  local csv = folder .. "/benchmark.tp2.host.csv"
  local path = provenance.path_of(csv)
  lu.assertEquals(path, folder .. "/benchmark.tp2.host.json")
  local record = a_record()
  record.no_time = {}
  lu.assertTrue(provenance.write(csv, "rows", record))
  lu.assertEquals(provenance.read(path), record)
  lu.assertEquals(lib.read(csv), "rows")
  lu.assertTrue(provenance.describes(record, "rows"))
  lu.assertFalse(provenance.describes(record, "others"))
  lu.assertStrContains(lib.read(path), '"no_time": []')
  lib.clean(folder)
end

function TestProvenance.test_invalid_provenance_is_reported_with_its_file()
  local path = os.tmpname()
  for _, text in ipairs { "{", "[]", "{}", '{"version": 2, "fingerprint": "x", "machine": {}}', "7",
    '{"version": null}' } do
    lib.write(path, text)
    local record, message = provenance.read(path)
    lu.assertNil(record)
    lu.assertEquals(message:sub(1, #path + 1), path .. ":")
  end
  os.remove(path)
end

-- The message about a record that is read, without its file; "" for none.
local function message_of(record)
  local path = os.tmpname()
  lib.write(path, json.encode(record))
  local read, message = provenance.read(path)
  os.remove(path)
  return read and "" or message:sub(#path + 3)
end

-- Every required field, with a value of another type and left out.
function TestProvenance.test_an_invalid_field_is_reported_by_name()
  lu.assertEquals(message_of(a_record()), "")
  for place, names in pairs { [""] = { "fingerprint", "machine", "bench", "rows", "no_time" },
    ["machine."] = { "cpu", "cores", "mpi" }, ["rows."] = { "hash" },
    ["no_time[0]."] = { "strategy", "dtype", "op", "mode", "fusion", "hidden_size", "num_tokens",
      "reason" } } do
    for _, name in ipairs(names) do
      for _, value in ipairs { json.null, 1.5, false } do
        local record = a_record()
        local of = place == "" and record or place == "no_time[0]." and record.no_time[1]
          or record[place:sub(1, -2)]
        of[name] = value or nil
        local field = (place .. name):gsub("%p", "%%%0")
        lu.assertStrMatches(message_of(record), field .. " is not [%w ]+; sweep %-%-fresh .*")
      end
    end
  end
end

-- a_record() with this value at a path of one or two names.
local function with(path, value)
  local record = json.decode(json.encode(a_record()))
  local first, name = path:match("^(.*)%.(.*)$")
  if first then record[first] = record[first] or {} end
  local parent = first and record[first] or record
  parent[name or path] = value
  return record
end

local parts = { packages = 1, numa_nodes = 1, cores = 2, threads = 4 }
local few_parts = { packages = 1, numa_nodes = 1, threads = 4 }

-- { path, value, the message }
local wrong = {
  { "spec", "text", "spec is not an object" },
  { "spec.keys", { limits = 7 }, "spec.keys.limits is not an object" },
  { "spec.keys", { limits = { cell_us = {} } }, "spec.keys.limits.cell_us is not a number" },
  { "arch", { 1 }, "arch is not text" },
  { "machine", { 1 }, "machine is not an object" },
  { "machine.gpu", 7, "machine.gpu is not text" },
  { "machine.caches", { L2 = { 1 } }, "machine.caches.L2 is not text" },
  { "machine.topology", "round", "machine.topology is not an object" },
  { "machine.topology", { usable = parts }, "machine.topology.machine is not an object" },
  { "machine.topology", { machine = few_parts, usable = parts },
    "machine.topology.machine.cores is not a whole number" },
  { "bench.compiler", { "gcc" }, "bench.compiler is not text" },
  { "bench.merged", true, "bench.merged is not a list" },
  { "bench.merged", { 7 }, "bench.merged[0] is not text" },
  { "launch", { "srun" }, "launch is not an object" },
  { "launch.launcher", 7, "launch.launcher is not text" },
  { "launches", "2", "launches is not a whole number" },
  { "roundtrip_us", { 1 }, "roundtrip_us is not a number" },
  { "refine", { seconds = 1, settles = 1 }, "refine.uncertain is not a whole number" },
  { "plugins.candidates", 7, "plugins.candidates is not a list" },
  { "no_time", { "text" }, "no_time[0] is not an object" },
  { "no_time", { of = "text" }, "no_time is not a list" },
  { "disturbed", 7, "disturbed is not a list" },
}

function TestProvenance.test_invalid_optional_fields_and_invalid_parts_are_reported_by_name()
  for _, case in ipairs(wrong) do
    local path, value, message = table.unpack(case)
    lu.assertEquals(message_of(with(path, value)), message .. "; sweep --fresh replaces it")
  end
end

function TestProvenance.test_facts_of_a_machine_are_optional_in_imported_and_merged_rows()
  local record = a_record()
  record.bench, record.machine = { imported = "osu" }, {}
  lu.assertEquals(message_of(record), "")
  record.machine = { caches = 7 }
  lu.assertStrContains(message_of(record), "machine.caches is not an object")
  record.bench, record.machine = { merged = { "f" } }, { machines = { "A", {} } }
  lu.assertStrContains(message_of(record), "machine.machines[1] is not text")
end

function TestProvenance.test_topologies_are_valid()
  for _, topology in ipairs { "flat", { machine = parts, usable = parts } } do
    lu.assertEquals(message_of(with("machine.topology", topology)), "")
  end
end

function TestProvenance.test_a_refinement_has_only_its_own_fields()
  local refine = { seconds = 2, settles = 1, uncertain = 3, other = "text" }
  lu.assertEquals(provenance.refinement { { refine = refine }, {}, { refine = refine } },
    { seconds = 4, settles = 2, uncertain = 6, measures = 0 })
end

local function kind_of(path)
  local kind = file.status(path)
  return kind
end

-- A folder stands in the place of one of the two files, so that it cannot be written.
function TestProvenance.test_rows_never_stand_without_their_provenance()
  for _, blocked in ipairs { "csv", "json" } do
    local folder = lib.scratch()
    local csv = folder .. "/benchmark.tp2.host.csv"
    local paths = { csv = csv, json = provenance.path_of(csv) }
    assert(file.make_folder(paths[blocked]))
    lu.assertNil((provenance.write(csv, "rows", a_record())))
    lu.assertEquals(kind_of(paths.csv), blocked == "csv" and "folder" or nil)
    lu.assertEquals(kind_of(paths.json), blocked == "json" and "folder" or nil)
    lib.clean(folder)
  end
end

return require "suites" { { "TestProvenance", TestProvenance } }
