-- Shared by the tests on nodes, which nodes.sh runs on its head node: a sweep over nodes in a folder of its
-- own, and the checks afterwards that nothing is left on any node.
local lu = require "luaunit"
local file = require "core.file"
local process = require "core.process"
local rows = require "core.rows"
local sweep_lib = require "unit.sweep.lib"

local lib = setmetatable({}, { __index = sweep_lib })

local folder = assert(os.getenv("NODES_FOLDER"), "nodes.sh runs these tests")
local agent = os.getenv("NODES_AGENT")
local SOON = 60 -- seconds, above any time that a process needs to end

lib.hosts = folder .. "/hosts"

-- The names of all nodes, in order.
function lib.nodes()
  local names = {}
  for line in io.lines(lib.hosts) do names[#names + 1] = line:match("^%S+") end
  return names
end

-- Runs a command on a node, and returns the same as lib.run.
function lib.on(node, ...) return lib.run { agent, node, ... } end

-- The processes of all nodes, as a set of "PID COMMAND". This program's own children are not among them.
local function processes()
  local found = {}
  for _, pid in ipairs(assert(file.list("/proc"))) do
    local handle <close> = pid:find("^%d+$") and io.open("/proc/" .. pid .. "/cmdline") or nil
    local words = handle and (handle:read("a") or ""):gsub("%z", " ") or ""
    if words ~= "" and lib.runs(pid) then found[pid .. " " .. words] = true end
  end
  return found
end

local at_start = processes()

-- Waits until a condition holds, and returns what it returned last.
function lib.wait_until(condition)
  local silent <close> = assert(process.start({ "cat" }))
  local ends_at = process.now() + SOON
  repeat
    local holds, what = condition()
    if holds then return holds, what end
    silent:read_line(0.01)
  until process.now() > ends_at
  return condition()
end

-- The processes that have begun since this test program, as a list; of `cat` below lib.wait_until, none.
local function new_processes()
  local list = {}
  for name in pairs(processes()) do
    if not at_start[name] and not name:find("^%d+ cat $") then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

local FILES = [[find /dev/shm $TMPDIR -path $TMPDIR/'ompi.*' -prune -o ! -type d -print]]

-- Checks that no process, no segment and no temporary file is left on any node that runs. Files of Open MPI's
-- daemons do not count: they stay on other nodes if mpirun is killed, and sometimes if ranks fail.
function lib.leaves_nothing(what)
  lib.wait_until(function() return #new_processes() == 0 end)
  lu.assertEquals(new_processes(), {}, what)
  lu.assertEquals(file.list(os.getenv("TMPDIR")), {}, what)
  for _, node in ipairs(lib.nodes()) do
    local ended, out, err = lib.on(node, FILES)
    if not err:find("No route to host", 1, true) then
      lu.assertEquals({ ended, out }, { "exit code 0", "" }, ("%s: %s: %s"):format(what, node, err))
    end
  end
end

-- ---- faults -----------------------------------------------------------------------------------

-- Cuts the link of a node, or joins it again.
function lib.cut(node) assert(os.execute(("ip link set %s down"):format(node))) end

function lib.join(node) assert(os.execute(("ip link set %s up"):format(node))) end

-- Limits the rate of the link to a node, and ends the limit.
function lib.slow_down(node, rate)
  assert(os.execute(("tc qdisc add dev %s root tbf rate %s burst 32k latency 50ms"):format(node, rate)))
end

function lib.end_limit(node) assert(os.execute(("tc qdisc del dev %s root"):format(node))) end

-- Kills all processes of a node, as if its power were cut.
function lib.kill_node(node)
  local pid = lib.read(("%s/%s.pid"):format(folder, node)):match("%d+")
  assert(os.execute("kill -KILL " .. pid))
end

-- The file of the clock (tests/system/faults/clock.c) that gentables and ranks share in this environment.
local function clock_of(out) return out .. "/clock" end

-- The environment of a sweep with a clock that runs fast after lib.hurry, until it is ahead by `seconds`.
function lib.clock_environment(out, seconds)
  return { "LD_PRELOAD=" .. os.getenv("FAULT_CLOCK_LIBRARY"), "FAULT_CLOCK=" .. clock_of(out),
    "FAULT_CLOCK_SKIP=" .. seconds }
end

-- Makes the clock of a sweep run fast from now on: writes the number of faults, and the time of the first one
-- in nanoseconds.
function lib.hurry(out)
  local handle <close> = assert(io.open(clock_of(out), "r+b"))
  assert(handle:write(string.pack("<I8I8", 1, math.floor(process.now() * 1e9))))
end

-- ---- sweeps -----------------------------------------------------------------------------------

local spec = [[
return { arch = "host", tp = { 2 }, nodes = { %s }, fusions = { "NONE" }, hidden_sizes = { 1024 },
  num_tokens = { %s }, strategies = { "MPI" }, limits = { cell_us = %d, launches = 1 } }
]]

-- A folder with a spec of two ranks, which all nodes have; lib.clean removes it. `nodes`, `tokens`: lists, as
-- text.
function lib.new_folder(nodes, tokens, cell_us)
  local new = lib.scratch(folder)
  lib.write(new .. "/spec.lua", spec:format(nodes or "2", tokens or "1, 4", cell_us or 20000))
  return new
end

-- A host file of these nodes.
function lib.host_file(out, ...)
  local path = out .. "/hosts"
  lib.write(path, table.concat({ ... }, "\n") .. "\n")
  return path
end

-- The path of the rows of two ranks in a folder.
function lib.rows_of(out, nodes)
  return ("%s/benchmark.tp2%s.host.csv"):format(out, nodes > 1 and ".nodes" .. nodes or "")
end

-- The number of cells in the journal of the rows at `csv`.
function lib.finished_cells(csv)
  local text = file.exists(csv .. ".part") and lib.read(csv .. ".part") or ""
  return select(2, text:gsub("\ndone ", ""))
end

-- Checks that of these cells some are finished, that they are kept, and that the command measures the others.
function lib.resumes(csv, cells, command)
  local kept = lib.finished_cells(csv)
  lu.assertTrue(kept > 0 and kept < cells, kept .. " cells are kept")
  local out = lib.ends(0, "", lib.run(command))
  lu.assertStrContains(out, ("TP 2 on 2 nodes: %d of %d cells to measure"):format(cells - kept, cells))
  lu.assertEquals(#assert(rows.records(csv)), cells)
end

-- The command of a sweep in this folder.
function lib.sweep_command(out, ...)
  return { lib.gentables, "sweep", "--out", out, "--exhaustive", ... }
end

return lib
