-- workers.map: results in order, failures of single items, and no child that outlives its parent.
local luaunit = require "luaunit"
local process = require "core.process"
local fail = require "base.fail"
local file = require "core.file"
local workers = require "system.workers"

local PATIENCE = 60 -- seconds; only a failure takes that long

local function work_path(name)
  file.make_folder(os.getenv("WORK"))
  return os.getenv("WORK") .. "/" .. name
end

local TestWorkers = {}

function TestWorkers.test_answers_come_in_the_order_of_the_items()
  local gate = work_path("gate")
  os.remove(gate)
  local order = {}
  local results = workers.map({ "first", "second", "third" }, function(item, index)
    if index == 1 then
      repeat until file.exists(gate) -- it is the last to end
    end
    return item .. " " .. index
  end, { jobs = 2, each = function(index)
    order[#order + 1] = index
    if index == 3 then file.write(gate, "") end
  end })
  luaunit.assertEquals(order, { 2, 3, 1 })
  luaunit.assertEquals(results, { { ok = true, value = "first 1", code = 0 },
    { ok = true, value = "second 2", code = 0 }, { ok = true, value = "third 3", code = 0 } })
end

function TestWorkers.test_answers_hold_any_bytes_and_any_length()
  local bytes = {}
  for i = 0, 255 do bytes[i + 1] = string.char(i) end
  local long = table.concat(bytes):rep(10000)
  local results = workers.map({ "", long, "\0\1" }, function(item) return item end)
  luaunit.assertEquals(results[1].value, "")
  luaunit.assertTrue(results[2].value == long)
  luaunit.assertEquals(results[3].value, "\0\1")
end

function TestWorkers.test_no_items_no_work()
  luaunit.assertEquals(workers.map({}, error), {})
end

function TestWorkers.test_a_failure_is_its_item_s_alone()
  local results = workers.map({ 1, 2, 3, 4, 5, 6, 7 }, function(item)
    if item == 1 then fail.input("x.json: is no trace") end
    if item == 2 then fail.work("the disk is full") end
    if item == 3 then error("a slip") end
    if item == 4 then os.execute("kill -ABRT $PPID") end
    if item == 5 then os.execute("kill -KILL $PPID") end
    if item == 6 then return nil end
    return "fine"
  end, { jobs = 3 })
  luaunit.assertEquals(results[1], { ok = false, value = "x.json: is no trace", code = 2 })
  luaunit.assertEquals(results[2], { ok = false, value = "the disk is full", code = 1 })
  luaunit.assertStrContains(results[3].value, "a slip")
  luaunit.assertEquals(results[4],
    { ok = false, value = "its process was killed by SIGABRT (Aborted)", code = 1 })
  luaunit.assertEquals(results[5],
    { ok = false, value = "its process was killed by SIGKILL (Killed)", code = 1 })
  luaunit.assertStrContains(results[6].value, "it returned no text")
  luaunit.assertEquals(results[7], { ok = true, value = "fine", code = 0 })
end

function TestWorkers.test_an_item_may_have_workers_of_its_own()
  local results = workers.map({ "a", "b" }, function(outer)
    local parts = {}
    for i, result in ipairs(workers.map({ "x", "y" }, function(inner) return outer .. inner end)) do
      parts[i] = result.value
    end
    return table.concat(parts, " ")
  end)
  luaunit.assertEquals({ results[1].value, results[2].value }, { "ax ay", "bx by" })
end

-- Errors in the function of an item are its result; around it, they end the child.
function TestWorkers.test_memory_is_short_where_a_child_makes_its_answer()
  local path = work_path("large.lua")
  file.write(path, [[
    require("core.workers").map(1, 1, function() return io.open("/dev/null"):read(1 << 50) end, print)]])
  local sanitizer = (os.getenv("ASAN_OPTIONS") or "") .. ":allocator_may_return_null=1"
  local parent = assert(process.start {
    "env", "ASAN_OPTIONS=" .. sanitizer, os.getenv("GENTABLES"), "lua", path })
  luaunit.assertEquals(parent:read_line(PATIENCE), "1\tnil\tits process ended with exit code 1")
  luaunit.assertEquals(parent:close(PATIENCE), "exit code 0")
  luaunit.assertStrContains(parent:errors(), "gentables: out of memory\n")
  luaunit.assertNotStrContains(parent:errors(), "internal error")
end

function TestWorkers.test_an_error_of_the_caller_ends_the_children()
  local started = work_path("started")
  os.remove(started)
  luaunit.assertErrorMsgContains("enough", workers.map, { 1, 2 }, function(item)
    if item == 1 then
      repeat until file.exists(started)
      return "one"
    end
    file.write(started, "")
    while true do end
  end, { jobs = 2, each = function() error("enough") end })
end

-- Starts a script with three children, which print that they run, and waits for them. Its standard output
-- ends when all of them have closed it.
local function start_script(body)
  local path = work_path("children.lua")
  file.write(path, ([[
    local workers = require "system.workers"
    workers.map({ 1, 2, 3 }, function(item)
      io.stdout:write("runs\n")
      io.stdout:flush()
      %s
    end, { jobs = 3 })]]):format(body))
  local parent = assert(process.start { os.getenv("GENTABLES"), "lua", path })
  for _ = 1, 3 do luaunit.assertEquals(parent:read_line(PATIENCE), "runs") end
  return parent
end

local function assert_that_all_end(parent)
  local line, problem = parent:read_line(PATIENCE)
  luaunit.assertNil(line)
  luaunit.assertEquals(problem, "end")
end

local INTERRUPT, KILL, TERMINATE = 2, 9, 15

function TestWorkers.test_signals_end_all_children()
  for number, name in pairs { [INTERRUPT] = "SIGINT", [TERMINATE] = "SIGTERM" } do
    local parent = start_script("while true do end")
    parent:kill(number)
    assert_that_all_end(parent)
    local reason = parent:close(PATIENCE)
    luaunit.assertEquals(reason, "exit code " .. 128 + number)
    luaunit.assertStrContains(parent:errors(), "gentables: interrupted by " .. name)
  end
end

function TestWorkers.test_children_end_with_a_parent_that_is_killed()
  local parent = start_script("while true do end")
  parent:kill(KILL)
  assert_that_all_end(parent)
end

function TestWorkers.test_a_childs_own_children_end_too()
  local parent = start_script([[
    local sleep = require("core.process").start { "sh", "-c", "echo; exec sleep 1000" }
    sleep:read_line(1000)
    sleep:read_line(1000)
    return ""]])
  parent:kill(INTERRUPT)
  assert_that_all_end(parent)
end

function TestWorkers.test_a_terminated_child_finishes_its_file()
  local folder = work_path("files")
  file.make_folder(folder)
  local parent = start_script(([[
    local text = ("x"):rep(1 << 20)
    while true do
      pcall(require("core.file").write, %q .. "/" .. item, text)
    end]]):format(folder))
  parent:kill(INTERRUPT)
  assert_that_all_end(parent)
  for _, name in ipairs(file.list(folder)) do
    luaunit.assertTrue(name:find("^%d$") ~= nil, name .. " was left behind")
    luaunit.assertEquals(#file.read(folder .. "/" .. name), 1 << 20)
  end
end

return require "suites" { { "TestWorkers", TestWorkers } }
