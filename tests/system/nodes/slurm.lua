-- The bench on two nodes of Slurm: by srun, and by mpirun in an allocation.
local lu = require "luaunit"
local lib = require "system.nodes.lib"

local REFUSED = "gentables: TP 2: the launcher placed 2 ranks on 2 nodes, not on 1; "

local TestSlurm = {}

function TestSlurm:setUp() self.folder = lib.new_folder() end

function TestSlurm:tearDown() lib.clean(self.folder) end

function TestSlurm:test_srun()
  local ended, _, err = lib.run(lib.sweep_over(self.folder,
    "srun --mpi=pmix --nodes=2 --ntasks-per-node=1 --ntasks={ranks}"))
  lu.assertStrContains(err, REFUSED)
  lu.assertEquals(ended, "exit code 1")
  lib.leaves_nothing("srun")
end

function TestSlurm:test_mpirun_in_an_allocation()
  local command = lib.sweep_over(self.folder,
    "mpirun --allow-run-as-root --map-by ppr:1:node -n {ranks}")
  local ended, _, err = lib.run({ "salloc", "--quiet", "--nodes=2", table.unpack(command) })
  lu.assertStrContains(err, REFUSED)
  lu.assertEquals(ended, "exit code 1")
  lib.leaves_nothing("salloc")
end

return require "suites" { { "TestSlurm", TestSlurm } }
