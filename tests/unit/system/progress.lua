-- progress.lua: the bar, and the lines that a pipe gets in its place.
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

-- The number of filled places of a bar's line.
local function filled(bar, now) return #bar:line(now, 200):match("^%[(#*)") end

function TestProgress.test_it_never_goes_back()
  local bar = progress.new(nil, io.stdout)
  bar.started, bar.total = 0, 4
  lu.assertEquals(bar:line(0, 200), "[....................] 0 %  ")
  bar:step(3)
  bar:step(2)
  lu.assertEquals(bar:line(10, 200), "[##########..........] 50 %, 0:10 left  ")
  bar:step(27) -- the rest has grown
  lu.assertEquals(filled(bar, 11), 10)
  lu.assertStrContains(bar:line(11, 200), "] 50 %, 1:39 left") -- 3 of 30 are done
  bar:step(1)
  lu.assertEquals(filled(bar, 12), 16)
end

function TestProgress.test_an_estimated_number_of_steps_ends_at_all()
  local bar = progress.new(nil, io.stdout)
  bar.started = 0
  bar:finish()
  lu.assertEquals(bar:line(10, 200), "[####################] 100 %  ")
end

function TestProgress.test_with_a_limit_it_shows_the_time()
  local bar = progress.new(nil, io.stdout)
  bar:limit(100, 60)
  lu.assertEquals(bar:line(115, 200), "[#####...............] 25 %, 0:45 left  ")
  lu.assertEquals(bar:line(170, 200), "[####################] 100 %  ")
end

-- 40 steps in a budget that they may not need, or that ends them.
function TestProgress.test_with_a_limit_and_known_steps_it_shows_the_larger_part()
  local bar = progress.new(nil, io.stdout)
  bar:limit(100, 1000)
  bar.total = 40
  for _ = 1, 10 do bar:step() end
  lu.assertEquals(bar:line(120, 200), "[#####...............] 25 %, 1:00 left  ")
  lu.assertEquals(bar:line(1000, 200), "[##################..] 90 %, 1:40 left  ")
  bar:step()
  lu.assertEquals(bar:line(1000, 200), "[##################..] 90 %, 1:40 left  ")
end

-- A time left that the verb itself expects, once it is known.
function TestProgress.test_an_expected_time_left_stands_for_the_steps()
  local bar, rest = progress.new(4, io.stdout), nil
  bar.started = 0
  bar:expect(function() return rest end)
  bar:step()
  lu.assertEquals(bar:line(10, 200), "[#####...............] 1/4, 0:30 left  ")
  rest = 10
  lu.assertEquals(bar:line(15, 200), "[############........] 1/4, 0:10 left  ")
  rest = 100
  lu.assertEquals(bar:line(20, 200), "[############........] 1/4, 1:40 left  ")
  for _ = 1, 3 do bar:step() end
  lu.assertEquals(bar:line(25, 200), "[####################] 4/4  ")
end

-- A stage after a budget; its time is unknown at first.
function TestProgress.test_a_stage_of_unknown_length_waits()
  local bar, rest = progress.new(nil, io.stdout), nil
  bar:limit(0, 10)
  bar.total = 4
  lu.assertEquals(bar:line(9, 200), "[##################..] 90 %, 0:01 left  ")
  bar:wait("what follows", function() return rest end)
  lu.assertEquals(bar:line(12, 200), "[##################..] 90 %  what follows")
  lu.assertStrContains(bar:to_json(12), '"part": 0.9000, "left_s": null')
  rest = 1
  lu.assertEquals(bar:line(19, 200), "[###################.] 95 %, 0:01 left  what follows")
end

function TestProgress.test_a_pipe_gets_a_line_every_ten_seconds_if_it_is_to()
  local path = os.tmpname()
  local stream, now = assert(io.open(path, "w")), 0
  local bar = progress.new(nil, stream, function() return now end)
  bar:limit(0, 60)
  bar:in_lines()
  for second = 0, 250 do
    now = second / 10
    bar:show("cell " .. second)
  end
  stream:close()
  local handle <close> = assert(io.open(path))
  lu.assertEquals(handle:read("a"), "gentables: 16 %, 0:50 left: cell 100\n"
    .. "gentables: 33 %, 0:40 left: cell 200\n")
  os.remove(path)
end

function TestProgress.test_a_pipe_gets_messages_but_no_bar()
  local path = os.tmpname()
  local stream, now = assert(io.open(path, "w")), 0
  local bar = progress.new(2, stream, function() return now end)
  bar:show("cell")
  now = 60
  bar:step()
  bar:print("gentables: a line")
  bar:clear()
  stream:close()
  local handle <close> = assert(io.open(path))
  lu.assertEquals(handle:read("a"), "gentables: a line\n")
  os.remove(path)
end

return require "suites" { { "TestProgress", TestProgress } }
