-- The folder of a day, and runs of gentables in it.
--
--   rows/    spec.lua and rows       tables/  artifacts       tuned/  tune's files
--   cache/   tune's cache            tmp/     TMPDIR          shm/    Open MPI's segments
--   home/    HOME
--
-- `patience`, in seconds, is that of sweeps, and the timeout of tune.
--
-- All processes of a day have DAYS_MARK in their environment. If root runs this, every other day belongs to
-- an unprivileged user, who needs the modes of files.
local file = require "core.file"
local process = require "core.process"
local system = require "core.system"

local day = {}
day.__index = day

local NOBODY = "65534"
local DEADLINE = 900   -- seconds for one run
local END_S = 60       -- until the processes of a killed run have ended
local TICK_S = 0.01    -- between two looks
local DISK = "48m"     -- size of the file system of a day

local work, stand_in, bench = os.getenv("WORK"), os.getenv("STAND_IN"), os.getenv("BENCH")
local may_mount = os.getenv("NAMESPACE") == "1"
local clock -- a process that prints nothing: waiting for a line of it is waiting

-- The output folders, and below the folder of a day the others.
day.outputs = { "rows", "tables", "tuned", "cache" }
local others = { "tmp", "shm", "home" }

local function shell(command, ...)
  command = command:format(...)
  assert(os.execute(command), command)
end

-- ---- begin and end ------------------------------------------------------------------------------

-- Makes the folder of a day. Its seed decides the user and the bench.
function day.new(seed)
  math.randomseed(seed)
  local self = setmetatable({ seed = seed, folder = ("%s/day-%d"):format(work, seed), log = {}, takes = {},
    patience = 0 }, day)
  local is_root = system.is_root()
  self.user = is_root and math.random(2) == 1 and NOBODY or nil
  self.has_ranks = math.random(2) == 1
  self.mark = ("DAYS_MARK=%s"):format(self.folder)
  shell("mkdir -p '%s'", self.folder)
  self.has_disk = may_mount and
    os.execute(("mount -t tmpfs -o size=%s none '%s'"):format(DISK, self.folder)) or false
  for _, names in ipairs { day.outputs, others } do
    for _, name in ipairs(names) do shell("mkdir -p '%s/%s'", self.folder, name) end
  end
  if self.user then shell("chown -R %s:%s '%s'", self.user, self.user, self.folder) end
  return self
end

function day:describe()
  return ("%s%s%s"):format(self.has_ranks and "ranks" or "stand-in", self.user and ", as nobody" or "",
    self.has_disk and ", on a disk of its own" or "")
end

function day:path(name) return self.folder .. "/" .. name end

function day:note(line, ...) self.log[#self.log + 1] = line:format(...) end

function day:clean()
  for _, pid in ipairs(self:processes()) do shell("kill -KILL %s 2>/dev/null || :", pid) end
  if self.has_disk then shell("umount '%s'", self.folder) end
  shell("rm -rf '%s'", self.folder)
end

-- ---- processes ----------------------------------------------------------------------------------

-- The ids of the processes of this day, apart from zombies; those of one program if `program` is given.
function day:processes(program)
  local found = {}
  for _, pid in ipairs(assert(file.list("/proc"))) do
    local environment <close> = pid:find("^%d+$") and io.open("/proc/" .. pid .. "/environ") or nil
    local text = environment and environment:read("a") or ""
    if text:find(self.mark .. "\0", 1, true) then
      local command <close> = program and io.open("/proc/" .. pid .. "/comm")
      if not program or command and command:read("l") == program then found[#found + 1] = pid end
    end
  end
  return found
end

-- Waits until `condition` holds, at most so many seconds. Returns whether it does.
function day.wait(seconds, condition)
  clock = clock or assert(process.start({ "cat" }))
  local deadline = process.now() + seconds
  while not condition() do
    if process.now() > deadline then return false end
    clock:read_line(TICK_S)
  end
  return true
end

-- Sends a signal, such as KILL, to "program", "launcher" or "rank" of a run. Returns whether there was one.
function day:kill(child, victim, signal)
  local pid = victim == "program" and tostring(child:pid())
  local stand_ins = pid and {} or self:processes("stand_in") -- the launcher and all ranks
  if victim == "launcher" then pid = stand_ins[1] or self:processes("mpirun")[1] end
  if victim == "rank" then
    local ranks = self:processes("gentables-bench")
    pid = stand_ins[1] or ranks[math.random(math.max(1, #ranks))]
  end
  return pid and os.execute(("kill -%s %s 2>/dev/null"):format(signal, pid)) or false
end

-- ---- runs ---------------------------------------------------------------------------------------

function day:environment()
  local list = { self.mark, "TMPDIR=" .. self:path("tmp"), "HOME=" .. self:path("home"), "LC_ALL=C",
    "OMPI_MCA_btl_vader_backing_directory=" .. self:path("shm") }
  if self.has_ranks then return list end
  list[#list + 1] = "GENTABLES_LAUNCHER=env RANKS={ranks}"
  return list
end

-- The verbs, as lists of words.
function day:sweep(...) return self:sweep_in("rows", ...) end

function day:sweep_in(folder, ...)
  return { "sweep", "--out", self:path(folder), "--exhaustive", "--patience", tostring(self.patience),
    "--bench", self.has_ranks and bench or stand_in, ... }
end

function day:generate(out, ...)
  return { "generate", "--data-dir", self:path("rows"), "--arch", "host", "--out", self:path(out), ... }
end

function day:check()
  return { "check", "--data-dir", self:path("rows"), "--arch", "host", "--tables", self:path("tables"),
    "--against", "none" }
end

function day:tune(operation, ...)
  local launcher = table.concat(require "mpirun", " ") .. " -n {ranks}"
  return { "tune", "--op", operation, "--sizes", "1K:4K", "--samples", "3", "--warm-up", "1", "--timeout",
    tostring(self.patience), "--bench", bench, "--launcher", launcher, "--out", self:path("tuned"),
    "--cache", self:path("cache/tune.json"), ... }
end

-- The command line; `limit`: the largest size of a file, in bytes, or nil.
local function command(self, arguments, limit)
  local argv = {}
  local function add(...) table.move({ ... }, 1, select("#", ...), #argv + 1, argv) end
  if self.user then
    add("setpriv", "--reuid=" .. self.user, "--regid=" .. self.user, "--clear-groups")
  end
  if limit then add("prlimit", "--fsize=" .. limit) end
  add(system.program())
  return table.move(arguments, 1, #arguments, #argv + 1, argv)
end

-- Reads its output, into `out`, until `deadline`. Returns whether it still runs.
local function reads_until(child, deadline, out)
  while process.now() < deadline do
    local line, problem = child:read_line(deadline - process.now())
    if line then out[#out + 1] = line end
    if problem == "end" then return false end
  end
  return true
end

-- Runs gentables with these arguments. Options, all of which may be nil: `kill` = { victim, signal, after =
-- seconds }, `limit`. Returns { how, code (nil after a signal), out, err, took, was_hit }.
function day:run(arguments, options)
  options = options or {}
  local began, out, was_hit = process.now(), {}, false
  local child = assert(process.start(command(self, arguments, options.limit), self:environment()))
  if options.kill and reads_until(child, began + options.kill.after, out) then
    was_hit = self:kill(child, options.kill[1], options.kill[2])
  end
  local is_late = reads_until(child, began + DEADLINE, out)
  if is_late then child:kill(9) end
  local how = child:close(END_S)
  local ran = { how = how, code = tonumber(how:match("^exit code (%d+)$")), out = table.concat(out, "\n"),
    err = child:errors(), took = process.now() - began, was_hit = was_hit }
  if is_late then error(("%s hangs: %s"):format(arguments[1], ran.out .. ran.err)) end
  return ran
end

-- Runs it without disturbance; an exit code other than 0 is an error.
function day:must(arguments)
  local ran = self:run(arguments)
  if ran.code ~= 0 then error(("%s: %s: %s"):format(arguments[1], ran.how, ran.out .. ran.err)) end
  return ran
end

return day
