-- Pages of made-up sweeps: the units of times, and that anything missing in a folder's files is reported in
-- one line, with a remedy.
local compare = require "verbs.workload.compare"
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local luaunit = require "luaunit"
local sorted_keys = require("base.ordering").sorted_keys
local store = require "workload.store"
local sweep_page = require "workload.sweep_page"

local work = os.getenv("WORK")

local function summary(low, median, high)
  return { low = low, median = median, high = high, min = low, samples = 20 }
end

local function settings()
  return { backend = "host", id = "i", name = "tiny", program = "p", ranks = 2, steps = 20,
    transport = "builtin", wait = "futex", warm_up = 1, workload = "w" }
end

-- Results with steps of this many us.
local function measured(us)
  local rank = { await_us = us / 20, communication_cpu_us = us / 10, communication_us = us / 10,
    gemm_alone_us = us / 2, gemm_cpu_us = us / 2, gemm_us = us / 2 }
  local function time(share) return summary(0.98 * share * us, share * us, 1.02 * share * us) end
  return { of = "i", status = "ok", seconds = 1.5, backend = "host", wait = "futex", clock = "host_thread",
    machine = { cores = 2, cpu = "a processor", library = "OpenBLAS", core = "a core" }, note = "a note",
    ranks = { rank, rank }, rounds = {}, trace_bytes = { 10, 10 }, used = { channels = 1, threads = 1 },
    times = { exposed = time(0.5), gemms = time(0.5), gemms_alone = time(0.5), gemms_beside = time(0.6),
      left = time(0.1), overlapped = time(0.7), serial = time(1), traced = time(0.7) },
    ratios = { cost = summary(0.1, 0.2, 0.3), hidden = summary(0.5, 0.6, 0.7),
      overlapped_to_serial = summary(0.6, 0.7, 0.8), tracing = summary(0, 0.01, 0.02) } }
end

local function failed()
  return { of = "i", status = "failed", reason = "the fabric is on fire", seconds = 2.5,
    used = { channels = 1, threads = 1 } }
end

-- Not by file.write, which waits for the disk: some files are written a thousand times.
local function write(path, value)
  assert(file.make_folder(path:match("^(.*)/")))
  assert(file.write(path, type(value) == "string" and value or json.encode(value)))
end

-- A sweep's folder: one configuration that was measured, one that failed.
local function save(name, one, first, second)
  local folder = ("%s/%s"):format(work, name)
  write(folder .. "/workload.json", one)
  write(folder .. "/1thread/nccl_1channels/result.json", first)
  write(folder .. "/1thread/nccl_2channels/result.json", second)
  return folder
end

-- Runs fn; returns its error, which must be a failure with a message of one line.
local function refusal_of(fn)
  local ok, problem = pcall(fn)
  if ok then return nil end
  luaunit.assertTrue(fail.is_failure(problem), tostring(problem))
  luaunit.assertEquals(problem.code, 2)
  luaunit.assertNil(problem.message:find("\n", 1, true))
  return problem.message
end

local function page_of(folder)
  local path = work .. "/page.html"
  assert(sweep_page.of(store.read(folder)):write(path))
  return assert(file.read(path))
end

-- compare prints the names of written files on stdout.
local function comparison_of(a, b)
  local path, said = work .. "/comparison.html", print
  print = function() end -- luacheck: ignore 121
  local ok, problem = pcall(compare.run, { a, b, out = path })
  print = said -- luacheck: ignore 121
  if not ok then error(problem, 0) end
  return assert(file.read(path))
end

local TestPages = {}

function TestPages.test_short_steps_stand_in_microseconds()
  local short = save("short", settings(), measured(40), failed())
  local long = save("long", settings(), measured(4000), failed())
  local text = page_of(short)
  for _, part in ipairs { ">us, medians of the slowest", ">us of an overlapped step",
    "overlapped %(us; ", "27.44 to 28.56", ">40.00<", ">20.000<", "40.00 us %(39.20 to 40.80%)" } do
    luaunit.assertNotNil(text:find(part), part)
  end
  luaunit.assertNil(text:find("%d ms"))
  text = page_of(long)
  for _, part in ipairs { ">ms, medians of the slowest", ">ms of an overlapped step", "overlapped %(ms; ",
    "2.74 to 2.86", "4.00 ms %(3.92 to 4.08%)" } do
    luaunit.assertNotNil(text:find(part), part)
  end
  text = comparison_of(short, long)
  luaunit.assertNotNil(text:find(">us, medians with"))
  luaunit.assertNotNil(text:find("2744.00 to 2856.00", 1, true))
  luaunit.assertNotNil(comparison_of(long, long):find(">ms, medians with"))
end

function TestPages.test_settings_without_a_field_are_reported()
  local whole = save("whole", settings(), measured(40), failed())
  for _, text in ipairs { "{}", "[]", '{"ranks": 2}' } do
    local folder = save("bare", text, measured(40), failed())
    for _, fn in ipairs { page_of, function(at) comparison_of(whole, at) end,
      function(at) comparison_of(at, whole) end } do
      luaunit.assertStrMatches(refusal_of(function() fn(folder) end), ".*/bare/workload.json: lacks a valid"
        .. " backend, id, name and %d more: .*; run its sweep again with %-%-fresh")
    end
  end
  for key in pairs(settings()) do
    local one = settings()
    one[key] = nil
    luaunit.assertStrContains(refusal_of(function() page_of(save("one", one, measured(40), failed())) end),
      "/one/workload.json: lacks a valid " .. key .. ": ")
  end
end

function TestPages.test_results_that_lack_something_are_gaps_with_a_reason()
  for _, case in ipairs { { "{}", "of" }, { '{"of": "i", "status": "ok"}', "backend, machine" },
    { '{"of": "i"}', "status, reason" } } do
    local text = page_of(save("gap", settings(), case[1], measured(40)))
    luaunit.assertNotNil(text:find("nccl_1channels/result.json: lacks a valid " .. case[2], 1, true), case[2])
    luaunit.assertStrContains(text, "run its sweep again with --fresh")
    luaunit.assertStrContains(text, "28.00 us")
  end
end

local ODD = { "x", -0.5, json.null, json.array { {} } }

-- Calls with_change(what) for each field of a value, at any depth, with the field removed or odd. A table
-- must not get new fields during the iteration: its keys are read before.
local function each_change(value, with_change, at)
  for _, key in ipairs(sorted_keys(value)) do
    local old = value[key]
    local path = at .. "." .. tostring(key)
    if type(old) == "table" then each_change(old, with_change, path) end
    for i = 0, #ODD do
      value[key] = ODD[i]
      with_change(("%s = %s"):format(path, i == 0 and "nil" or json.encode(ODD[i])))
    end
    value[key] = old
  end
end

-- For any invalid field: a page, or a rejection, and never an error of this program.
function TestPages.test_no_field_that_is_wrong_is_an_internal_error()
  local count, whole = 0, save("whole", settings(), measured(40), failed())
  for _, backend in ipairs { "host", "cuda" } do
    local one, first, second = settings(), measured(40), failed()
    one.backend, first.backend = backend, backend
    one.transport = backend == "cuda" and "nccl" or "builtin"
    first.rounds = nil
    local tried = {}
    local function try(what)
      luaunit.assertNil(tried[what], what)
      count, tried[what] = count + 1, true
      local folder = save("odd", one, first, second)
      local ok, problem = pcall(function()
        sweep_page.of(store.read(folder))
        if what:find(" = nil$") then comparison_of(whole, folder) end
      end)
      luaunit.assertTrue(ok or fail.is_failure(problem), ("%s: %s"):format(what, tostring(problem)))
    end
    each_change(one, try, "settings")
    each_change(first, try, "measured")
    each_change(second, try, "failed")
  end
  luaunit.assertTrue(count > 400)
end

return require "suites" { { "TestPages", TestPages } }
