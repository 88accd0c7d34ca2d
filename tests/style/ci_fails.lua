-- .ci/summary.lua fails if a test failed, is missing from the results or from the manifest, or was skipped
-- for a reason that the manifest does not have.
local file = require "core.file"
local luaunit = require "luaunit"

local summary_lua = os.getenv "SOURCE" .. "/.ci/summary.lua"
local work = os.getenv "WORK"
local tests = {}

local function testcase(name, body)
  return ('<testcase name="%s" classname="%s" time="1.5">%s</testcase>\n'):format(name, name, body or "")
end

local function skipped(output)
  return ('<skipped message="SKIP"/><system-out>%s</system-out>'):format(output)
end

-- The output of the summary for one stage with these test cases and this manifest, and whether it ends with
-- 0.
local function summary(cases, manifest, code)
  assert(file.make_folder(work))
  assert(file.write(work .. "/default.xml", "<testsuite>\n" .. table.concat(cases) .. "</testsuite>\n"))
  assert(file.write(work .. "/manifest", "[default]\n" .. manifest))
  local pipe = assert(io.popen(("'%s' lua '%s' '%s' '%s/manifest' default:%d:5 2>&1"):format(
    os.getenv "GENTABLES", summary_lua, work, work, code or 0)))
  local output = pipe:read "a"
  return output, pipe:close()
end

local function fails(message, cases, manifest, code)
  local output, passes = summary(cases, manifest, code)
  luaunit.assertStrContains(output, message)
  luaunit.assertNil(passes, output)
end

function tests.test_the_expected_results_pass()
  local output, passes = summary({ testcase "one", testcase("two", skipped "skipped: no GPU here") },
    "one\ntwo no GPU\n")
  luaunit.assertTrue(passes, output)
  luaunit.assertStrContains(output, "1 passed, 0 failed, 1 skipped\n")
end

function tests.test_a_failed_test()
  local body = '<failure message=""/><system-out>a &lt; b\nFAILED: 1 is not 2\n</system-out>'
  local wanted = "default: one failed; its output ends with:\n    a < b\n    FAILED: 1 is not 2\n"
  fails(wanted, { testcase("one", body) }, "one\n", 8)
end

function tests.test_a_missing_test()
  fails("default: two did not run\n", { testcase "one" }, "one\ntwo\n")
end

function tests.test_a_test_that_the_manifest_lacks()
  fails("default: two is not in the manifest", { testcase "one", testcase "two" }, "one\n")
end

function tests.test_another_reason_to_skip()
  fails("default: one was skipped: no cmocka; the manifest allows only: no GPU\n",
    { testcase("one", skipped "skipped: no cmocka") }, "one no GPU\n")
  fails("default: one was skipped: no cmocka; to allow that, add the reason",
    { testcase("one", skipped "skipped: no cmocka") }, "one\n")
  fails("default: one was skipped without a reason\n", { testcase("one", skipped "") }, "one no GPU\n")
end

function tests.test_a_build_that_fails()
  fails("default: failed outside of its tests\n", { testcase "one" }, "one\n", 1)
  fails("default: no test ran\n", {}, "")
end

return require "suites" { { "ci", tests } }
