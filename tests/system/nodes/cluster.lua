-- The lines of docs/cluster.md, as they are there, on two nodes of Slurm: mpirun with a host file, salloc,
-- sbatch, and srun. Only the spec is a smaller one.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "system.nodes.lib"
local rows = require "core.rows"
local spec = require "rows.spec"

local page = lib.read(os.getenv("SOURCE") .. "/docs/cluster.md")
local programs = lib.gentables:match("^(.*)/")

-- The indented blocks below a heading (nil: before the first one), as texts.
local function blocks_of(heading)
  local begin = heading and select(2, page:find("\n## " .. heading .. "\n", 1, true)) or 1
  local text = page:sub(begin, (page:find("\n## ", begin, true) or 0) - 1)
  local blocks, block = {}, nil
  for line in (text .. "\n\n"):gmatch("([^\n]*)\n") do
    local inner = line:match("^    (.*)$")
    if inner then
      block = (block or "") .. inner .. "\n"
    elseif block then
      blocks[#blocks + 1], block = block, nil
    end
  end
  return blocks
end

local TestCluster = {}

function TestCluster:setUp()
  self.folder = lib.new_folder()
  self.cluster = self.folder .. "/cluster"
  assert(file.make_folder(self.cluster))
  assert(os.rename(self.folder .. "/spec.lua", self.cluster .. "/spec.lua"))
end

function TestCluster:tearDown() lib.clean(self.folder) end

-- Runs lines in the folder, expects success, and returns stdout.
function TestCluster:run_lines(lines)
  lib.write(self.folder .. "/lines", ("set -e\ncd '%s'\nPATH=%s:$PATH\nexport PATH\n%s"):format(self.folder,
    programs, lines))
  local out = lib.ends(0, "", lib.run { "sh", self.folder .. "/lines" })
  return out
end

function TestCluster:has_rows(what)
  lu.assertEquals(#assert(rows.records(lib.rows_of(self.cluster, 2))), 2, what)
  lib.leaves_nothing(what)
end

function TestCluster:test_the_spec()
  lib.write(self.cluster .. "/spec.lua", blocks_of(nil)[1])
  local placements, skipped = spec.placements((spec.load(self.cluster .. "/spec.lua")))
  lu.assertEquals({ #placements, #skipped }, { 2, 2 })
end

function TestCluster:test_mpirun_with_a_host_file()
  local blocks = blocks_of("mpirun with a host file")
  lib.write(self.folder .. "/hosts", blocks[1])
  self:run_lines(blocks[2])
  self:has_rows("mpirun")
  self:run_lines(blocks_of(nil)[2])
  lu.assertTrue(file.exists(self.cluster .. "/table.csv"))
end

function TestCluster:test_salloc()
  self:run_lines(blocks_of("Slurm")[1])
  self:has_rows("salloc")
end

function TestCluster:test_sbatch()
  local blocks = blocks_of("Slurm")
  lib.write(self.folder .. "/job.sh", blocks[2])
  local job = self:run_lines(blocks[3]):match("Submitted batch job (%d+)")
  lu.assertNotNil(job)
  lib.wait_until(function() return (select(2, lib.run { "squeue", "--noheader", "--job", job })) == "" end)
  self:has_rows("sbatch")
end

function TestCluster:test_srun()
  self:run_lines(blocks_of("srun")[1])
  self:has_rows("srun")
end

return require "suites" { { "TestCluster", TestCluster } }
