-- Sweeps over two nodes of Slurm: by srun, and by mpirun in an allocation.
local lu = require "luaunit"
local lib = require "system.nodes.lib"
local rows = require "core.rows"

local TestSlurm = {}

function TestSlurm:setUp() self.folder = lib.new_folder() end

function TestSlurm:tearDown() lib.clean(self.folder) end

-- Runs a sweep, and checks that it measures all cells and leaves nothing.
function TestSlurm:measures(command, what)
  local ended, _, err = lib.run(command)
  lu.assertEquals(ended, "exit code 0", err)
  lu.assertEquals(#assert(rows.records(lib.rows_of(self.folder, 2))), 2)
  lib.leaves_nothing(what)
end

function TestSlurm:test_srun()
  self:measures(lib.sweep_command(self.folder, "--launcher",
    "srun --mpi=pmix --nodes={nodes} --ntasks-per-node={ranks_per_node} --ntasks={ranks}"), "srun")
end

function TestSlurm:test_mpirun_in_an_allocation()
  self:measures({ "salloc", "--quiet", "--nodes=2", "--ntasks-per-node=1",
    table.unpack(lib.sweep_command(self.folder)) }, "salloc")
end

return require "suites" { { "TestSlurm", TestSlurm } }
