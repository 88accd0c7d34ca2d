-- Rows of another machine in the folder of a sweep, or of another bench, launcher or limits: messages name
-- the facts that differ, and no rows of another machine stay.
local lu = require "luaunit"
local file = require "core.file"
local json = require "codec.json"
local lib = require "unit.sweep.lib"
local machines = require "machine.machines"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local small_spec, TestMachines = table.unpack((require "unit.sweep.lib_sweep"))

-- Makes the rows of this machine those of one with the same CPU, cores and MPI, but another cache, memory and
-- kernel. Returns it in words.
local function make_foreign(csv)
  local path = provenance.path_of(csv)
  local record = assert(provenance.read(path))
  record.machine.caches.L3, record.machine.memory_gib, record.machine.kernel = "7K", 3, "1.2.3"
  record.fingerprint = "another"
  lib.write(path, json.encode(record) .. "\n")
  return machines.describe(record.machine)
end

local function differences()
  local this = machines.facts("Open MPI v4.1.4")
  return ("GiB of memory (3, here %d), L3 cache (7K, here %s), kernel (1.2.3, here %s)"):format(
    this.memory_gib, this.caches.L3 or "none", this.kernel)
end

-- The folder of a sweep of TP 2, 3 and 4 with a search, all of another machine, and a spec without TP 3.
function TestMachines:leave_foreign_rows()
  lib.write(self.folder .. "/spec.lua", (small_spec:gsub("tp = { 2 }", "tp = { 2, 3, 4 }")))
  self:sweep_well()
  self.search = self.folder .. "/transport.tp2.host.csv"
  for _, from in ipairs { self.csv, self.json } do
    lib.write((from:gsub("benchmark", "transport")), lib.read(from))
  end
  self.words = make_foreign(self.csv)
  make_foreign(self.search)
  for _, tp in ipairs { 3, 4 } do make_foreign((self.csv:gsub("tp2", "tp" .. tp))) end
  lib.write(self.folder .. "/spec.lua", (small_spec:gsub("tp = { 2 }", "tp = { 2, 4 }")))
  self:requests()
end

function TestMachines:test_no_rows_of_another_machine_stay_and_messages_name_the_differences()
  self:leave_foreign_rows()
  local out = self:sweep_well()
  lu.assertStrContains(out, ("%s: replaces the rows of %s; this machine differs in %s\n"):format(self.csv,
    self.words, differences()))
  for _, path in ipairs { (self.csv:gsub("tp2", "tp3")), self.search } do
    lu.assertStrContains(out, ("removed %s: rows of %s, which differs in %s"):format(path, self.words,
      differences()))
    lu.assertFalse(file.exists(path))
    lu.assertFalse(file.exists(provenance.path_of(path)))
  end
  lu.assertEquals(#self:requests(), 16)
  for _, name in ipairs(assert(file.list(self.folder))) do
    local record = name:find("%.json$") and assert(provenance.read(self.folder .. "/" .. name))
    lu.assertTrue(not record or record.machine.caches.L3 ~= "7K", name)
  end
end

function TestMachines:test_a_sweep_of_some_tp_sizes_removes_nothing_and_names_the_rows_that_stay()
  self:leave_foreign_rows()
  local out = self:sweep_well({}, "--tp", "2")
  for _, path in ipairs { (self.csv:gsub("tp2", "tp3")), (self.csv:gsub("tp2", "tp4")), self.search } do
    lu.assertStrContains(out, ("%s: stays, with rows of %s, which differs in %s; a sweep without --tp ")
      :format(path, self.words, differences()))
    lu.assertTrue(file.exists(path))
  end
  local err = self:generates(2, "tp4.host.json: is of another machine (")
  lu.assertStrContains(err, "L3 cache (7K, there ")
end

function TestMachines:test_rows_of_this_machine_merged_and_imported_rows_stay()
  self:leave_foreign_rows()
  local record = assert(provenance.read(self.json))
  record.machine, record.bench = { machines = json.array { "A", "B" } }, { merged = json.array { "x" } }
  lib.write((self.json:gsub("tp2", "tp3")), json.encode(record))
  local out = self:sweep_well()
  lu.assertTrue(file.exists((self.csv:gsub("tp2", "tp3"))))
  lu.assertStrContains(out, "tp3.host.csv: stays; tables do not use it, because the spec has no TP 3\n")
end

function TestMachines:test_a_machine_with_another_mpi_is_another_one()
  self:sweep_well({ LIBRARY = "Open MPI v4.0.3, package: x" })
  lu.assertStrContains(self:sweep_well(), "MPI (Open MPI 4.0.3, here ")
  lu.assertEquals(#rows.records(self.csv), 20)
end

function TestMachines:test_changed_limits_and_launchers_are_named()
  self:sweep_well()
  lib.write(self.folder .. "/spec.lua", (small_spec:gsub("launches = 1", "launches = 1, min_samples = 7")))
  lu.assertStrContains(self:sweep_well(), "measures again: changed: the spec's min_samples (20, now 7)\n")
  local command = lib.sweep_command(self.folder)
  for i, word in ipairs(command) do command[i] = word:gsub("^env RANKS", "env OTHER=1 RANKS") end
  local out = lib.ends(0, "", lib.run(command))
  lu.assertStrContains(out, "measures again: changed: the launcher\n")
end

return require "suites" { { "TestMachines", TestMachines } }
