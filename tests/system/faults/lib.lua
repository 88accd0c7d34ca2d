-- Shared by the tests of faults: a sweep of two cells under mpirun, in folders of its own, with faults as
-- fault.c is configured, and the checks afterwards.
local lu = require "luaunit"
local file = require "core.file"
local process = require "core.process"
local rows = require "core.rows"
local sweep_lib = require "unit.sweep.lib"

local lib = setmetatable({}, { __index = sweep_lib })

-- Seconds; ranks wait half as long for each other, far longer than a healthy rank needs to start on a busy
-- machine. No test waits so long: if a rank is stopped or hangs, the clock runs fast (clock.c) until so many
-- seconds of the others' deadline are left.
local PATIENCE, LAST_SECONDS = 60, 2
local SOON = 120      -- seconds, above any time that it needs
local CELL_US = 20000

local spec = ([[
return { arch = "host", tp = { 2 }, fusions = { "NONE" }, hidden_sizes = { 1024 }, num_tokens = { 1, 4 },
  strategies = { "MPI" }, limits = { cell_us = %d, launches = 1 } }
]]):format(CELL_US)

-- How long ranks wait for each other, by their option; and how long the sweep waits for the answer of a cell.
lib.timeout_s = PATIENCE / 2
lib.timeout = ("%g"):format(lib.timeout_s)
lib.waits_s = ("%g"):format(PATIENCE + CELL_US / 1e6)

-- Ends the test program (77) if mpirun is not that of Open MPI, because fault.c needs its rank number.
function lib.skip_without_mpirun()
  local probe = process.start({ "mpirun", "--version" })
  local line = probe and probe:read_line(SOON) or ""
  if probe then probe:close(1) end
  if line:find("Open MPI", 1, true) then return false end
  print("skipped: no mpirun of Open MPI")
  return true
end

-- The CPUs that tests may run on.
local function allowed_cpus()
  local cpus = {}
  local handle <close> = assert(io.open("/proc/self/status"))
  local list = handle:read("a"):match("Cpus_allowed_list:%s*(%S+)")
  for from, to in (list .. ","):gmatch("(%d+)%-?(%d*),") do
    for cpu = tonumber(from), tonumber(to) or tonumber(from) do cpus[#cpus + 1] = cpu end
  end
  return cpus
end

local cpus, cases = allowed_cpus(), 0

-- A sweep in a folder of its own. Two ranks share a core, so that round trips are not judged and each cell is
-- measured once.
local case = {}
case.__index = case

function lib.new_case()
  local folder = lib.scratch()
  cases = cases + 1
  local self = setmetatable({ folder = folder, csv = folder .. "/benchmark.tp2.host.csv",
    log = folder .. "/log", bench = folder .. "/bench", cpu = cpus[cases % #cpus + 1],
    waits_s = lib.timeout_s }, case)
  for _, name in ipairs { "shm", "tmp" } do assert(file.make_folder(folder .. "/" .. name)) end
  -- A name of its own for the bench, so that its ranks can be distinguished from others'.
  assert(os.execute(("ln -s '%s' '%s'"):format(os.getenv("BENCH"), self.bench)))
  lib.write(folder .. "/spec.lua", spec)
  return self
end

local mpirun

-- The command line that starts one rank or more; `options` are further ones of mpirun.
function case:mpirun(options)
  mpirun = mpirun or table.concat(require "mpirun", " ")
  return table.concat({ "taskset -c", self.cpu, mpirun, "--mca btl_vader_backing_directory",
    self.folder .. "/shm", "-x LD_PRELOAD=" .. os.getenv("FAULT_LIBRARY"), options or "" }, " ")
end

-- The sweep itself waits for the fault.
function case:is_noticed_by_the_sweep() self.waits_s, self.sweep_waits = tonumber(lib.waits_s), true end

function case:command(launcher)
  return { lib.gentables, "sweep", "--out", self.folder, "--bench", self.bench, "--exhaustive", "--patience",
    tostring(PATIENCE), "--launcher", launcher or self:mpirun("-n {ranks}") }
end

-- `faults`: { FAULT =, AT =, RANK = } of fault.c.
function case:environment(faults)
  local list = { "TMPDIR=" .. self.folder .. "/tmp", "FAULT_LOG=" .. self.log,
    "FAULT_ONCE=" .. self.folder .. "/once", "FAULT_CLOCK=" .. self.folder .. "/clock",
    ("FAULT_CLOCK_SKIP=%g"):format(self.waits_s - LAST_SECONDS) }
  if self.sweep_waits then list[#list + 1] = "LD_PRELOAD=" .. os.getenv("FAULT_CLOCK_LIBRARY") end
  for name, value in pairs(faults or {}) do
    list[#list + 1] = (name == "FAULT" and "FAULT=" or "FAULT_" .. name .. "=") .. value
  end
  return list
end

-- Starts it; `finish` waits for its end and returns how it ended, stdout, stderr.
function case:start(faults, launcher)
  self.child = assert(process.start(self:command(launcher), self:environment(faults)))
end

function case:finish() return lib.finish(self.child, SOON) end

function case:run(faults, launcher)
  self:start(faults, launcher)
  return self:finish()
end

-- The number of cells that the ranks have begun since the last call.
function case:requests()
  local text = file.exists(self.log) and lib.read(self.log) or ""
  os.remove(self.log)
  return select(2, text:gsub("\n", "\n"))
end

-- The processes of this bench, with mpirun; `ranks` without it.
function case:processes(only_ranks)
  local found = {}
  for _, pid in ipairs(assert(file.list("/proc"))) do
    local handle <close> = pid:find("^%d+$") and io.open("/proc/" .. pid .. "/cmdline") or nil
    local words = handle and handle:read("a") or ""
    local at = words:find(self.bench, 1, true)
    local is_ours = words:find("--serve", 1, true) or words:find("--pass", 1, true)
    if at and (at == 1 or not only_ranks) and is_ours then found[#found + 1] = pid end
  end
  return found
end

function case:ranks() return self:processes(true) end

-- Checks that no process, no segment and no folder of mpirun's is left.
function case:leaves_nothing(what)
  lu.assertEquals(self:processes(), {}, what)
  lu.assertEquals({ file.list(self.folder .. "/shm") }, { {} }, what)
  lu.assertEquals({ file.list(self.folder .. "/tmp") }, { {} }, what)
end

local function text_of_tables(self, out)
  local ended, _, err = lib.run { lib.gentables, "generate", "--data-dir", self.folder, "--arch", "host",
    "--out", out, "--against", "none" }
  lu.assertEquals(ended, "exit code 0", err)
  local texts = {}
  for _, name in ipairs(assert(file.list(out))) do texts[name] = lib.read(out .. "/" .. name) end
  return texts
end

-- Checks that all rows exist, that a sweep has nothing to measure, and that the same rows give the same
-- tables.
function case:is_finished(what)
  lu.assertEquals(#assert(rows.records(self.csv)), 2, what)
  lu.assertFalse(file.exists(self.csv .. ".part"), what)
  local out = lib.ends(0, "", self:run())
  lu.assertStrContains(out, "up to date, 2 rows")
  local one = text_of_tables(self, self.folder .. "/one")
  lu.assertEquals(text_of_tables(self, self.folder .. "/other"), one, what)
end

-- Runs cases, `at_once` of them together: begin(item of the list) starts a case with a fault;
-- check_fault(case) waits for its end and may start another run, which check_rest(case) waits for.
function lib.run_all(list, at_once, begin, check_fault, check_rest)
  for first = 1, #list, at_once do
    local together = {}
    for i = first, math.min(#list, first + at_once - 1) do together[#together + 1] = begin(list[i]) end
    for _, each in ipairs(together) do check_fault(each) end
    for _, each in ipairs(together) do
      check_rest(each)
      each:clean()
    end
  end
end

function case:clean() lib.clean(self.folder) end

return lib
