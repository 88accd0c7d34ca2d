-- The machine of rows: its facts, whether two machines are the same for rows, and a short text about one.
local fail = require "base.fail"
local json = require "codec.json"
local optional = require "base.optional"
local quantities = require "base.quantities"
local sorted_keys = require("base.ordering").sorted_keys
local workers = require "core.workers"

local machines = {}

local ENOENT, EACCES = 2, 13
local MOST_READINGS = 4 -- of hwloc

-- The text of a file of the system; nil if there is none, or this user may not read it. Raises if it cannot
-- be read for another reason, which would make this machine another one.
local function text_of(path)
  local handle <close>, message, code = io.open(path, "r")
  if not handle and (code == ENOENT or code == EACCES) then return nil end
  local text
  if handle then
    text, message = handle:read("a")
    message = not text and ("%s: %s"):format(path, message)
  end
  if not text then fail.work("%s; the machine is unknown without it; run the command again", message) end
  return text
end

-- The first line of a file of /proc or /sys, or nil.
local function first_line(path) return (text_of(path) or ""):match("^[^\n]+") end

-- The value of the first line `name: value` or `name = value`, or nil.
local function field(path, name)
  for line in (text_of(path) or ""):gmatch("[^\n]+") do
    local found, value = line:match("^([%w_ ]-)%s*[:=]%s*(.-)%s*$")
    if found == name then return value end
  end
end

-- The topology that hwloc finds. A file that hwloc cannot read, or an allocation that fails, is often no
-- error of hwloc, but another topology; so it has to be the same twice.
local function read_twice(topology)
  local seen, problem = {}, nil
  for _ = 1, MOST_READINGS do
    local found, message = topology.read()
    local text = found and json.encode(found)
    if text and seen[text] then return found end
    if text then seen[text] = true end
    problem = problem or message
  end
  fail.work("%s; the machine is unknown without it", problem or
    "hwloc finds another topology of this machine each time (out of memory, or too many open files?)")
end

-- The part of the facts that hwloc finds. `cores` are those that this process may use; `topology` has numbers
-- of packages, numa_nodes, cores and threads, of the machine and of its usable part. Without hwloc the
-- machine counts as one flat node: each thread is a core, and model and caches are unknown.
local function processor_facts()
  local topology = optional "core.topology"
  local read = topology and read_twice(topology)
  if not read then return { cpu = "unknown CPU", cores = workers.cores(), caches = {}, topology = "flat" } end
  local caches = {}
  for level, bytes in pairs(read.caches) do caches[level] = ("%dK"):format(bytes // 1024) end
  return { cpu = read.cpu or "unknown CPU", cores = read.usable.cores, caches = caches,
    topology = { machine = read.machine, usable = read.usable } }
end

-- "Open MPI v4.1.4, package: ..." -> "Open MPI 4.1.4"; the rest names the builder and the host.
local function short_library(library)
  return (library:match("^[^,;]*"):gsub(" v(%d)", " %1"):gsub("%s+$", ""))
end

-- The facts about this machine; `library` is the MPI library's version text. Memory, kernel and system come
-- from files, also without hwloc, which does not report the name of the distribution.
function machines.facts(library)
  local memory_kib = tonumber((field("/proc/meminfo", "MemTotal") or ""):match("%d+"))
  local os_name = field("/etc/os-release", "PRETTY_NAME") or "unknown"
  local facts = processor_facts()
  facts.memory_gib = memory_kib and math.floor(memory_kib / (1 << 20) + 0.5) or 0
  facts.kernel = first_line("/proc/sys/kernel/osrelease")
  facts.os = os_name:gsub('^"(.*)"$', "%1")
  facts.mpi = short_library(library)
  return facts
end

-- The facts by which two machines differ. Where the CPU is unknown, the memory, too. The topology is not one
-- of them: fingerprints cover these facts, and rows of earlier versions have no topology.
function machines.identity(machine)
  return { cpu = machine.cpu, cores = machine.cores, caches = machine.caches, mpi = machine.mpi,
    gpu = machine.gpu, machines = machine.machines, fabric = machine.fabric,
    memory_gib = machine.topology == "flat" and machine.memory_gib or nil }
end

-- The machine of ranks on several nodes: with `fabric`, the interfaces between them with their rates, as text
-- (nil: unknown).
function machines.over(machine, fabric)
  local out = { fabric = fabric }
  for key, value in pairs(machine) do out[key] = value end
  return out
end

-- Whether rows of both machines may be in one folder. Ranks of one node have no fabric, nor have rows of
-- earlier versions.
function machines.same(a, b)
  local one, other = machines.identity(a), machines.identity(b)
  if not (one.fabric and other.fabric) then one.fabric, other.fabric = nil, nil end
  return json.encode(one) == json.encode(other)
end

-- The facts as name -> text, for people. Caches count one by one.
local function texts_of(machine)
  local names = { cpu = "CPU", gpu = "GPU", memory_gib = "GiB of memory", mpi = "MPI",
    os = "system", fabric = "network" }
  local out = {}
  for key, value in pairs(machine) do
    if key == "caches" then
      for level, size in pairs(value) do out[level .. " cache"] = tostring(size) end
    else
      out[names[key] or key] = type(value) == "table" and json.compact(value) or tostring(value)
    end
  end
  return out
end

-- The facts in which a machine differs from this one, as `CPU (X, here Y), L3 cache (none, here 32768K)`;
-- "" if no known fact differs. Has facts that machines.same leaves out, too: memory, system and kernel.
-- `where`: a word in place of "here".
function machines.differences(other, this, where)
  local others, ours, names, out = texts_of(other), texts_of(this), {}, {}
  for _, of in ipairs { others, ours } do
    for name in pairs(of) do names[name] = true end
  end
  for _, name in ipairs { "kernel", "topology", "network" } do -- some records do not have them
    if not (others[name] and ours[name]) then names[name] = nil end
  end
  for _, name in ipairs(sorted_keys(names)) do
    if others[name] ~= ours[name] then
      out[#out + 1] = ("%s (%s, %s %s)"):format(name, others[name] or "none", where or "here",
        ours[name] or "none")
    end
  end
  return table.concat(out, ", ")
end

-- The numbers of a machine's parts as text; nil if they were not recorded, as by earlier versions.
function machines.topology_in_words(topology)
  if type(topology) ~= "table" then return topology and "unknown: gentables was built without hwloc" end
  local all = topology.machine
  return table.concat({ quantities.counted(all.packages, "package"),
    quantities.counted(all.numa_nodes, "NUMA node"), quantities.counted(all.cores, "core"),
    quantities.counted(all.threads, "thread") }, ", ")
end

-- A short text about the machine. Few facts of imported rows are known.
function machines.describe(machine)
  if machine.machines then return table.concat(machine.machines, " and ") end
  if not machine.cpu then return machine.gpu or "an unknown machine" end
  local cores = machine.cores == 1 and "1 core" or (machine.cores or "unknown") .. " cores"
  return table.concat({ machine.cpu, cores, machine.mpi }, ", ")
end

return machines
