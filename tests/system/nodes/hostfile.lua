-- Sweeps over two nodes by Open MPI's mpirun with a host file.
local lu = require "luaunit"
local lib = require "system.nodes.lib"
local rows = require "core.rows"

local TestHostfile = lib.with_folder(lib.new_folder, "1, 2")

function TestHostfile:test_a_sweep_over_nodes()
  local command = lib.sweep_command(self.folder, "--hostfile", lib.hosts)
  lib.ends(0, "", lib.run(command))
  for nodes = 1, 2 do
    local records = assert(rows.records(lib.rows_of(self.folder, nodes)))
    lu.assertEquals(#records, 2)
    lu.assertEquals(records[1].nodes, nodes > 1 and nodes or nil)
  end
  lib.leaves_nothing("a sweep")
  local _, out = lib.run(command)
  lu.assertEquals(select(2, out:gsub("up to date, 2 rows", "")), 2)
end

function TestHostfile:test_ranks_on_more_nodes_than_wanted_end_in_one_line()
  local ended, _, err = lib.run(lib.sweep_command(self.folder, "--nodes", "1", "--launcher",
    ("mpirun --allow-run-as-root --hostfile %s --map-by ppr:1:node -n {ranks}"):format(lib.hosts)))
  lu.assertEquals(err, "gentables: TP 2: the launcher placed 2 ranks on 2 nodes, not on 1; --launcher can "
    .. "place them by {nodes}, {ranks_per_node} and {hosts}\n")
  lu.assertEquals(ended, "exit code 1")
  lib.leaves_nothing("ranks on more nodes")
end

return require "suites" { { "TestHostfile", TestHostfile } }
