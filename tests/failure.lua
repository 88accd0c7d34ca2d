-- The failure of a call that must fail with one of base/fail.lua's, not with an error of Lua.
--
--   local failure = require "failure"
--   local message, code = failure(call, ARGUMENT...)
local fail = require "base.fail"
local luaunit = require "luaunit"

return function(call, ...)
  local ok, problem = pcall(call, ...)
  luaunit.assertFalse(ok)
  luaunit.assertTrue(fail.is_failure(problem), tostring(problem))
  return problem.message, problem.code
end
