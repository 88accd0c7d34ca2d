-- The variables of the environment that may change a time: those that libraries read, except those that only
-- control logs, dumps and caches. If the value is the path of a file, its content counts, too.
--
-- How to add one: a Lua pattern in one of these lists.
local file = require "core.file"
local provenance = require "rows.provenance"
local sequences = require "base.sequences"

local environment = {}

-- Of Open MPI, its runtimes, MPICH, UCX, libfabric, CUDA's driver, NCCL, and allocators.
local COUNT = { "^OMPI_MCA_", "^PMIX_MCA_", "^PRTE_MCA_", "^MPIR_CVAR_", "^UCX_", "^UCC_", "^FI_", "^CUDA_",
  "^NCCL_", "^GLIBC_TUNABLES$", "^MALLOC_", "^LD_PRELOAD$" }

local COUNT_NOT = {
  "^CUDA_CACHE_", -- compiled kernels: before anything is timed
  "^CUDA_HOME$", "^CUDA_PATH$", "^CUDA_ROOT$", "^CUDA_DIR$", "^CUDA_VERSION$", "^CUDA_BIN_PATH$",
  "^CUDA_LIB_PATH$", "^CUDA_INC_PATH$", "^CUDA_TOOLKIT_ROOT_DIR$", -- for builds
  "^CUDA_LOG_FILE$", "^CUDA_COREDUMP_", "^CUDA_ENABLE_.*COREDUMP", "^CUDA_DEBUGGER_",
  "^NCCL_DEBUG", "^NCCL_WARN_ENABLE_DEBUG_INFO$", "^NCCL_.*_DUMP_FILE", "^NCCL_SET_THREAD_NAME$",
  "^NCCL_COMM_ID$", -- where ranks meet
  "^OMPI_MCA_.*_verbose$", "^PMIX_MCA_.*_verbose$", "^PRTE_MCA_.*_verbose$", "^OMPI_MCA_.*_show_help$",
  "^MPIR_CVAR_DEBUG_", "^UCX_LOG_", "^UCX_WARN_", "^UCX_HANDLE_ERRORS$", "^FI_LOG_", "^UCC_LOG_",
}

local function matches(name, patterns)
  return sequences.any(patterns, function(pattern) return name:find(pattern) end)
end

-- The variables of an environment (name -> value) that may change a time.
function environment.variables(all)
  local found = {}
  for name, value in pairs(all) do
    if matches(name, COUNT) and not matches(name, COUNT_NOT) then
      local content = value:find("/", 1, true) and file.exists(value) and file.read(value)
      found[name] = content and { value, provenance.hash(content) } or value
    end
  end
  return found
end

-- Whether NCCL's log goes elsewhere. The bench finds there whether NCCL took its kernels for symmetric
-- memory; without the log, these strategies have no time.
function environment.has_log_of_nccl(all) return all.NCCL_DEBUG ~= nil or all.NCCL_DEBUG_FILE ~= nil end

return environment
