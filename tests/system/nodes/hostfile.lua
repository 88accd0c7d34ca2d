-- The bench on two nodes, started by Open MPI's mpirun with a host file.
local lu = require "luaunit"
local lib = require "system.nodes.lib"

local TestHostfile = {}

function TestHostfile:setUp() self.folder = lib.new_folder() end

function TestHostfile:tearDown() lib.clean(self.folder) end

function TestHostfile:test_nodes_are_refused_in_one_line()
  local ended, _, err = lib.run(lib.sweep_over(self.folder,
    ("mpirun --allow-run-as-root --hostfile %s --map-by ppr:1:node -n {ranks}"):format(lib.hosts)))
  lu.assertEquals(err, "gentables: TP 2: the bench reports: the ranks are on several machines; all must be "
    .. "on one\n")
  lu.assertEquals(ended, "exit code 1")
  lib.leaves_nothing("mpirun")
end

return require "suites" { { "TestHostfile", TestHostfile } }
