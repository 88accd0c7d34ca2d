-- The trace that the workload's program writes: it follows the rules (check_trace.lua), our reader accepts
-- all of it, and every time is read as the nanoseconds of the notes.
local file = require "core.file"
local luaunit = require "luaunit"

local check = require "unit.workload.check_trace"
local work = os.getenv("WORK")
local path = work .. "/planted.json"

assert(file.make_folder(work))

-- The events that the trace must have, as planted_trace printed them.
local function planted()
  local handle <close> = assert(io.popen(("'%s' '%s'"):format(os.getenv("PLANTED_TRACE"), path)))
  local events = {}
  for line in handle:lines() do
    local kind, name, start, duration, cpu = line:match("^(%S+) (%S+) (%d+) (%d+) ?(%d*)$")
    events[#events + 1] = { kind = kind == "op" and "cpu_op" or kind, name = name,
      start = math.tointeger(tonumber(start)), duration = math.tointeger(tonumber(duration)),
      cpu = math.tointeger(tonumber(cpu)) }
  end
  return events
end

local function nanoseconds(us) return math.floor(us * 1000 + 0.5) end

-- Replaces the first match of a pattern in the planted trace and returns the checker's findings.
local function flawed(pattern, replacement)
  local text, count = assert(file.read(path)):gsub(pattern, replacement, 1)
  luaunit.assertEquals(count, 1, pattern)
  assert(file.write(work .. "/flawed.json", text))
  return check(work .. "/flawed.json")
end

local TestTraces = {}

function TestTraces.test_the_rules_are_kept()
  planted()
  luaunit.assertEquals(check(path), {})
end

function TestTraces.test_the_checker_finds_broken_rules()
  planted()
  luaunit.assertEquals(check(path), {})
  for _, flaw in ipairs {
    { '"correlation":2', '"correlation":1' }, { '"bp":"e"', '"bp":"x"' },
    { "gentablesLaunch", "gentablesLnch" },
    { '"name":"nccl', '"name":"mccl' }, { '"Collective name":"allreduce"', '"Collective name":"AllReduce"' },
    { '"Sequence number":0', '"Sequence":0' }, { '"ts":(%d+)%.(%d%d%d)', '"ts":%1.%21' },
    { '"stream":7', '"stream":8' }, { '"In msg nelems":%d+', '"In msg nelems":"1"' },
    { '"Input type":%["float"', '"Input type":["Half"' }, { '"dtype":"Float"', '"dtype":"Half"' },
    { '"c10::Half":"float"', '"c10::Half":"c10::Half"' }, { '"computed_in"', '"computed"' },
    { '"cpu time %(us%)"', '"cpu"' }, { '"cpu time %(us%)":1%.998', '"cpu time (us)":999.998' },
    { '("name":"gentablesWait"[^\n]-"dur":)', "%19999" }, { '"clock":"host_thread"', '"clock":"cupti"' },
  } do
    luaunit.assertNotEquals(flawed(flaw[1], flaw[2]), {}, flaw[1])
  end
end

function TestTraces.test_every_time_comes_back_as_it_was_noted()
  local expected, found = planted(), {}
  local trace = assert(require("core.trace").open(path))
  local info = trace:info()
  luaunit.assertEquals({ info.rank, info.world_size, info.base_nanoseconds }, { 1, 2, 1767189312000000007 })
  luaunit.assertEquals(info.flaws, {})
  luaunit.assertEquals(info.computed_in, { ["c10::BFloat16"] = "float", ["c10::Half"] = "float" })
  for i = 1, info.kept_events do
    local event = trace:event(i)
    if event.kind == "kernel" or event.kind == "cpu_op" then
      local key = ("%s %s %d %d"):format(event.kind, event.name, nanoseconds(event.start),
        nanoseconds(event.duration))
      found[key] = (found[key] or 0) + 1
    end
  end
  local waits = '"name":"gentablesWait"[^\n]-"ts":([%d.]+),"dur":([%d.]+)[^\n]-"bucket":"(%w+)"'
  for start, duration, bucket in assert(file.read(path)):gmatch(waits) do
    local key = ("wait %s %d %d"):format(bucket, nanoseconds(tonumber(start)),
      nanoseconds(tonumber(duration)))
    found[key] = (found[key] or 0) + 1
  end
  local count = 0
  for _, event in ipairs(expected) do
    local key = ("%s %s %d %d"):format(event.kind, event.name, event.start, event.duration)
    luaunit.assertTrue((found[key] or 0) > 0, key)
    found[key], count = found[key] - 1, count + 1
  end
  luaunit.assertEquals(count, 30 + 3 + 2 * 2) -- and waits amid each step, and at the ends of two
  for key, left in pairs(found) do luaunit.assertEquals(left, 0, key) end
end

function TestTraces.test_processor_times_come_back_too()
  local expected = {}
  for _, event in ipairs(planted()) do
    if event.cpu then table.insert(expected, event.cpu) end
  end
  local found = {}
  for number in assert(file.read(path)):gmatch('"cat":"kernel"[^\n]-"cpu time %(us%)":([%d.]+)') do
    found[#found + 1] = nanoseconds(tonumber(number))
  end
  table.sort(expected)
  table.sort(found)
  luaunit.assertEquals(found, expected)
end

-- Steps of other kinds lie between the traced ones: no rank was idle there. Traces of other profilers have no
-- such gaps.
function TestTraces.test_shares_are_of_the_traced_steps()
  planted()
  local rank = require "trace.ops.rank"
  local function times_of(at, limit) return (assert(rank.open(at))).analysis:timeline(true, limit) end
  local times = times_of(path, 30)
  luaunit.assertEquals(times.steps, 3)
  luaunit.assertAlmostEquals(times.total, 3 * 700.001, 0.01)
  luaunit.assertAlmostEquals(times.untraced, 2 * (12345678.901 - 700.001), 0.01)
  luaunit.assertAlmostEquals(times.idle, times.total - times.busy, 0.001)
  luaunit.assertAlmostEquals(times.micro_idle + times.macro_idle, times.idle, 0.01)
  -- A step's collectives run from 1.001 to 670.003 µs: a pause of 1 µs before them, and of 30 after.
  luaunit.assertAlmostEquals(times.idle, 3 * (1.001 + 29.998), 0.01)
  luaunit.assertAlmostEquals(times_of(path, 10).micro_idle, 3 * 1.001, 0.01)
  local make = require("trace.sheets.timeline").make
  local function sheet_of(at) return make(assert(rank.open(at)), {}, {})[1] end
  local sheet = sheet_of(path)
  luaunit.assertStrContains(sheet.rows[#sheet.rows][1], "untraced_time (between traced steps; not in total")
  local text = assert(file.read(path)):gsub('"gentables":{"backend"', '"others":{"backend"')
  assert(file.write(work .. "/foreign.json", text))
  local foreign = times_of(work .. "/foreign.json", 30)
  luaunit.assertEquals({ foreign.steps, foreign.untraced }, { 0, 0 })
  luaunit.assertTrue(foreign.total > 2 * 12345678)
  luaunit.assertEquals(#sheet_of(work .. "/foreign.json").rows, #sheet.rows - 1)
end

function TestTraces.test_a_failed_write_is_reported_and_leaves_nothing()
  local _, how, code = os.execute(("'%s' '%s/none/t.json' >/dev/null 2>&1"):format(os.getenv("PLANTED_TRACE"),
    work))
  luaunit.assertEquals({ how, code }, { "exit", 1 })
  luaunit.assertFalse(file.exists(work .. "/none/t.json.new"))
end

return require "suites" { { "TestTraces", TestTraces } }
