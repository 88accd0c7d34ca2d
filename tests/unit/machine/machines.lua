-- machines.lua: the topology that hwloc finds, on synthetic machines, and the flat one without hwloc.
local json = require "codec.json"
local lib = require "unit.sweep.lib"
local lu = require "luaunit"
local machines = require "machine.machines"
local workers = require "core.workers"

local TestMachines = lib.with_folder(lib.scratch)

local has_hwloc = pcall(require, "core.topology")
local function needs_hwloc() lu.skipIf(not has_hwloc, "built without hwloc") end

local TWO_SOCKETS = "HWLOC_SYNTHETIC=pack:2 numa:2 l3:1(size=33554432) l2:2(size=1048576) l1d:1(size=32768)"
  .. " core:1 pu:2"

-- An ARM server: no names of models, no cores in /sys.
local PART = [[
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" gp_index="1" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3"
   nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1">
  <object type="NUMANode" os_index="0" gp_index="2" cpuset="0x3" complete_cpuset="0x3"
    nodeset="0x1" complete_nodeset="0x1" local_memory="1073741824"/>
  <object type="Package" os_index="0" gp_index="3" cpuset="0x3" complete_cpuset="0x3"
    nodeset="0x1" complete_nodeset="0x1">
   <info name="CPUPart" value="0xd0c"/>
   <object type="PU" os_index="0" gp_index="4" cpuset="0x1" complete_cpuset="0x1"
     nodeset="0x1" complete_nodeset="0x1"/>
   <object type="PU" os_index="1" gp_index="5" cpuset="0x2" complete_cpuset="0x2"
     nodeset="0x1" complete_nodeset="0x1"/>
  </object>
 </object>
</topology>
]]

-- The facts that a process finds in this environment. `before`: Lua that runs first. `launcher`: words before
-- the program.
function TestMachines:facts(environment, before, launcher)
  local script = self.folder .. "/facts.lua"
  lib.write(script, ([[
    local json, machines = require "codec.json", require "machine.machines"
    %s
    print(json.compact(machines.facts("Open MPI v4.1.4, package: x")))
  ]]):format(before or ""))
  local words = { lib.gentables, "lua", script }
  local ended, out, errors = lib.run(table.move(words, 1, #words, #(launcher or {}) + 1, launcher or {}),
    environment)
  if launcher and ended ~= "exit code 0" then return nil, errors end
  lu.assertEquals(ended, "exit code 0", errors)
  return assert(json.decode(out))
end

local function counts(packages, numa_nodes, cores, threads)
  return { packages = packages, numa_nodes = numa_nodes, cores = cores, threads = threads }
end

function TestMachines:test_a_machine_of_two_sockets()
  needs_hwloc()
  local facts = self:facts { TWO_SOCKETS }
  local all = counts(2, 4, 8, 16)
  lu.assertEquals(facts.topology, { machine = all, usable = all })
  lu.assertEquals(facts.cores, 8)
  lu.assertEquals(facts.caches, { L1d = "32K", L2 = "1024K", L3 = "32768K" })
  lu.assertEquals(facts.cpu, "unknown CPU") -- hwloc's synthetic machines have none
end

function TestMachines:test_a_part_number_stands_for_the_model_and_threads_for_cores()
  needs_hwloc()
  lib.write(self.folder .. "/part.xml", PART)
  local facts = self:facts { "HWLOC_XMLFILE=" .. self.folder .. "/part.xml" }
  lu.assertEquals(facts.cpu, "0xd0c")
  lu.assertEquals(facts.cores, 2)
  lu.assertEquals(facts.topology.machine, counts(1, 1, 2, 2))
end

-- HWLOC_THISSYSTEM gives the synthetic machine the affinities of this one.
function TestMachines:test_only_processors_of_the_affinity_are_usable()
  needs_hwloc()
  local facts = self:facts({ "HWLOC_SYNTHETIC=pack:2 [numa] core:2 pu:1", "HWLOC_THISSYSTEM=1" }, nil,
    { "taskset", "-c", "0" })
  if not facts then lu.skip("no taskset, or CPU 0 is not allowed") end
  lu.assertEquals(facts.topology, { machine = counts(2, 2, 4, 4), usable = counts(1, 1, 1, 1) })
  lu.assertEquals(facts.cores, 1)
end

function TestMachines:test_this_machine()
  needs_hwloc()
  local facts = self:facts()
  local topology = facts.topology
  lu.assertEquals(topology.usable.threads, workers.cores())
  lu.assertEquals(topology.usable.cores, facts.cores)
  lu.assertTrue(facts.cores >= 1 and facts.cores <= topology.machine.cores)
  lu.assertTrue(topology.machine.cores <= topology.machine.threads)
end

local WITHOUT_HWLOC = [[
local all = require
function require(name)
  if name == "core.topology" then error("module 'core.topology' not found", 0) end
  return all(name)
end
]]

function TestMachines:test_without_hwloc_the_machine_is_one_flat_node()
  local facts = self:facts({ TWO_SOCKETS }, WITHOUT_HWLOC)
  lu.assertEquals(facts.topology, "flat")
  lu.assertEquals(facts.cores, workers.cores())
  lu.assertEquals(facts.cpu, "unknown CPU")
  lu.assertEquals(facts.caches, {})
  local other = { memory_gib = facts.memory_gib + 1 }
  lu.assertFalse(machines.same(facts, setmetatable(other, { __index = facts })))
  lu.assertTrue(machines.same(facts, facts))
end

-- The message of a process that cannot read its machine, after the code `before`.
function TestMachines:fails(before)
  local script = self.folder .. "/facts.lua"
  lib.write(script, before .. '\nrequire("machine.machines").facts("Open MPI v4.1.4, package: x")')
  local _, errors = lib.ends(1, "", lib.run { lib.gentables, "lua", script })
  return errors
end

local function opening(path, code)
  return ([[
    local open = io.open
    function io.open(name, mode)
      if name == %q then return nil, name .. ": words of error %d", %d end
      return open(name, mode)
    end]]):format(path, code, code)
end

function TestMachines:test_a_file_that_cannot_be_opened_is_no_other_machine()
  local EMFILE, EACCES = 24, 13
  for _, path in ipairs { "/proc/meminfo", "/etc/os-release", "/proc/sys/kernel/osrelease" } do
    lu.assertEquals(self:fails(opening(path, EMFILE)), ("gentables: %s: words of error %d; the machine is "
      .. "unknown without it; run the command again\n"):format(path, EMFILE))
  end
  lu.assertEquals(self:facts(nil, opening("/etc/os-release", EACCES)).os, "unknown")
end

-- Code that replaces hwloc: it finds these numbers of cores, one after the other.
local function finding(numbers)
  return ([[
    local reading, cores = 0, { %s }
    package.loaded["core.topology"] = { read = function()
      reading = reading + 1
      return { caches = {}, usable = { cores = cores[reading] }, machine = {} }
    end }]]):format(numbers)
end

function TestMachines:test_two_readings_of_hwloc_have_to_be_equal()
  lu.assertEquals(self:facts(nil, finding "2, 2").cores, 2)
  lu.assertEquals(self:facts(nil, finding "1, 2, 2").cores, 2)
  lu.assertEquals(self:facts(nil, finding "2, 1, 3, 2").cores, 2)
  local errors = self:fails(finding "1, 2, 3, 4")
  lu.assertStrContains(errors, "gentables: hwloc finds another topology of this machine each time")
  errors = self:fails 'package.loaded["core.topology"] = { read = function() return nil, "no words" end }'
  lu.assertEquals(errors, "gentables: no words; the machine is unknown without it\n")
end

function TestMachines:test_the_topology_is_named_among_differences_and_is_no_identity()
  needs_hwloc()
  local facts = self:facts { TWO_SOCKETS }
  local one_node = self:facts { (TWO_SOCKETS:gsub("numa:2", "[numa] group:2")) }
  local earlier = self:facts { TWO_SOCKETS }
  earlier.topology = nil
  lu.assertTrue(machines.same(facts, one_node))
  lu.assertStrContains(machines.differences(facts, one_node), "topology (")
  lu.assertTrue(machines.same(earlier, facts))
  lu.assertEquals(machines.differences(earlier, facts), "")
end

function TestMachines.test_the_network_between_nodes_is_a_part_of_the_machine_where_it_is_known()
  local one_node = { cpu = "X", cores = 2, mpi = "Y" }
  local slow, fast = machines.over(one_node, "eth0, 100 Mbit/s"), machines.over(one_node, "eth0, 1000 Mbit/s")
  lu.assertFalse(machines.same(slow, fast))
  lu.assertFalse(machines.same(slow, machines.over(one_node, "ib0, 100 Mbit/s")))
  lu.assertEquals(machines.differences(slow, fast),
    "network (eth0, 100 Mbit/s, here eth0, 1000 Mbit/s)")
  for _, other in ipairs { one_node, machines.over(one_node, nil), machines.over(one_node, slow.fabric) } do
    lu.assertTrue(machines.same(slow, other))
    lu.assertTrue(machines.same(other, slow))
    lu.assertEquals(machines.differences(slow, other), "")
  end
  lu.assertNil(one_node.fabric)
end

return require "suites" { { "TestMachines", TestMachines } }
