-- Ctrl-C at a terminal, at any moment of a sweep: it ends with 130 and one line, leaves nothing, and the next
-- one resumes. `script` of util-linux makes the terminal.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "system.faults.lib"
local process = require "core.process"

local CTRL_C, SOON = "\3", 60

if lib.skip_without_mpirun() then return 77 end
if not process.start({ "script", "--version" }) then require "skip" "there is no script of util-linux" end

local TestTerminal = {}

function TestTerminal:setUp() self.case = lib.new_case() end

function TestTerminal:tearDown() self.case:clean() end

-- Sweeps at a terminal and presses Ctrl-C once `is_due`. Returns the exit code and the terminal's text.
function TestTerminal:press_when(is_due, environment)
  local words = {}
  for i, word in ipairs(self.case:command()) do words[i] = "'" .. word .. "'" end
  local status = self.case.folder .. "/status"
  local line = ("%s; echo $? >%s"):format(table.concat(words, " "), status)
  local child = assert(process.start({ "script", "-qc", "trap : INT; " .. line, "/dev/null" }, environment))
  local shown = {}
  lib.wait_for(child, function() return is_due() end)
  assert(child:write(CTRL_C, SOON))
  while true do
    local text, problem = child:read_line(SOON)
    if not text then
      lu.assertEquals(problem, "end")
      break
    end
    shown[#shown + 1] = text
  end
  child:close(SOON)
  return (lib.read(status):gsub("\n", "")), table.concat(shown, "\n")
end

function TestTerminal:is_interrupted(is_due, environment)
  local status, shown = self:press_when(is_due, environment)
  lu.assertEquals(status, "130", shown)
  lu.assertStrContains(shown, "gentables: interrupted by SIGINT; to resume, run the same command")
  lu.assertEquals(select(2, shown:gsub("gentables: ", "")), 1, shown)
  self.case:leaves_nothing(shown)
end

function TestTerminal:test_while_ranks_start()
  self:is_interrupted(function() return #self.case:processes() >= 2 end, self.case:environment())
  lib.ends(0, "", self.case:run())
  self.case:is_finished("start")
end

-- The second cell hangs, so that the journal certainly has the first one.
function TestTerminal:test_while_a_cell_is_measured()
  local journal = self.case.csv .. ".part"
  local environment = self.case:environment { FAULT = "HANG", AT = "second", RANK = 1 }
  self:is_interrupted(function()
    return (file.read(journal) or ""):find("\ndone sum=%x+\n") and file.exists(self.case.folder .. "/once")
  end, environment)
  lu.assertEquals(self.case:requests(), 2)
  local out = lib.ends(0, "", self.case:run())
  lu.assertStrContains(out, "resumes an interrupted sweep")
  lu.assertEquals(self.case:requests(), 1)
  self.case:is_finished("cell")
end

return require "suites" { { "TestTerminal", TestTerminal } }
