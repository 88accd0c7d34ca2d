-- A gentables-workload that sends wrong or incomplete lines: `workload run` ends with one line, and `workload
-- sweep` keeps no result.
local benches = require "fuzz.structure.benches"
local file = require "core.file"
local json = require "codec.json"
local lib = require "unit.sweep.lib"
local lu = require "luaunit"

local TestLies = {}

-- The answers of the fuzzer's honest program.
local function honest()
  for _, job in ipairs(benches) do
    if job[1] == "workload run" then return job.files end
  end
end

function TestLies:setUp()
  self.folder = lib.scratch("/tmp")
  assert(file.make_folder(self.folder .. "/in/bench"))
  for name, text in pairs(honest()) do lib.write(self.folder .. "/" .. name, text) end
  assert(os.execute(("chmod +x '%s/in/bench/program'"):format(self.folder)))
end

function TestLies:tearDown() lib.clean(self.folder) end

-- Runs a command of `workload` after a change of the answers.
function TestLies:run(old, new, command, ...)
  local text, count = honest()["in/bench/answers"]:gsub(old, new)
  lu.assertTrue(count > 0, old)
  lib.write(self.folder .. "/in/bench/answers", text)
  return lib.run { lib.gentables, "workload", command, "-f", self.folder .. "/in/w.lua", "-p", "2", "-c", "2",
    "-t", "1", "--backend", "host", "--program", self.folder .. "/in/bench/program", "--launcher",
    "env RANKS={ranks}", ... }
end

function TestLies:test_an_honest_program_is_believed()
  local ended, out, errors = self:run("^", "", "run")
  lu.assertEquals(ended, "exit code 0", errors)
  lu.assertStrContains(out, "step (us)")
end

function TestLies:test_wrong_answers_are_refused()
  for old, problem in pairs {
    [" threads=1"] = "no valid used.threads", ["^hello[^\n]*\n"] = "no valid machine.cores",
    ["time name=left[^\n]*\n"] = "no valid times.left.high", [" low=0.1"] = "no valid ratios.cost.low",
    ["time name=traced[^\n]*\n"] = "no valid times.traced.high",
    ["name=gemms "] = "no valid times.gemms.high",
    ["rank number=1[^\n]*\n"] = "no valid ranks", [" gemm_cpu_us=3.2"] = "no valid ranks[0].gemm_cpu_us",
    [" backend=host"] = "no valid backend", [" done=1"] = "no valid progress",
  } do
    local ended, _, errors = self:run(old, "", "run")
    lu.assertEquals(ended, "exit code 1", old .. errors)
    lu.assertEquals(select(2, errors:gsub("\n", "")), 1, errors)
    lu.assertStrContains(errors, "w.lua: it sent " .. problem)
  end
end

function TestLies:test_a_sweep_keeps_no_wrong_result()
  for _, old in ipairs { " done=1", "time name=left[^\n]*\n" } do
    local ended, _, errors = self:run(old, "", "sweep", "--fresh", "-o", self.folder .. "/sweep")
    lu.assertEquals(ended, "exit code 1", errors)
    lu.assertStrContains(errors, "it sent no valid")
    local result = lib.read(self.folder .. "/sweep/1thread/nccl_2channels/result.json")
    lu.assertStrContains(result, '"status": "failed"')
  end
end

-- Bytes that are no UTF-8 come from the program; readers of result.json reject them.
function TestLies:test_foreign_bytes_break_no_result()
  for old, new in pairs { ["\nused "] = "\xff%0", [" note="] = " \xe2\x82%0",
    ["\ndone\n"] = "\nerror reason=\xff\n" } do -- in a note, in an unknown line, in a reason
    self:run(old, new, "sweep", "--fresh", "-o", self.folder .. "/sweep")
    local text = lib.read(self.folder .. "/sweep/1thread/nccl_2channels/result.json")
    lu.assertIsTable(json.decode(text), text)
  end
end

return require "suites" { { "TestLies", TestLies } }
