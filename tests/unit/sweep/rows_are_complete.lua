-- Rows of a sweep are complete by themselves: the spec travels with them, and `generate` needs no spec.lua.
local lu = require "luaunit"
local file = require "core.file"
local json = require "codec.json"
local lib = require "unit.sweep.lib"
local provenance = require "rows.provenance"

local TestComplete = {}

-- Of 48 cells of TP 2 the sweep measures ten; TP 4 is not swept. A table takes the choice at the corner.
local SPEC = [[
return { arch = "host", tp = { 2, 4 }, fusions = { "NONE", "RESIDUAL_RMS_NORM" },
  hidden_sizes = { 1024, 2048, 4096, 8192 }, num_tokens = { 1, 4, 16, 64, 256, 1024 },
  strategies = { "MPI", "ONESHOT", "TWOSHOT" },
  limits = { launches = 2, message_bytes = 8388608 }, choice = { at = "corner", workload = "shapes.csv" } }
]]
local WORKLOAD = "tokens,hidden_size,weight\n16,2048,1\n64,4096,3\n"

-- Sweeps what may change a choice, at TP 2.
function TestComplete:setUp()
  self.folder = lib.scratch()
  self.rows = self.folder .. "/rows"
  self.csv = self.rows .. "/benchmark.tp2.host.csv"
  self.json = self.rows .. "/benchmark.tp2.host.json"
  lib.write(self.folder .. "/spec.lua", SPEC)
  lib.write(self.folder .. "/shapes.csv", WORKLOAD)
  lu.assertStrContains(self:sweep_by_spec("--tp", "2"), "unlikely to change a choice")
end

function TestComplete:tearDown() lib.clean(self.folder) end

-- Sweeps by the spec that is not beside the rows. Returns stdout.
function TestComplete:sweep_by_spec(...)
  return (lib.ends(0, "", lib.sweep_by(nil, self.rows, nil, self.folder .. "/spec.lua", ...)))
end

-- Makes the tables, with this exit code and a part of stderr. Returns the folder and stderr.
function TestComplete:generate(name, code, part)
  local out = self.folder .. "/" .. name
  local _, err = lib.ends(code or 0, part or "",
    lib.run { lib.gentables, "generate", "--data-dir", self.rows, "--arch", "host", "--out", out })
  return out, err
end

local function have_same_files(left, right)
  local names = assert(file.list(left))
  lu.assertItemsEquals(assert(file.list(right)), names)
  lu.assertTrue(#names >= 5)
  for _, name in ipairs(names) do
    lu.assertEquals(lib.read(left .. "/" .. name), lib.read(right .. "/" .. name), name)
  end
end

function TestComplete:test_a_table_is_the_same_with_and_without_the_spec_beside_the_rows()
  local without, err = self:generate "without"
  lu.assertEquals(err, "")
  lib.write(self.rows .. "/spec.lua", SPEC)
  lib.write(self.rows .. "/shapes.csv", WORKLOAD)
  local with
  with, err = self:generate "with"
  lu.assertEquals(err, "")
  have_same_files(without, with)
  local text = lib.read(without .. "/table.csv")
  local _, derived = text:gsub(",derived\n", "")
  local _, unmeasured = text:gsub("unmeasured", "")
  lu.assertEquals({ derived, unmeasured }, { 24, 2 + 48 })
  lu.assertStrContains(lib.read(without .. "/report.md"), "2 shapes of shapes.csv")
end

function TestComplete:test_a_spec_beside_the_rows_holds_and_the_keys_in_which_it_differs_are_printed()
  lib.write(self.rows .. "/spec.lua", (SPEC:gsub("64, ", ""):gsub("{ 2, 4 }", "{ 2 }")))
  local out, err = self:generate "out"
  lu.assertEquals(err, ("gentables: %s/spec.lua: is used; the sweep of benchmark.tp2.host.csv had another "
    .. "spec, which differs in num_tokens\n"):format(self.rows))
  lu.assertNotStrContains(lib.read(out .. "/table.csv"), ",1024,64,")
end

function TestComplete:test_merged_rows_keep_the_spec_that_their_sweeps_share()
  local before = self:generate "before"
  local merged = self.folder .. "/merged"
  lib.ends(0, "", lib.run { lib.gentables, "merge", self.csv, "--out", merged })
  self.rows = merged
  have_same_files(before, (self:generate "after"))
end

-- A spec.lua that chooses what formats hold replaces only that.
function TestComplete:test_a_spec_with_a_table_alone_keeps_the_recorded_grid()
  local without = self:generate "without"
  lib.write(self.rows .. "/spec.lua", 'return { table = { dtype = "bfloat16" } }')
  have_same_files(without, (self:generate "with"))
end

function TestComplete:test_a_recorded_spec_that_is_none_is_rejected_with_the_file_and_the_key()
  local record = provenance.read(self.json)
  record.spec.keys.num_tokens = { 0 }
  lib.write(self.json, json.encode(record))
  self:generate("unused", 2, self.json .. ":1: num_tokens has 0; valid are whole numbers from 1 to ")
end

-- Files of an earlier version have only the hash of the spec, and the workload may change. A sweep records
-- both, and measures nothing.
function TestComplete:test_the_next_sweep_adds_the_spec_to_rows_of_an_earlier_version()
  lib.write(self.folder .. "/shapes.csv", WORKLOAD .. "256,1024,9\n")
  local function sweep_again() lu.assertStrContains(self:sweep_by_spec("--tp", "2"), "up to date") end
  sweep_again()
  local new = lib.read(self.json)
  lu.assertStrContains(new, "256,1024,9")
  local record = provenance.read(self.json)
  record.spec.keys = nil
  lib.write(self.json, json.encode(record) .. "\n")
  lu.assertNotEquals(lib.read(self.json), new)
  sweep_again()
  lu.assertEquals(lib.read(self.json), new)
end

-- The specs of files of two TP sizes may differ: each file has its own grid.
function TestComplete:test_each_file_of_rows_has_the_grid_of_its_own_spec()
  lib.write(self.folder .. "/spec.lua", (SPEC:gsub("tp = { 2, 4 }", "tp = { 4 }"):gsub("256, 1024", "512")))
  self:sweep_by_spec "--exhaustive"
  local text = lib.read(self:generate "out" .. "/table.csv")
  lu.assertStrContains(text, "host,2,NONE,bfloat16,allreduce,eager,1024,256,")
  lu.assertNotStrContains(text, "host,2,NONE,bfloat16,allreduce,eager,1024,512,")
  lu.assertStrContains(text, "host,4,NONE,bfloat16,allreduce,eager,1024,512,")
  lu.assertNotStrContains(text, "host,4,NONE,bfloat16,allreduce,eager,1024,256,")
end

return require "suites" { { "TestComplete", TestComplete } }
