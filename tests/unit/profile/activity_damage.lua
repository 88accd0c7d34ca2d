-- A trace that lacks a byte, anywhere, or has one too many, is read, or rejected in one line that names it;
-- the program does not crash.
local activity = require "core.activity"
local file = require "core.file"
local luaunit = require "luaunit"

local folder = os.getenv "WORK"
local path = folder .. "/damaged.json"

local trace = [=[{"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [
{"ph": "X", "cat": "kernel", "name": "k\n", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2, "args": {"device": 0,
 "grid": [1, 1], "Collective name": "allreduce", "In msg nelems": 4, "dtype": "Float", "Group size": 2}},
{"args": {"x": {"y": [{}, []]}, "bytes": 3}, "dur": 1, "ts": 2, "name": "c", "cat": "gpu_memcpy", "ph": "X"},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": "main", "ts": 1, "dur": 1,
 "args": {"Input Dims": [[2, 3], [3, 5], []]}},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 9},
{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 1, "args": {"External id": 5}}]}]=]

local tests = {}

-- Reads the text; returns whether it was rejected.
local function refused(text)
  os.remove(path) -- some file systems write at once what replaces the content of a file
  local out <close> = assert(io.open(path, "wb"))
  assert(out:write(text) and out:flush())
  local read, message = activity.read(path)
  if read then return false end
  luaunit.assertEquals(message:sub(1, #path + 2), path .. ": ")
  luaunit.assertNil(message:find("\n", 1, true))
  return true
end

function tests.setUp() assert(file.make_folder(folder)) end

function tests.test_whole_it_is_read()
  luaunit.assertFalse(refused(trace))
  local read = activity.read(path)
  luaunit.assertEquals({ read.kernels.start, read.kernels.stop }, { { 1500 }, { 3500 } })
  luaunit.assertEquals({ read.copies.bytes, read.copies.start }, { { 3 }, { 2000 } })
  luaunit.assertEquals(read.gemms[1].dims, "[[2,3],[3,5],[]]")
  luaunit.assertEquals({ read.rank, read.world_size, read.left_out }, { 0, 2, 0 })
  luaunit.assertEquals(read.collectives[1].in_elements, 4)
end

function tests.test_cut_off_anywhere_it_is_refused()
  for length = 0, #trace - 1 do luaunit.assertTrue(refused(trace:sub(1, length))) end
end

function tests.test_a_byte_less_or_more_ends_nothing()
  local count = 0
  for i = 1, #trace do
    if refused(trace:sub(1, i - 1) .. trace:sub(i + 1)) then count = count + 1 end
    for _, more in ipairs { "{", "}", "[", "]", '"', ",", ":", "\\", "\255", ":0" } do
      if refused(trace:sub(1, i) .. more .. trace:sub(i + 1)) then count = count + 1 end
    end
  end
  luaunit.assertTrue(count > #trace)
end

-- simdjson does not permit reading on after such an error. Parts that no metric needs are skipped, and may be
-- damaged within their brackets.
function tests.test_nothing_is_read_behind_an_error()
  local event = [[{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, %s}]}]]
  for _, fields in ipairs { '"x":"y":"z","args":{"a":"b"}', '"x" "y","args":{"a":"b"}',
    '"pid":1:2,"tid":3,"args":{}' } do
    luaunit.assertTrue(refused(event:format(fields)))
  end
  luaunit.assertTrue(refused '{"a": 1, "distributedInfo": {"b": "c": "d", "e": "f"}, "traceEvents": []}')
end

return require "suites" { { "activity_damage", tests } }
