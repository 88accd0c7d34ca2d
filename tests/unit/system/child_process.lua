-- system/child_process.lua: how a command ended is one result, and no path leaves a process.
local lu = require "luaunit"
local lib = require "unit.sweep.lib"
local child_process = require "system.child_process"
local process = require "core.process"

local SIGTERM = 15
local SOON, BRIEF = 60, 0.1 -- seconds: more than it can take; for one that never ends

local TestChildProcess = {}

local function run(script, options)
  options = options or {}
  if not options.silence then options.seconds = options.seconds or SOON end
  return child_process.run({ "sh", "-c", script }, options)
end

-- Whether the process with the number in a file, which a script has written, runs.
local function runs_in(path)
  local pid = math.tointeger(lib.read(path))
  os.remove(path)
  return lib.runs(pid)
end

function TestChildProcess.test_lines_of_a_good_end()
  local ran = run("echo one; echo two; echo seen >&2")
  lu.assertTrue(ran.well)
  lu.assertNil(ran.problem)
  lu.assertEquals({ ran.reason, ran.lines, ran.errors }, { "exit code 0", { "one", "two" }, "seen\n" })
end

function TestChildProcess.test_a_failure_has_its_reason_and_its_lines()
  local ran = run("echo one; echo first >&2; echo last >&2; echo ---- >&2; exit 3")
  lu.assertFalse(ran.well)
  lu.assertNil(ran.problem)
  lu.assertEquals({ ran.reason, ran.lines }, { "exit code 3", { "one" } })
  lu.assertEquals(child_process.last_line(ran.errors), "last")
  lu.assertNil(child_process.last_line("----\n"))
end

function TestChildProcess.test_one_that_cannot_be_started()
  local ran = child_process.run({ "no-such-program" }, {})
  lu.assertFalse(ran.well or false)
  lu.assertEquals({ ran.problem, ran.reason }, { "start", "no-such-program: No such file or directory" })
  if not process.can_confine() then return end
  ran = child_process.run({ "no-such-program" }, { rights = "confined" })
  lu.assertEquals({ ran.problem, ran.reason }, { "start", "no-such-program: No such file or directory" })
end

function TestChildProcess.test_a_deadline_ends_it()
  local path = os.tmpname()
  local ran = run(("echo $$ > %s; echo before >&2; echo one; exec sleep 1000"):format(path),
    { seconds = 1 })
  lu.assertEquals({ ran.well, ran.problem, ran.reason }, { false, "timeout", "did not end within 1 s" })
  lu.assertEquals({ ran.lines, ran.errors }, { { "one" }, "before\n" })
  lu.assertFalse(runs_in(path))
end

function TestChildProcess.test_a_good_end_after_the_deadline_is_none()
  local ran = run("trap 'exit 0' TERM; while :; do sleep 0.1; done", { seconds = BRIEF })
  lu.assertEquals({ ran.well, ran.problem }, { false, "timeout" })
end

function TestChildProcess.test_silence_ends_it_and_lines_do_not()
  local ran = run("for i in 1 2 3 4; do echo $i; sleep 0.4; done", { silence = 1.2 })
  lu.assertEquals({ ran.well, ran.lines }, { true, { "1", "2", "3", "4" } })
  ran = run("echo 1; exec sleep 1000", { silence = BRIEF })
  lu.assertEquals({ ran.problem, ran.reason }, { "timeout", "no answer within 0.1 s" })
end

-- The lines are long, because a million short ones take a second.
function TestChildProcess.test_output_without_end_ends_it()
  local ran = run("exec yes \"$(head -c 60000 /dev/zero | tr '\\0' x)\"", { silence = SOON })
  lu.assertFalse(ran.well)
  lu.assertEquals(ran.reason, "it printed more than 1000000 lines or 256 MiB")
end

function TestChildProcess.test_one_that_ignores_sigterm_is_killed()
  local path = os.tmpname()
  run(("trap '' TERM; echo $$ > %s; while :; do read line; done"):format(path),
    { seconds = 1, grace = BRIEF })
  lu.assertFalse(runs_in(path))
end

function TestChildProcess.test_input_and_environment()
  local line = ("x"):rep(300000)
  local options = { input = line .. "\n", environment = { "ADDED=a b" } }
  local ran = run("read line; echo $ADDED; echo $line", options)
  lu.assertEquals(ran.lines, { "a b", line })
end

function TestChildProcess.test_why_it_reads_no_input_is_kept()
  local ran = run("exec <&-; echo line; echo why >&2; exit 2", { input = ("x"):rep(300000) })
  lu.assertEquals({ ran.reason, ran.lines, ran.errors }, { "exit code 2", { "line" }, "why\n" })
end

function TestChildProcess.test_an_error_of_the_caller_leaves_no_process()
  local pid
  local ok, message = pcall(run, "echo $$; exec sleep 1000", { on_line = function(line)
    pid = math.tointeger(line)
    error("no more", 0)
  end })
  lu.assertEquals({ ok, message }, { false, "no more" })
  lu.assertFalse(lib.runs(pid))
end

function TestChildProcess.test_finish_lists_stopped_processes()
  local child = assert(process.start { "sh", "-c", "PMI_RANK=7 sh -c 'echo; kill -STOP $$' & wait" })
  child:read_line(SOON)
  lib.wait_for(child, function() return child:stopped() end)
  local ended = child_process.finish(child, "timeout", BRIEF)
  lu.assertEquals({ ended.well, ended.problem, ended.stopped }, { false, "timeout", "rank 7 is stopped" })
end

-- A gentables that runs a command, and is sent SIGTERM meanwhile. Returns its lines after the first, how it
-- ended, its stderr, and the number of the command.
local function interrupted(options)
  local script = os.tmpname()
  lib.write(script, ([[
    local child_process = require "system.child_process"
    local ran = child_process.run({ "sh", "-c", "echo $$; exec sleep 1000" }, { %s on_line = function(line)
      print(line)
      io.stdout:flush()
    end })
    print(ran.well, ran.problem, ran.reason, ran.signal)
  ]]):format(options))
  local outer = assert(process.start { lib.gentables, "lua", script })
  local pid = math.tointeger(outer:read_line(SOON))
  os.remove(script)
  outer:kill(SIGTERM)
  local line = outer:read_line(SOON)
  local ended = outer:close(SOON)
  return line, ended, outer:errors(), pid
end

function TestChildProcess.test_a_signal_is_an_error()
  local line, ended, errors, pid = interrupted ""
  lu.assertNil(line)
  lu.assertEquals({ ended, errors }, { "exit code 143", "gentables: interrupted by SIGTERM\n" })
  lu.assertFalse(lib.runs(pid))
end

function TestChildProcess.test_a_signal_is_a_result_on_request()
  local line, _, _, pid = interrupted "returns_on_signal = true,"
  lu.assertEquals(line, "false\tinterrupted\tinterrupted by SIGTERM\t15")
  lu.assertFalse(lib.runs(pid))
end

return require "suites" { { "TestChildProcess", TestChildProcess } }
