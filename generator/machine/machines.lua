-- The machine of rows: its facts, whether two machines are the same for rows, and a short text about one.
local json = require "codec.json"
local sorted_keys = require "base.sorted_keys"

local machines = {}

-- The first line of a file of /proc or /sys, or nil.
local function first_line(path)
  local handle <close> = io.open(path, "r")
  return handle and handle:read("l")
end

-- The value of the first line `name: value` or `name = value`, or nil.
local function field(path, name)
  local handle <close> = io.open(path, "r")
  if not handle then return nil end
  for line in handle:lines() do
    local found, value = line:match("^([%w_ ]-)%s*[:=]%s*(.-)%s*$")
    if found == name then return value end
  end
end

-- The numbers of the CPUs that this process may use, from a text such as 0-3,8.
local function allowed_cpus()
  local cpus = {}
  local list = field("/proc/self/status", "Cpus_allowed_list") or "0"
  for from, to in (list .. ","):gmatch("(%d+)%-?(%d*),") do
    for cpu = tonumber(from), tonumber(to) or tonumber(from) do cpus[#cpus + 1] = cpu end
  end
  return cpus
end

-- The number of cores of these CPUs; hardware threads of one core count once.
local function count_cores()
  local seen, cores = {}, 0
  for _, cpu in ipairs(allowed_cpus()) do
    local topology = ("/sys/devices/system/cpu/cpu%d/topology/"):format(cpu)
    local core = first_line(topology .. "thread_siblings_list") or tostring(cpu)
    if not seen[core] then seen[core], cores = true, cores + 1 end
  end
  return cores
end

-- The data caches of a core: L1d, L2, L3 ... -> size as text of the system.
local function caches()
  local found = {}
  for index = 0, 9 do
    local folder = ("/sys/devices/system/cpu/cpu%d/cache/index%d/"):format(allowed_cpus()[1] or 0, index)
    local level, size = first_line(folder .. "level"), first_line(folder .. "size")
    local kind = first_line(folder .. "type")
    if level and size and kind ~= "Instruction" then
      found["L" .. level .. (kind == "Data" and "d" or "")] = size
    end
  end
  return found
end

local function cpu_model()
  return field("/proc/cpuinfo", "model name") or field("/proc/cpuinfo", "Model")
    or field("/proc/cpuinfo", "CPU part") or "unknown CPU"
end

-- "Open MPI v4.1.4, package: ..." -> "Open MPI 4.1.4"; the rest names the builder and the host.
local function short_library(library)
  return (library:match("^[^,;]*"):gsub(" v(%d)", " %1"):gsub("%s+$", ""))
end

-- The facts about this machine; `library` is the MPI library's version text.
function machines.facts(library)
  local memory_kib = tonumber((field("/proc/meminfo", "MemTotal") or ""):match("%d+"))
  local os_name = field("/etc/os-release", "PRETTY_NAME") or "unknown"
  return {
    cpu = cpu_model(),
    cores = count_cores(),
    caches = caches(),
    memory_gib = memory_kib and math.floor(memory_kib / (1 << 20) + 0.5) or 0,
    kernel = first_line("/proc/sys/kernel/osrelease"),
    os = (os_name:gsub('^"(.*)"$', "%1")),
    mpi = short_library(library),
  }
end

-- The facts by which two machines differ.
function machines.identity(machine)
  return { cpu = machine.cpu, cores = machine.cores, caches = machine.caches, mpi = machine.mpi,
    gpu = machine.gpu, machines = machine.machines }
end

-- Whether rows of both machines may be in one file.
function machines.same(a, b) return json.encode(machines.identity(a)) == json.encode(machines.identity(b)) end

-- The facts as name -> text, for people. Caches count one by one.
local function texts_of(machine)
  local names = { cpu = "CPU", gpu = "GPU", memory_gib = "GiB of memory", mpi = "MPI",
    os = "system" }
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
  if not (others.kernel and ours.kernel) then names.kernel = nil end -- earlier versions did not record it
  for _, name in ipairs(sorted_keys(names)) do
    if others[name] ~= ours[name] then
      out[#out + 1] = ("%s (%s, %s %s)"):format(name, others[name] or "none", where or "here",
        ours[name] or "none")
    end
  end
  return table.concat(out, ", ")
end

-- A short text about the machine. Few facts of imported rows are known.
function machines.describe(machine)
  if machine.machines then return table.concat(machine.machines, " and ") end
  if not machine.cpu then return machine.gpu or "an unknown machine" end
  local cores = machine.cores == 1 and "1 core" or machine.cores .. " cores"
  return table.concat({ machine.cpu, cores, machine.mpi }, ", ")
end

return machines
