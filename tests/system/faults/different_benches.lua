-- Ranks of different benches are named before anything is measured: another binary, other candidates, another
-- protocol, other options.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "system.faults.lib"

if lib.skip_without_mpirun() then return 77 end

local TestAlike = {}

function TestAlike:setUp() self.case = lib.new_case() end

function TestAlike:tearDown() self.case:clean() end

-- A sweep in which rank 1 differs ends in one line that names it, and leaves no process and no file.
function TestAlike:expect(message, faults, launcher)
  local _, err = lib.ends(1, "", self.case:run(faults, launcher))
  lu.assertEquals(select(2, err:gsub("\n", "")), 1, err)
  lu.assertStrContains(err, "gentables: TP 2: the bench reports: " .. message)
  lu.assertFalse(file.exists(self.case.csv))
  lu.assertEquals(self.case:requests(), 0)
  self.case:leaves_nothing(message)
end

-- Gives a rank another program: the words after `: -n 1` in a command line of mpirun.
function TestAlike:launcher_with(program)
  return self.case:mpirun(("-n 1 %s --serve --timeout %s : -n 1 env RANKS={ranks}"):format(program,
    lib.timeout))
end

function TestAlike:test_another_binary()
  local folder = lib.scratch("/tmp")
  local other = folder .. "/other"
  lib.write(other, lib.read(os.getenv("BENCH")) .. "\n") -- runs like the first one
  assert(os.execute("chmod +x " .. other))
  self:expect(("rank 1 runs another binary than the other ranks (%s)"):format(os.getenv("BENCH")), nil,
    self:launcher_with(other))
  lib.clean(folder)
end

function TestAlike:test_other_options()
  local message = "rank 1 has other options than the other ranks (--serve --timeout %s)"
  self:expect(message:format(lib.timeout), nil, self:launcher_with(self.case.bench .. " --strategies MPI"))
end

function TestAlike:test_other_candidates()
  self:expect("rank 1 has other candidates than the other ranks", { FAULT = "CANDIDATES", RANK = 1 })
end

function TestAlike:test_another_protocol()
  self:expect("rank 1 has another protocol version than the other ranks", { FAULT = "PROTOCOL", RANK = 1 })
end

return require "suites" { { "TestAlike", TestAlike } }
