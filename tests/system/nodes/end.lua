-- Nodes end with the command that uses them, and if their script is killed: no process is left.
local lu = require "luaunit"
local file = require "core.file"
local process = require "core.process"
local lib = require "unit.sweep.lib"

local SOON = 60 -- seconds
local script = os.getenv("SOURCE") .. "/tests/system/nodes/nodes.sh"

-- A variable of the environment that no other test has.
local function mark_of(name)
  return ("NODES_OF=%s.%s"):format(lib.read("/proc/self/stat"):match("%d+"), name)
end

-- The processes that have this in their environment.
local function processes_with(mark)
  local found = {}
  for _, pid in ipairs(assert(file.list("/proc"))) do
    local handle <close> = pid:find("^%d+$") and io.open("/proc/" .. pid .. "/environ") or nil
    local text = handle and handle:read("a") or ""
    if text:find(mark, 1, true) and lib.runs(pid) then found[#found + 1] = pid end
  end
  return found
end

local function start(mark, command)
  return assert(process.start({ "sh", script, "2", "100mbit", "sh", "-c", command }, { mark }))
end

local TestEnd = {}

function TestEnd.test_a_killed_script_leaves_nothing()
  local mark = mark_of("killed")
  local child = start(mark, "echo ready; exec sleep infinity")
  local line = child:read_line(SOON)
  if (line or ""):find("^skipped: ") then lu.skip(line:match(": (.*)")) end
  lu.assertEquals(line, "ready")
  lu.assertTrue(#processes_with(mark) > 4)
  assert(os.execute("kill -KILL " .. child:pid()))
  lib.wait_for(child, function() return #processes_with(mark) == 0 end)
  child:close(SOON)
end

function TestEnd.test_the_end_of_the_command_ends_the_nodes()
  local mark = mark_of("ended")
  local child = start(mark, "$NODES_AGENT node1 'sleep infinity' & $NODES_AGENT node2 hostname; exit 5")
  local line = child:read_line(SOON)
  if (line or ""):find("^skipped: ") then lu.skip(line:match(": (.*)")) end
  lu.assertEquals({ line, lib.finish(child) }, { "node2", "exit code 5", "", "" })
  lu.assertEquals(processes_with(mark), {})
end

return require "suites" { { "TestEnd", TestEnd } }
