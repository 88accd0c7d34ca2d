-- core.process: conversations with deadlines, exit reasons as text, and no leftover of a child's own
-- children.
local lu = require "luaunit"
local lib = require "unit.sweep.lib"
local process = require "core.process"

local SIGKILL, SIGTERM = 9, 15
local SOON, GRACE = 60, 0.1 -- seconds, above any time that it needs; how long a stubborn child is waited for

local TestProcess = {}

local function shell(script, environment)
  return assert(process.start({ "sh", "-c", script }, environment))
end

function TestProcess.test_lines_go_both_ways()
  local child = shell("while read line; do echo \"got $line\"; done")
  lu.assertTrue(child:write("one\ntwo\n", SOON))
  lu.assertEquals(child:read_line(SOON), "got one")
  lu.assertEquals(child:read_line(SOON), "got two")
  lu.assertEquals({ child:close(SOON) }, { "exit code 0", true })
end

function TestProcess.test_one_that_has_ended_in_time_is_still_to_be_closed()
  local child = shell("read line; exit 3")
  lu.assertFalse(child:ends_within(0))
  lu.assertTrue(child:write("go\n", SOON))
  lu.assertTrue(child:ends_within(SOON))
  lu.assertEquals(child:close(SOON), "exit code 3")
end

function TestProcess.test_a_stopped_process_is_named_by_its_rank()
  local child = shell("PMI_RANK=7 sh -c 'echo; kill -STOP $$' & wait")
  child:read_line(SOON)
  lib.wait_for(child, function() return child:stopped() end)
  lu.assertEquals(child:stopped(), "rank 7 is stopped")
  child:close(0)
  lu.assertNil(child:stopped())
end

function TestProcess.test_much_text_blocks_neither_side()
  local child = shell("cat; cat /dev/zero | head -c 300000 >&2")
  local line = ("x"):rep(500000)
  lu.assertTrue(child:write(line .. "\n", SOON))
  lu.assertEquals(child:read_line(SOON), line)
  lu.assertEquals(child:close(SOON), "exit code 0")
end

function TestProcess.test_a_last_line_without_an_end_is_no_line()
  local child = shell("printf 'whole\\nhalf'")
  lu.assertEquals(child:read_line(SOON), "whole")
  lu.assertEquals({ child:read_line(SOON) }, { nil, "end" })
end

-- As a launcher, which removes its files after SIGTERM.
function TestProcess.test_an_error_leaves_a_child_time_for_its_end()
  local path = os.tmpname()
  do
    local script = "trap 'rm %s; exit' TERM; echo; while :; do read line; done"
    local child <close> = shell(script:format(path))
    child:read_line(SOON)
  end
  lu.assertNil(io.open(path))
end

function TestProcess.test_a_deadline_passes()
  local child = shell("read line")
  lu.assertEquals({ child:read_line(0.01) }, { nil, "timeout" })
  lu.assertEquals(child:close(SOON), "exit code 1")
end

function TestProcess.test_the_end_of_a_child_is_described()
  lu.assertEquals({ shell("exit 3"):close(SOON) }, { "exit code 3", false })
  lu.assertStrContains(shell("kill -SEGV $$"):close(SOON), "killed by SIGSEGV")
end

function TestProcess.test_a_child_ends_by_sigpipe_as_usual()
  lu.assertStrContains(shell("kill -PIPE $$; exit 0"):close(SOON), "killed by SIGPIPE")
end

function TestProcess.test_the_end_of_stderr_is_kept()
  local child = shell("seq 1 5000 >&2")
  child:close(SOON)
  lu.assertStrMatches(child:errors(), ".*4999\n5000\n")
  lu.assertTrue(#child:errors() <= 4096)
end

function TestProcess.test_the_environment_is_added_to()
  local child = shell('echo "$PATH_OF_TEST $HOME"', { "PATH_OF_TEST=a b", "HOME=/changed" })
  lu.assertEquals(child:read_line(SOON), "a b /changed")
end

function TestProcess.test_a_missing_program_is_reported()
  local child, message = process.start({ "no-such-program" })
  lu.assertNil(child)
  lu.assertEquals(message, "no-such-program: No such file or directory")
end

function TestProcess.test_a_child_that_ignores_sigterm_is_killed()
  local child = shell("trap '' TERM; echo ready; while :; do read line; done")
  child:read_line(SOON)
  lu.assertStrContains(child:close(GRACE), "killed by SIGKILL")
  lu.assertFalse(lib.runs(child:pid()))
end

function TestProcess.test_a_childs_own_children_end_with_it()
  -- set -m gives the grandchild a process group of its own, like mpirun's ranks.
  local child = shell("set -m; sleep 1000 & echo $!; exit 0")
  local grandchild = math.tointeger(child:read_line(SOON))
  lu.assertTrue(lib.runs(grandchild))
  lu.assertEquals(child:close(SOON), "exit code 0")
  lib.wait_for(shell("cat"), function() return not lib.runs(grandchild) end)
end

function TestProcess.test_collected_children_are_ended()
  local pid
  do
    local child <close> = shell("exec sleep 1000")
    pid = child:pid()
  end
  lu.assertFalse(lib.runs(pid))
end

-- A gentables that starts a child, prints its number, and waits for it.
local function parent()
  local script = os.tmpname()
  lib.write(script, [[
    local process = require "core.process"
    local child = assert(process.start({ "sleep", "1000" }))
    print(child:pid())
    io.stdout:flush()
    local _, problem = child:read_line(1000)
    child:close(0)
    print(problem, process.interrupted())
    return 128 + process.interrupted()
  ]])
  local outer = assert(process.start({ lib.gentables, "lua", script }))
  local pid = math.tointeger(outer:read_line(SOON))
  os.remove(script)
  return outer, pid
end

function TestProcess.test_a_child_does_not_outlive_a_killed_gentables()
  local outer, pid = parent()
  lu.assertTrue(lib.runs(pid))
  outer:kill(SIGKILL)
  lib.wait_for(outer, function() return not lib.runs(pid) end)
end

function TestProcess.test_a_signal_ends_the_wait_and_not_the_program()
  local outer, pid = parent()
  outer:kill(SIGTERM)
  lu.assertEquals(outer:read_line(SOON), "interrupted\t15\tSIGTERM")
  lu.assertEquals(outer:close(SOON), "exit code 143")
  lu.assertFalse(lib.runs(pid))
end

return require "suites" { { "TestProcess", TestProcess } }
