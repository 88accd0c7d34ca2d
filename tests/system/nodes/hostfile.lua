-- The bench on two nodes, started by Open MPI's mpirun with a host file.
local lu = require "luaunit"
local lib = require "system.nodes.lib"

local TestHostfile = {}

function TestHostfile:setUp() self.folder = lib.new_folder() end

function TestHostfile:tearDown() lib.clean(self.folder) end

function TestHostfile:test_ranks_on_more_nodes_than_wanted_end_in_one_line()
  local ended, _, err = lib.run(lib.sweep_over(self.folder,
    ("mpirun --allow-run-as-root --hostfile %s --map-by ppr:1:node -n {ranks}"):format(lib.hosts)))
  lu.assertEquals(err, "gentables: TP 2: the launcher placed 2 ranks on 2 nodes, not on 1; --launcher can "
    .. "place them by {nodes}, {ranks_per_node} and {hosts}\n")
  lu.assertEquals(ended, "exit code 1")
  lib.leaves_nothing("mpirun")
end

return require "suites" { { "TestHostfile", TestHostfile } }
