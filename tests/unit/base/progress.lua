-- progress.lua: the bar, which is not written to a pipe.
local lu = require "luaunit"
local progress = require "system.progress"

local TestProgress = {}

function TestProgress.test_the_line_has_progress_and_time()
  local bar = progress.new(40, io.stdout)
  bar.started, bar.done, bar.text = 0, 10, "TP 2 NONE: ONESHOT 1.50 us"
  local line = bar:line(30, 200)
  lu.assertEquals(line, "[#####...............] 10/40, 1:30 left  TP 2 NONE: ONESHOT 1.50 us")
  lu.assertEquals(#bar:line(30, 40), 39)
  lu.assertStrContains(bar:line(3000, 200), ", 2:30:00 left")
end

function TestProgress.test_nothing_to_do_is_no_division_by_zero()
  lu.assertStrContains(progress.new(0, io.stdout):line(1, 80), "0/0")
end

function TestProgress.test_a_pipe_gets_messages_but_no_bar()
  local path = os.tmpname()
  local stream = assert(io.open(path, "w"))
  local bar = progress.new(2, stream)
  bar:show("cell")
  bar:step()
  bar:say("gentables: a line")
  bar:clear()
  stream:close()
  local handle <close> = assert(io.open(path))
  lu.assertEquals(handle:read("a"), "gentables: a line\n")
  os.remove(path)
end

return require "suites" { { "TestProgress", TestProgress } }
