-- Prints the results of CI's stages: failures, differences from the manifest, the slowest tests, the number
-- of tests. Returns 1 if anything is wrong.
--
--   gentables lua .ci/summary.lua RESULTS MANIFEST STAGE:CODE:SECONDS...
--
-- RESULTS has a JUnit file per stage, STAGE.xml, as ctest writes it. The manifest has a line "[STAGE]" for
-- each stage, and below it the names of all tests that must run there, each followed by the reason for which
-- it may be skipped, if there is one: a text that its output contains after "skipped: ".
local file = require "core.file"

local results, manifest_path = arg[1], arg[2]
local SLOWEST = 10
local END_OF_OUTPUT = 20  -- lines

-- ---- JUnit --------------------------------------------------------------------------------------

local ENTITIES = { lt = "<", gt = ">", quot = '"', apos = "'", amp = "&" }

local function unescape(text)
  local plain = text:gsub("&#(%d+);", function(code) return utf8.char(tonumber(code)) end)
  return (plain:gsub("&(%a+);", ENTITIES))
end

-- The tests of a JUnit file: a list of { name, seconds, state ("passed", "failed" or "skipped"), output }.
local function read_junit(path)
  local tests = {}
  local text = file.exists(path) and assert(file.read(path)) or ""
  for head, body in text:gmatch("<testcase ([^>]*)>(.-)</testcase>") do
    local state = body:find("<failure", 1, true) and "failed" or body:find("<skipped", 1, true) and "skipped"
    tests[#tests + 1] = { name = unescape(head:match('name="([^"]*)"')), state = state or "passed",
      seconds = tonumber(head:match('time="([^"]*)"')) or 0,
      output = unescape(body:match("<system%-out>(.*)</system%-out>") or "") }
  end
  return tests
end

-- ---- the manifest -------------------------------------------------------------------------------

-- { stage = { name = reason or false } }
local function read_manifest(path)
  local expected, section = {}, nil
  for line in (assert(file.read(path)) .. "\n"):gmatch("(.-)\n") do
    local stage = line:match("^%[(.+)%]$")
    local name, reason = line:match("^([^%s#%[]%S*)%s*(.-)%s*$")
    if stage then
      section, expected[stage] = stage, {}
    elseif name then
      expected[section][name] = reason ~= "" and reason
    end
  end
  return expected
end

-- ---- what is wrong ------------------------------------------------------------------------------

local wrong = 0

local function report(message, ...)
  wrong = wrong + 1
  print(message:format(...))
end

-- Every reason that a skipped test prints has to be the one that the manifest allows.
local function check_skip(stage, test, allowed)
  local count = 0
  for reason in test.output:gmatch("skipped: ([^\n]*)") do
    count = count + 1
    if not allowed then
      report("%s: %s was skipped: %s; to allow that, add the reason to its line in the manifest", stage,
        test.name, reason)
    elseif not reason:find(allowed, 1, true) then
      report("%s: %s was skipped: %s; the manifest allows only: %s", stage, test.name, reason, allowed)
    end
  end
  if count == 0 then report("%s: %s was skipped without a reason", stage, test.name) end
end

-- Compares the tests of a stage with its section of the manifest.
local function check_stage(stage, tests, expected)
  local seen = {}
  for _, test in ipairs(tests) do
    seen[test.name] = true
    if expected[test.name] == nil then
      report("%s: %s is not in the manifest; add its name", stage, test.name)
    elseif test.state == "skipped" then
      check_skip(stage, test, expected[test.name])
    end
  end
  local missing = {}
  for name in pairs(expected) do
    if not seen[name] then missing[#missing + 1] = name end
  end
  table.sort(missing)
  for _, name in ipairs(missing) do report("%s: %s did not run", stage, name) end
end

-- Prints the last lines of a failed test's output, each cut to 200 characters.
local function print_end_of(output)
  local lines = {}
  for line in output:gmatch("[^\n]+") do lines[#lines + 1] = line:sub(1, 200) end
  for i = math.max(1, #lines - END_OF_OUTPUT + 1), #lines do print("    " .. lines[i]) end
end

-- Counts the tests of a stage; prints failed tests, and the lines of proofs to commit.
local function count_stage(stage, tests, total)
  for _, test in ipairs(tests) do
    total[test.state] = total[test.state] + 1
    if test.state == "failed" then
      print(("%s: %s failed; its output ends with:"):format(stage, test.name))
      print_end_of(test.output)
    end
    for line in test.output:gmatch("(proven; [^\n]*)") do print(test.name .. ": " .. line) end
  end
end

local function print_slowest(tests)
  table.sort(tests, function(one, other) return one.seconds > other.seconds end)
  print(("the %d slowest tests, in seconds:"):format(SLOWEST))
  for i = 1, math.min(SLOWEST, #tests) do
    print(("%8.1f  %s: %s"):format(tests[i].seconds, tests[i].stage, tests[i].name))
  end
end

local manifest, total, all = read_manifest(manifest_path), { passed = 0, failed = 0, skipped = 0 }, {}
for i = 3, #arg do
  local stage, code, seconds = arg[i]:match("^(.+):(%d+):(%d+)$")
  local tests = read_junit(("%s/%s.xml"):format(results, stage))
  local failed_before = total.failed
  print(("%s: exit code %s, %s s, %d tests"):format(stage, code, seconds, #tests))
  count_stage(stage, tests, total)
  if code ~= "0" and total.failed == failed_before then report("%s: failed outside of its tests", stage) end
  if #tests == 0 then report("%s: no test ran", stage) end
  if manifest[stage] then check_stage(stage, tests, manifest[stage]) end
  for _, test in ipairs(tests) do
    test.stage = stage
    all[#all + 1] = test
  end
end
print_slowest(all)
print(("%d passed, %d failed, %d skipped"):format(total.passed, total.failed + wrong, total.skipped))
return total.failed + wrong > 0 and 1 or 0
