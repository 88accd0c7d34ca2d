-- The sentences of a page: they say what the numbers allow, and no more.
local luaunit = require "luaunit"
local words = require "workload.words"

local function time(low, median, high)
  return { low = low * 1e3, median = median * 1e3, high = high * 1e3, samples = 20 }
end

-- A result with these overlapped times (ms), exposed times and shares hidden.
local function entry(threads, channels, overlapped, exposed, hidden)
  return { threads = threads, channels = channels, result = {
    used = { threads = threads, channels = channels },
    machine = { cores = 2 }, ranks = { { gemm_us = 1100, gemm_cpu_us = 1000, communication_cpu_us = 50 } },
    times = { gemms = time(0.9, 1, 1.1), serial = time(1.9, 2, 2.1), overlapped = overlapped,
      exposed = exposed }, ratios = { hidden = hidden, tracing = { low = 0, median = 0.01, high = 0.02 } } } }
end

local exposed = time(0.5, 1, 1.5)

local TestWords = {}

function TestWords.test_the_best_is_sure_only_where_no_interval_reaches_it()
  local fast, slow, near = entry(1, 1, time(1, 1.1, 1.2)), entry(2, 1, time(1.3, 1.4, 1.5)),
    entry(2, 4, time(1.15, 1.3, 1.4))
  local text = words.best { slow, fast }
  luaunit.assertStrContains(text, "1 thread, 1 channel: 1.10 ms (1.00 to 1.20). No other")
  text = words.best { slow, near, fast }
  luaunit.assertStrContains(text, "not sure: the intervals of 2 threads, 4 channels reach it")
  luaunit.assertStrContains(words.best { fast }, "One configuration is measured")
end

function TestWords.test_what_is_hidden_is_said_with_how_sure_it_is()
  local function hidden(low, median, high)
    local shares = { low = low, median = median, high = high }
    return words.hidden(entry(1, 1, time(1, 1, 1), exposed, shares).result)
  end
  luaunit.assertStrContains(hidden(0.6, 0.75, 0.8), "hides 75 % of that (95 % interval 60 % to 80 %; surely")
  luaunit.assertStrContains(hidden(-0.1, 0.2, 0.5), "it may be none")
  luaunit.assertStrContains(hidden(-0.9, -0.7, -0.5), "surely none: overlapping costs time")
end

function TestWords.test_where_nothing_stands_out_nothing_is_hidden()
  local one = entry(1, 1, time(1, 1, 1), time(-0.5, 0.5, 1.5), { low = 0.9, median = 1, high = 1 })
  luaunit.assertStrContains(words.hidden(one.result), "cannot be told from noise")
  luaunit.assertFalse(words.has_exposed(one.result))
end

-- Of steps without any collective a few take longer by chance.
function TestWords.test_of_a_few_steps_nothing_is_told()
  local one = entry(1, 1, time(1, 1, 1), time(0.5, 1, 1.5), { low = 0.9, median = 1, high = 1 })
  luaunit.assertTrue(words.has_exposed(one.result))
  one.result.times.exposed.samples = 5
  luaunit.assertFalse(words.has_exposed(one.result))
end

function TestWords.test_shared_cores_and_own_cores_are_told_apart()
  local one = entry(1, 1, time(1, 1, 1))
  luaunit.assertStrContains(words.why(one.result, 2), "4 threads share 2 cores")
  one.result.machine.cores = 4
  luaunit.assertStrContains(words.why(one.result, 2), "cores of its own")
end

function TestWords.test_what_was_used_is_told_where_it_differs()
  local one = entry(2, 1, time(1, 1, 1))
  luaunit.assertNil(words.used(one))
  one.result.used = { threads = 1, channels = 1 }
  luaunit.assertStrContains(words.used(one),
    "2 threads, 1 channel were asked for; 1 thread, 1 channel were used")
end

function TestWords.test_counts_that_no_log_tells_are_not_called_none()
  local one = entry(512, 28, time(1, 1, 1))
  one.result.backend, one.result.used = "cuda", { threads = 0, channels = 0 }
  one.result.note = "NCCL's log does not say its channels and threads"
  luaunit.assertEquals(words.used(one),
    "512 threads, 28 channels were asked for; NCCL's log does not say its channels and threads")
end

return luaunit.LuaUnit.new():runSuiteByInstances({ { "TestWords", TestWords } })
