-- Sweeps over two nodes of Slurm: by srun, and by mpirun in an allocation.
local lu = require "luaunit"
local lib = require "system.nodes.lib"
local process = require "core.process"
local rows = require "core.rows"

local TestSlurm = lib.with_folder(lib.new_folder)

-- Runs a sweep, and checks that it measures all cells and leaves nothing.
function TestSlurm:measures(command, what)
  lib.ends(0, "", lib.run(command))
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

-- ---- the allocation ends ----------------------------------------------------------------------

local CELLS = 6

-- Begins to sweep six cells by a command that gets an allocation, and ends the allocation after the first
-- one. Returns how the command ended, and its stderr.
function TestSlurm:cut_short(command)
  local child = assert(process.start(command))
  lib.wait_for(child, function() return lib.finished_cells(self.csv) > 0 end)
  local _, job = lib.run { "squeue", "--noheader", "--format=%A" }
  lib.run { "scancel", job }
  local ended, _, err = lib.finish(child)
  return ended, err
end

function TestSlurm:test_an_allocation_that_ends()
  lib.clean(self.folder)
  self.folder = lib.new_folder("2", "1, 2, 4, 8, 16, 32", 200000)
  self.csv = lib.rows_of(self.folder, 2)
  local command = { "salloc", "--quiet", "--nodes=2", "--ntasks-per-node=1",
    table.unpack(lib.sweep_command(self.folder)) }
  local ended, err = self:cut_short(command)
  lu.assertNotEquals(ended, "exit code 0", err)
  lu.assertStrContains(err, "gentables: TP 2 on 2 nodes")
  lib.leaves_nothing("an allocation that ends")
  lib.resumes(self.csv, CELLS, command)
end

return require "suites" { { "TestSlurm", TestSlurm } }
