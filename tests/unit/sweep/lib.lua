-- Shared by the tests of the sweep: scratch folders, running gentables like a user, the stand-in bench.
local lu = require "luaunit"
local file = require "core.file"
local process = require "core.process"
local system = require "core.system"

local lib = {}

local TIMEOUT = 300 -- seconds; on a busy machine a sweep under mpirun may take a minute for a line

lib.gentables = system.program()
lib.stand_in = assert(os.getenv("STAND_IN"), "STAND_IN has to name the stand-in bench")

-- A new folder of its own, below `base`; lib.clean removes it. Without `base` it is in memory if possible,
-- because each cell of a journal is synced, which on a disk takes longer than all the rest of a test; but
-- programs may not be allowed to run there.
function lib.scratch(base)
  local name = os.tmpname()
  os.remove(name)
  local path = name:gsub("^.*/", (base or file.exists("/dev/shm") and "/dev/shm" or "/tmp") .. "/gentables-")
  assert(file.make_folder(path))
  return path
end

function lib.clean(path) os.execute(("rm -rf '%s'"):format(path)) end

-- A class of tests that have a folder each, self.folder = make(...).
function lib.with_folder(make, ...)
  local class, arguments = {}, { ... }
  function class:setUp() self.folder = make(table.unpack(arguments)) end
  function class:tearDown() lib.clean(self.folder) end
  return class
end

function lib.read(path) return assert(file.read(path)) end

function lib.write(path, text) assert(file.write(path, text)) end

-- Lines of stdout of a running child, until it closes stdout.
local function read_all(child, timeout)
  local lines = {}
  while true do
    local line, problem = child:read_line(timeout)
    if not line then
      assert(problem == "end", problem)
      return table.concat(lines, "\n")
    end
    lines[#lines + 1] = line
  end
end

-- Waits for the end of a child, `timeout` seconds at most (nil: TIMEOUT) for each line. Returns how it ended
-- ("exit code 0"), its stdout and its stderr.
function lib.finish(child, timeout)
  local out = read_all(child, timeout or TIMEOUT)
  local ended = child:close(timeout or TIMEOUT)
  return ended, out, child:errors()
end

-- Runs a command to its end, and returns the same.
function lib.run(argv, environment) return lib.finish(assert(process.start(argv, environment))) end

-- lib.ends(0, "", lib.run(...)): expects this exit code, and a part of stderr. Returns stdout and stderr.
function lib.ends(code, part, ended, out, errors)
  lu.assertEquals(ended, "exit code " .. code, errors)
  lu.assertStrContains(errors, part)
  return out, errors
end

-- Sweeps into `folder` with the stand-in as bench, started by this launcher (nil: for one node). Returns the
-- same as lib.run.
function lib.sweep_by(launcher, folder, environment, ...)
  return lib.run({ lib.gentables, "sweep", "--out", folder, "--bench", lib.stand_in, "--launcher",
    launcher or "env RANKS={ranks}", ... }, environment)
end

-- The command that sweeps all cells into `folder` with the stand-in as bench; `...` are further arguments.
function lib.sweep_command(folder, ...)
  return { lib.gentables, "sweep", "--out", folder, "--bench", lib.stand_in,
    "--launcher", "env RANKS={ranks}", "--exhaustive", ... }
end

function lib.sweep(folder, environment, ...) return lib.run(lib.sweep_command(folder, ...), environment) end

-- Waits, without sleeping, until `condition` holds; meanwhile it reads from `child`.
function lib.wait_for(child, condition)
  local deadline = process.now() + TIMEOUT
  repeat
    if condition() then return end
    child:read_line(0.01)
  until process.now() > deadline
  error("waited in vain", 2)
end

-- Whether process `pid` runs; a zombie does not.
function lib.runs(pid)
  local handle <close> = io.open(("/proc/%d/stat"):format(pid))
  local state = handle and handle:read("a"):match("%) (%u)")
  return state ~= nil and state ~= "Z"
end

return lib
