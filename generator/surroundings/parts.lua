-- The parts that gentables uses beside itself, in the order of `gentables doctor`: the purpose of each, how
-- it is found and tried, and its packages.
--
--   name      shown
--   purpose   the verbs that need it
--   find      the kind of part, and the name by which it is found: `program` in PATH, `own` program beside
--             gentables, `module` that is loadable, `library` that the loader finds (or a list, of which
--             one is required), `packed`: the first bytes of files that the reader of traces can unpack
--   try       function() -> true, or nil and the reason: whether a found program does its work, within some
--             seconds. Programs of our own have to print their help; modules and libraries, to load
--   debian, fedora  packages, as in cmake/dev.sh
--   rebuild   whether gentables is built again after their installation
--   made_with what shows that its package for builds is installed: a program in PATH, or a name of pkg-config
--   required  whether measuring this machine and making its tables needs it
--
-- How to add a part: a row. tests/unit/surroundings/doctor_names_missing_parts.sh compares the packages with
-- cmake/dev.sh.
local child_process = require "system.child_process"
local fail = require "base.fail"
local file = require "core.file"
local gnuplot = require "pages.gnuplot"
local launcher = require "conversation.launcher"
local optional = require "base.optional"
local scratch = require "system.scratch"
local sequences = require "base.sequences"
local system = require "core.system"
local workers = require "system.workers"

local parts = {}

local PATIENCE = 30 -- seconds of a trial

-- ---- trials -----------------------------------------------------------------------------------

local function path_of_own(name) return system.program():gsub("[^/]*$", "") .. name end

-- true, or nil and the reason in one line, for the end of a child process.
local function verdict(ran)
  if ran.well then return true end
  return nil, child_process.last_line(ran.errors) or ran.reason
end

local function run(argv) return verdict(child_process.run(argv, { seconds = PATIENCE })) end

-- Two ranks do an allreduce of 256 bytes with the bench; without one they only start and end.
local function start_ranks()
  local argv = launcher.command(2, workers.jobs())
  local bench = path_of_own "gentables-bench"
  local words = not file.exists(bench) and { "true" }
    or { bench, "-b", "256", "-e", "256", "--strategies", "MPI", "--samples", "2" }
  return verdict(launcher.run(table.move(words, 1, #words, #argv + 1, argv), { seconds = PATIENCE }))
end

-- Compiles and links a program.
local function compile()
  local folder <close> = scratch.folder "gentables-doctor"
  local source = folder.path .. "/program.c"
  fail.unless_done(file.write(source, "#include <math.h>\nint main(void) { return (int)sqrt(0); }\n"))
  return run { "cc", source, "-o", folder.path .. "/program", "-lm" }
end

-- ---- the list ---------------------------------------------------------------------------------

parts.list = {
  { name = "gentables-bench", purpose = "measuring CPU ranks: sweep, tune",
    find = { own = "gentables-bench" }, debian = "libopenmpi-dev", fedora = "openmpi-devel",
    made_with = { program = "mpicc" }, rebuild = true, required = true },
  { name = "mpirun", purpose = "starting ranks: sweep, tune, workload", find = { program = "mpirun" },
    try = start_ranks, debian = "openmpi-bin", fedora = "openmpi", required = true },
  { name = "gentables-bench-cuda", purpose = "measuring GPUs; needs CUDA and NCCL from NVIDIA",
    find = { own = "gentables-bench-cuda" } },
  { name = "CUDA driver", purpose = "measuring GPUs; comes from NVIDIA",
    find = { library = "libcuda.so.1" } },
  { name = "hwloc", purpose = "the machine's model and topology in the provenance",
    find = { module = "core.topology" }, debian = "libhwloc-dev", fedora = "hwloc-devel",
    made_with = { library = "hwloc" }, rebuild = true },
  { name = "gnuplot", purpose = "pictures: plot, metric plot, trace plots", find = { program = "gnuplot" },
    try = gnuplot.has_font, debian = "gnuplot-nox", fedora = "gnuplot" },
  { name = "libxlsxwriter", purpose = "workbooks: report --xlsx, trace", find = { module = "core.xlsx" },
    debian = "libxlsxwriter-dev", fedora = "libxlsxwriter-devel", made_with = { library = "xlsxwriter" },
    rebuild = true },
  { name = "libyaml", purpose = "workload cards of metric; YAML files of workload",
    find = { module = "core.yaml" }, debian = "libyaml-dev", fedora = "libyaml-devel",
    made_with = { library = "yaml-0.1" }, rebuild = true },
  { name = "SQLite", purpose = "history; nsys exports of metric; databases of trace",
    find = { module = "core.sqlite" }, debian = "libsqlite3-dev", fedora = "sqlite-devel",
    made_with = { library = "sqlite3" }, rebuild = true },
  { name = "OpenBLAS", purpose = "GEMMs on CPUs: workload, replay", find = { library = "libopenblas.so.0" },
    debian = "libopenblas0-pthread", fedora = "openblas-threads" },
  { name = "oneDNN", purpose = "convolutions on CPUs: replay",
    find = { library = { "libdnnl.so.2", "libdnnl.so.3" } }, debian = "libdnnl-dev", fedora = "onednn-devel",
    rebuild = true },
  { name = "zlib", purpose = "traces and profiles in gzip", find = { packed = "\x1f\x8b" },
    debian = "zlib1g-dev", fedora = "zlib-devel", made_with = { library = "zlib" }, rebuild = true },
  { name = "zstd", purpose = "traces in zstd", find = { packed = "\x28\xb5\x2f\xfd" },
    debian = "libzstd-dev", fedora = "libzstd-devel", made_with = { library = "libzstd" }, rebuild = true },
  { name = "gentables-replay", purpose = "replay", find = { own = "gentables-replay" },
    rebuild = true },
  { name = "gentables-workload", purpose = "workload", find = { own = "gentables-workload" },
    debian = "libopenmpi-dev", fedora = "openmpi-devel", made_with = { program = "mpicc" },
    rebuild = true },
  { name = "C compiler", purpose = "regret of a header", find = { program = "cc" },
    try = compile, debian = "gcc,libc6-dev", fedora = "gcc" },
}

-- The path of a program in PATH; nil: there is none.
local function in_path(name)
  for folder in (os.getenv("PATH") or ""):gmatch("[^:]+") do
    if file.exists(folder .. "/" .. name) then return folder .. "/" .. name end
  end
end

-- Whether this gentables was built with the library for files that begin with these bytes.
local function can_unpack(first_bytes)
  local folder <close> = scratch.folder "gentables-doctor"
  local path = folder.path .. "/packed"
  fail.unless_done(file.write(path, first_bytes))
  local ran = child_process.run({ system.program(), "trace", "report", path, "--out", folder.path },
    { seconds = PATIENCE })
  return not ran.errors:find("was built without", 1, true)
end

-- By the kind of part: whether it is found; and for those that are tried alike, as `try` does.
local finders = {
  own = function(name) return file.exists(path_of_own(name)) end,
  program = function(name) return in_path(name) ~= nil end,
  module = function(name) return optional(name) ~= nil end, -- raises if it is there and cannot be loaded
  library = function(names)
    return sequences.any(type(names) == "table" and names or { names }, function(name)
      return package.loadlib(name, "*")
    end)
  end,
  packed = can_unpack,
}
local trials = { own = function(name) return run { path_of_own(name), "--help" } end }

-- The first line of the reason in an error. Raises if gentables was interrupted.
local function reason_of(problem)
  local known = fail.of(problem)
  if fail.is_failure(known) and known.code > 2 then error(known, 0) end
  return tostring(known):match("^[^\n]*")
end

-- Looks for a part, and tries it: "found"; "missing"; or "broken" and the reason.
function parts.state(part)
  local kind, name = next(part.find)
  local sought, found = pcall(finders[kind], name)
  if not sought then return "broken", reason_of(found) end
  if not found then return "missing" end
  local try = part.try or trials[kind]
  if not try then return "found" end
  local done, works, reason = pcall(try, name)
  if not done then works, reason = nil, reason_of(works) end
  if works then return "found" end
  return "broken", reason
end

-- Whether the package for builds of a missing part is installed: then only the part was not built.
function parts.is_installed(part)
  local with = part.made_with or {}
  if with.program then return in_path(with.program) ~= nil end
  if not with.library or not in_path("pkg-config") then return false end
  return run { "pkg-config", "--exists", with.library } == true
end

-- The command that installs the packages of these parts, except of those with `is_installed`; nil if none is
-- left, or without apt-get and dnf.
function parts.install_command(missing)
  local tool = in_path("apt-get") and "apt-get" or in_path("dnf") and "dnf" or nil
  local words, seen = {}, {}
  for _, part in ipairs(missing) do
    local packages = not part.is_installed and part[tool == "dnf" and "fedora" or "debian"] or ""
    for package in packages:gmatch("[^,]+") do
      if not seen[package] then words[#words + 1], seen[package] = package, true end
    end
  end
  if not tool or #words == 0 then return nil end
  return ("sudo %s install %s"):format(tool, table.concat(words, " "))
end

return parts
