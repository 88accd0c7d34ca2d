-- The backends of the bench: the program that measures, the command that starts its ranks, and whether it can
-- measure rows for an arch. How to add one: a row here, a struct in bench/ (bench/calls/backend.h),
-- strategies in lists/lists.lua.
local fail = require "base.fail"
local launcher = require "conversation.launcher"

local backends = {}

backends.host = { program = "gentables-bench" }

-- The words before the program's name.
-- `over`: the nodes, as launcher.command takes them.
function backends.host.command(job, size, over)
  return launcher.command(size, job.machine.cores, job.launcher, over)
end

function backends.host.arguments() return {} end

function backends.host.loopback() return nil end

function backends.host.arch(name) return name end

-- Ranks are threads, or, with a launcher, processes of the program that has MPI.
backends.cuda = { program = "gentables-bench-cuda", program_of_launcher = "gentables-bench-cuda-mpi" }

function backends.cuda.command(job, size, over)
  return job.launcher and launcher.command(size, job.machine.cores, job.launcher, over) or {}
end

-- Space for the data of the calls that are in progress at once: at most 8 different inputs and their results,
-- with an epilogue twice as many, and a reserve.
local ARENA_COPIES, LEAST_ARENA, MOST_ARENA = 20, 64 << 20, 16 << 30

-- Space for two chains of calls with results of their own, for the largest messages: at most two inputs, and
-- less than three outputs for each of three calls, which is the minimum for a slope.
local CHAIN_COPIES = 12

-- The option for all ranks on one GPU, or nil. Plug-ins launch for each rank, so with plug-ins all candidates
-- do.
function backends.cuda.loopback(job)
  local has_plugins = job.plugins and #job.plugins > 0
  return job.arch:find("%-loopback$") and (has_plugins and "--streams" or "--loopback")
end

function backends.cuda.arguments(job, size)
  local words = job.launcher and {} or { "--ranks", tostring(size) }
  words[#words + 1] = backends.cuda.loopback(job)
  words[#words + 1] = "--workspace"
  local message = math.max(job.spec.limits.message_bytes, 1 << 20)
  words[#words + 1] = tostring(message)
  if job.all_bytes then
    local arena = math.min(math.max(ARENA_COPIES * job.all_bytes, LEAST_ARENA), MOST_ARENA)
    words[#words + 1] = "--arena"
    words[#words + 1] = tostring(math.max(arena, ARENA_COPIES * message // 2))
  elseif job.spec.table and job.spec.table.mode:find("graph") then
    words[#words + 1] = "--arena"
    words[#words + 1] = tostring(math.max(CHAIN_COPIES * message, LEAST_ARENA))
  end
  return words
end

-- The arch of rows of this GPU: `name`, if the GPU has its SM version or the user gave `sm_version`; "gpu"
-- and "gpu-loopback" stand for the SM version of the GPU.
function backends.cuda.arch(name, identity, sm_version)
  local sm = sm_version or identity.isa:match("^sm_(%d+)$")
  local suffix = name:match("%-loopback$") or ""
  if not sm then return name end -- without a GPU, the bench reports it
  local own = ("sm%s%s"):format(sm, suffix)
  if name:find("^gpu") or sm_version then return own end
  if name ~= own then
    fail.input("the rows are to be for %s, and this GPU is %s; give --arch %s, or --sm-version %s",
      name, identity.isa, own, name:match("%d+"))
  end
  return name
end

-- The GPU, from the bench's line on its libraries: "... on 8 x NVIDIA H100"; nil if it names none.
function backends.gpu(library) return library:match(" on (%d+ x .*)$") end

-- The exit code if no bench starts: 2 if its ranks need a GPU and this machine, which starts them, has none;
-- else 1. `identity`: of bench.identify; `given_launcher`: of the command line, or nil.
function backends.code_of_refusal(backend, identity, given_launcher)
  return backend == backends.cuda and identity.isa == "none" and not given_launcher and 2 or 1
end

return backends
