-- Shared by the tests on nodes, which nodes.sh runs on its head node: a sweep over nodes in a folder of its
-- own, and the checks afterwards that nothing is left on any node.
local lu = require "luaunit"
local file = require "core.file"
local process = require "core.process"
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

-- Kills all processes of a node, as if its power were cut.
function lib.kill_node(node)
  local pid = lib.read(("%s/%s.pid"):format(folder, node)):match("%d+")
  assert(os.execute("kill -KILL " .. pid))
end

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
local function wait_until(condition)
  local silent <close> = assert(process.start({ "cat" }))
  local ends_at = process.now() + SOON
  repeat
    local holds, what = condition()
    if holds then return holds, what end
    silent:read_line(0.01)
  until process.now() > ends_at
  return condition()
end

-- The processes that have begun since this test program, as a list; of `cat` below wait_until, none.
local function new_processes()
  local list = {}
  for name in pairs(processes()) do
    if not at_start[name] and not name:find("^%d+ cat $") then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

-- Checks that no process, no segment and no temporary file is left on any node that runs. If ranks fail, Open
-- MPI 4.1.4 sometimes leaves a folder without files on a node that mpirun is not on.
function lib.leaves_nothing(what)
  wait_until(function() return #new_processes() == 0 end)
  lu.assertEquals(new_processes(), {}, what)
  lu.assertEquals(file.list(os.getenv("TMPDIR")), {}, what)
  for _, node in ipairs(lib.nodes()) do
    local ended, out, err = lib.on(node, "find /dev/shm $TMPDIR ! -type d")
    if not err:find("No route to host", 1, true) then
      lu.assertEquals({ ended, out }, { "exit code 0", "" }, ("%s: %s: %s"):format(what, node, err))
    end
  end
end

-- ---- sweeps -----------------------------------------------------------------------------------

local spec = [[
return { arch = "host", tp = { 2 }, fusions = { "NONE" }, hidden_sizes = { 1024 }, num_tokens = { 1, 4 },
  strategies = { "MPI" }, limits = { cell_us = 20000, launches = 1 } }
]]

-- A folder with a spec; lib.clean removes it.
function lib.new_folder()
  local new = lib.scratch()
  lib.write(new .. "/spec.lua", spec)
  return new
end

-- The command of a sweep in this folder.
function lib.sweep_over(out, launcher, ...)
  return { lib.gentables, "sweep", "--out", out, "--exhaustive", "--launcher", launcher, ... }
end

return lib
