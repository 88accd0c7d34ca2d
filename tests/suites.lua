-- The end of each Lua test: runs its suites and returns the exit code, which CTest reads.
--
--   return require "suites" { { "TestRows", TestRows } }
--
-- 0: all tests passed. 1: one failed, or there is none. 77: some were skipped (luaunit's skip and skipIf) and
-- the others passed; each reason is printed as `skipped: REASON`.
local luaunit = require "luaunit"

local SKIPPED = 77

local function print_reasons(nodes)
  local printed = {}
  for _, node in ipairs(nodes) do
    if not printed[node.msg] then print("skipped: " .. node.msg) end
    printed[node.msg] = true
  end
end

return function(suites)
  local runner = luaunit.LuaUnit.new()
  local failed = runner:runSuiteByInstances(suites)
  local skipped = runner.result.skippedTests
  print_reasons(skipped)
  if failed == 0 and #skipped > 0 then return SKIPPED end
  if runner.result.runCount == 0 then print("there is no test") end
  return failed == 0 and runner.result.runCount > 0 and 0 or 1
end
