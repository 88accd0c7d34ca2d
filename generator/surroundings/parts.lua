-- The parts that gentables uses beside itself, in the order of `gentables doctor`: the purpose of each, how
-- it is found, and its packages.
--
--   name      shown
--   purpose   the verbs that need it
--   find      the kind of part, and the name by which it is found: `program` in PATH, `own` program beside
--             gentables, `module` that is loadable, `library` that the loader finds
--   debian, fedora  packages, as in cmake/dev.sh
--   rebuild   whether gentables is built again after their installation
--   required  whether measuring this machine and making its tables needs it
--
-- How to add a part: a row. tests/unit/surroundings/doctor_names_missing_parts.sh compares the packages with
-- cmake/dev.sh.
local file = require "core.file"
local optional = require "base.optional"
local system = require "core.system"

local parts = {}

parts.list = {
  { name = "gentables-bench", purpose = "measuring CPU ranks: sweep, tune",
    find = { own = "gentables-bench" }, debian = "libopenmpi-dev", fedora = "openmpi-devel",
    rebuild = true, required = true },
  { name = "mpirun", purpose = "starting ranks: sweep, tune, workload", find = { program = "mpirun" },
    debian = "openmpi-bin", fedora = "openmpi", required = true },
  { name = "gentables-bench-cuda", purpose = "measuring GPUs; needs CUDA and NCCL from NVIDIA",
    find = { own = "gentables-bench-cuda" } },
  { name = "CUDA driver", purpose = "measuring GPUs; comes from NVIDIA",
    find = { library = "libcuda.so.1" } },
  { name = "hwloc", purpose = "the machine's model and topology in the provenance",
    find = { module = "core.topology" }, debian = "libhwloc-dev", fedora = "hwloc-devel", rebuild = true },
  { name = "gnuplot", purpose = "pictures: plot, metric plot, trace plots", find = { program = "gnuplot" },
    debian = "gnuplot-nox", fedora = "gnuplot" },
  { name = "libxlsxwriter", purpose = "workbooks: report --xlsx, trace", find = { module = "core.xlsx" },
    debian = "libxlsxwriter-dev", fedora = "libxlsxwriter-devel", rebuild = true },
  { name = "libyaml", purpose = "workload cards of metric", find = { module = "core.yaml" },
    debian = "libyaml-dev", fedora = "libyaml-devel", rebuild = true },
  { name = "SQLite", purpose = "history; nsys exports of metric", find = { module = "core.sqlite" },
    debian = "libsqlite3-dev", fedora = "sqlite-devel", rebuild = true },
  { name = "OpenBLAS", purpose = "GEMMs on CPUs: workload, replay", find = { library = "libopenblas.so.0" },
    debian = "libopenblas0-pthread", fedora = "openblas-threads" },
  { name = "gentables-replay", purpose = "replay", find = { own = "gentables-replay" } },
  { name = "gentables-workload", purpose = "workload", find = { own = "gentables-workload" },
    debian = "libopenmpi-dev", fedora = "openmpi-devel", rebuild = true },
  { name = "C compiler", purpose = "regret of a header", find = { program = "cc" },
    debian = "gcc,libc6-dev", fedora = "gcc" },
}

-- The path of a program in PATH; nil: there is none.
local function in_path(name)
  for folder in (os.getenv("PATH") or ""):gmatch("[^:]+") do
    if file.exists(folder .. "/" .. name) then return folder .. "/" .. name end
  end
end

local finders = {
  own = function(name) return file.exists(system.program():gsub("[^/]*$", "") .. name) end,
  program = function(name) return in_path(name) ~= nil end,
  module = function(name) return optional(name) ~= nil end,
  library = function(name) return package.loadlib(name, "*") end,
}

-- Whether a part is found.
function parts.has(part)
  local kind, name = next(part.find)
  return finders[kind](name) and true or false
end

-- The command that installs the packages of these parts; nil if they have none, or without apt-get and dnf.
function parts.install_command(missing)
  local tool = in_path("apt-get") and "apt-get" or in_path("dnf") and "dnf" or nil
  local words, seen = {}, {}
  for _, part in ipairs(missing) do
    local packages = part[tool == "dnf" and "fedora" or "debian"] or ""
    for package in packages:gmatch("[^,]+") do
      if not seen[package] then words[#words + 1], seen[package] = package, true end
    end
  end
  if not tool or #words == 0 then return nil end
  return ("sudo %s install %s"):format(tool, table.concat(words, " "))
end

return parts
