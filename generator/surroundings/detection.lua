-- The parts of this machine that gentables can measure: its processor, MPI and GPUs, as the benches beside
-- the program report them, and nvidia-smi where no bench for GPUs is built.
local backends = require "conversation.backends"
local bench = require "conversation.bench"
local child_process = require "system.child_process"
local fail = require "base.fail"
local machines = require "machine.machines"
local system = require "core.system"

local detection = {}

local PATIENCE = 30 -- seconds for nvidia-smi

-- The identity and the library of a backend's bench; nil, the reason why it does not run. Raises if gentables
-- is interrupted.
local function identify(backend)
  local program = system.program():gsub("[^/]*$", "") .. backend.program
  local done, identity, library = pcall(bench.identify, program)
  if done then return identity, library end
  if not fail.is_failure(identity) or identity.code > 2 then error(identity, 0) end
  return nil, identity.message
end

-- The GPUs that nvidia-smi lists, as { count, name, sm }; nil if there is none.
local function listed_gpus()
  local ran = child_process.run({ "nvidia-smi", "--query-gpu=compute_cap,name", "--format=csv,noheader" },
    { seconds = PATIENCE })
  local major, minor, name = (ran.well and ran.lines[1] or ""):match("^(%d+)%.(%d+), (.*)$")
  return major and { count = #ran.lines, name = name, sm = math.tointeger(tonumber(major .. minor)) } or nil
end

-- This machine's GPUs: { count, name, sm, library }, or { count = 0 }. `reason`: why they cannot be measured.
function detection.gpus()
  local identity, library = identify(backends.cuda)
  if not identity then
    local found = listed_gpus() or { count = 0 }
    found.reason = library
    return found
  end
  local count, name = (backends.gpu(library) or ""):match("^(%d+) x (.*)$")
  local sm = identity.isa:match("^sm_(%d+)$")
  if sm then
    return { count = math.tointeger(tonumber(count)), name = name, sm = math.tointeger(tonumber(sm)),
      library = library:match("^(.-) on %d+ x ") }
  end
  local has_driver = not library:find("driver 0.0", 1, true)
  return { count = 0, reason = has_driver and "the CUDA driver lists no GPU" or
    "no CUDA driver (libcuda.so.1)" }
end

-- The SM version of this machine's GPUs; nil, the reason if they cannot be measured.
function detection.sm()
  local gpus = detection.gpus()
  if gpus.reason then return nil, gpus.reason end
  return gpus.sm
end

-- Whether there is a launcher; else nil and the reason.
local function has_launcher()
  if os.getenv "GENTABLES_LAUNCHER" then return true end
  local ran = child_process.run({ "mpirun", "--version" }, { seconds = PATIENCE })
  if ran.problem ~= "start" then return true end
  return nil, "no mpirun (Debian: openmpi-bin), and GENTABLES_LAUNCHER names no other launcher"
end

-- The host: { cpu, cores, memory_gib, os, mpi }; `reason`: why it cannot be measured.
function detection.host()
  local identity, library = identify(backends.host)
  local facts = machines.facts(identity and library or "")
  local starts, reason = has_launcher()
  return { cpu = facts.cpu, cores = facts.cores, memory_gib = facts.memory_gib, os = facts.os,
    mpi = identity and facts.mpi or nil, reason = not identity and library or not starts and reason or nil }
end

-- What can be measured, and what not: a list of { arch, command }, or { arch, reason }.
function detection.targets(host, gpus)
  local targets = { { arch = "host", reason = host.reason,
    command = not host.reason and "gentables tune --op allreduce" or nil } }
  if gpus.reason then
    targets[2] = { arch = gpus.sm and ("sm%d"):format(gpus.sm) or "gpu", reason = gpus.reason }
  elseif gpus.count == 1 then
    local arch = ("sm%d-loopback"):format(gpus.sm)
    targets[2] = { arch = arch, command = ("gentables sweep %s/tables/gpu/spec.lua --arch %s --out %s")
      :format(gentables.home, arch, arch) }
    targets[3] = { arch = ("sm%d"):format(gpus.sm), reason = "one GPU; two or more are required" }
  else
    targets[2] = { arch = ("sm%d"):format(gpus.sm), command = "gentables generate --save-csv-dir data" }
  end
  return targets
end

return detection
