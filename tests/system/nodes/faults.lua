-- Faults of nodes in a sweep: one that is not reachable, another build on a node, a node that is killed, a
-- link that is slow or cut. Each ends in a clear line; finished rows are kept, and nothing is left running.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "system.nodes.lib"
local process = require "core.process"

local SOON = 120    -- seconds, above any time that a sweep needs
local PATIENCE = 120 -- seconds; after a fault the clock runs fast
local TOKENS = "1, 2, 4, 8, 16, 32"
local CELLS = 6

local TestFaults = {}

function TestFaults:setUp()
  self.folder = lib.new_folder("2", TOKENS, 200000)
  self.csv = lib.rows_of(self.folder, 2)
end

function TestFaults:tearDown() lib.clean(self.folder) end

-- The command of a sweep over these nodes.
function TestFaults:sweep_over(...)
  return lib.sweep_command(self.folder, "--hostfile", lib.host_file(self.folder, ...), "--patience",
    tostring(PATIENCE))
end

-- Sweeps over these nodes; at their start they fail, with this as the last line.
function TestFaults:cannot_start(pattern, ...)
  local _, err = lib.ends(1, "", lib.run(self:sweep_over(...)))
  lu.assertStrMatches(err:match("([^\n]*)\n$"), "gentables: TP 2 on 2 nodes: " .. pattern)
  lu.assertFalse(file.exists(self.csv))
  lib.leaves_nothing(pattern)
end

function TestFaults:test_a_node_that_is_not_reachable()
  self:cannot_start(".*mpirun cannot reach all nodes: .* connect to host node9: No route to host%)", "node1",
    "node9")
end

function TestFaults:test_another_build_on_a_node()
  local bench, other = os.getenv("BENCH"), self.folder .. "/other"
  lib.write(other, lib.read(bench) .. "\n") -- runs like the first one
  assert(os.execute("chmod +x " .. other))
  lib.on("node2", "mount --bind", other, bench)
  self:cannot_start("the bench reports: rank 1 runs another binary than the other ranks .*", "node1", "node2")
  lib.on("node2", "umount", bench)
end

-- Needs all three nodes, so it comes before the test that kills one.
function TestFaults:test_a_degraded_link()
  lib.clean(self.folder)
  self.folder = lib.new_folder("2", "1")
  lib.slow_down("node2", "200mbit")
  local ended, out, err = lib.run(self:sweep_over("node1", "node2", "node3"))
  lib.end_limit("node2")
  lu.assertEquals(ended, "exit code 0", err)
  lu.assertStrContains(out, "node node2: %d+%.%d times as slow as others; ", true)
  lib.leaves_nothing("a slow link")
end

-- Begins a sweep over two nodes, and lets `fault` happen after its first cell. Returns how it ended, stdout
-- and stderr.
function TestFaults:disturbed(fault, ...)
  local child = assert(process.start(self:sweep_over(...), lib.clock_environment(self.folder, PATIENCE)))
  lib.wait_for(child, function() return lib.finished_cells(self.csv) > 0 end)
  fault()
  lib.hurry(self.folder)
  return lib.finish(child, SOON)
end

-- Checks that a sweep over these nodes measures the cells that have no row yet.
function TestFaults:resumes_on(...) lib.resumes(self.csv, CELLS, self:sweep_over(...)) end

function TestFaults:test_a_killed_node()
  lib.ends(1, "mpirun cannot reach all nodes",
    self:disturbed(function() lib.kill_node("node3") end, "node1", "node3"))
  lib.leaves_nothing("a killed node")
  self:resumes_on("node1", "node2")
end

-- mpirun, which waits for the other node, does not always pass on the message of the ranks.
local function check_cut_link(self)
  local _, err = lib.ends(1, "", self:disturbed(function() lib.cut("node2") end, "node1", "node2"))
  local is_clear = err:find("a rank of another node, or the link to it, does not respond", 1, true)
    or err:find("the bench did not answer within", 1, true)
  lu.assertNotNil(is_clear, err)
  lib.join("node2")
  lib.leaves_nothing("a link that is cut")
  self:resumes_on("node1", "node2")
end

-- mpirun tries for seconds to reach the node.
if os.getenv("GENTABLES_NIGHTLY") == "1" then TestFaults.test_a_link_that_is_cut = check_cut_link end

return require "suites" { { "TestFaults", TestFaults } }
