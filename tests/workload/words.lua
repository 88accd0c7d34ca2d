-- The sentences of a page: they say what the numbers allow, and no more.
local luaunit = require "luaunit"
local words = require "workload.words"

local function time(low, median, high)
  return { low = low * 1e3, median = median * 1e3, high = high * 1e3, samples = 20 }
end

-- A result with these overlapped times (ms), exposed times and shares hidden.
local function entry(threads, channels, overlapped, exposed, hidden)
  if hidden then hidden.samples = 20 end
  return { threads = threads, channels = channels, result = {
    used = { threads = threads, channels = channels }, backend = "host", wait = "futex",
    machine = { cores = 2 }, ranks = { { gemm_us = 1100, gemm_cpu_us = 1000, communication_cpu_us = 50 } },
    times = { gemms = time(0.99, 1, 1.01), serial = time(1.9, 2, 2.1), overlapped = overlapped,
      exposed = exposed, left = time(0.1, 0.2, 0.3) },
    ratios = { hidden = hidden, tracing = { low = 0, median = 0.01, high = 0.02, samples = 20 } } } }
end

local exposed = time(0.5, 1, 1.5)

local TestWords = {}

function TestWords.test_the_best_is_sure_only_where_no_interval_reaches_it()
  local fast, slow, near = entry(1, 1, time(1, 1.1, 1.2)), entry(2, 1, time(1.3, 1.4, 1.5)),
    entry(2, 4, time(1.15, 1.3, 1.4))
  local text = words.best { slow, fast }
  luaunit.assertStrContains(text, "1 thread, 1 channel: 1.10 ms (1.00 to 1.20). No other")
  luaunit.assertStrContains(text, "sure of these launches")
  text = words.best { slow, near, fast }
  luaunit.assertStrContains(text, "not sure: the intervals of 2 threads, 4 channels reach it")
  luaunit.assertStrContains(words.best { fast }, "One configuration is measured")
end

-- GEMMs alone should take the same in every launch; where they do not, the machine changed.
function TestWords.test_a_machine_that_changed_between_launches_makes_nothing_sure()
  local fast, slow = entry(1, 1, time(1, 1.1, 1.2)), entry(2, 1, time(1.3, 1.4, 1.5))
  slow.result.times.gemms = time(1.2, 1.25, 1.3)
  luaunit.assertStrContains(words.best { fast, slow }, "That is not sure: the machine changed between"
    .. " launches: GEMMs alone, which should take the same, took 1.00 ms (0.99 to 1.01) with 1 thread,"
    .. " 1 channel and 1.25 ms (1.20 to 1.30) with 2 threads, 1 channel.")
  local verdict, why = words.verdict(fast.result, slow.result, "overlapped", true)
  luaunit.assertEquals({ verdict, why }, { nil, "changed" })
  luaunit.assertEquals(words.verdict(fast.result, slow.result, "overlapped", false), "longer")
  luaunit.assertEquals(words.verdict(slow.result, fast.result, "overlapped", false), "shorter")
end

-- 1.20 and 1.30 do not meet, but would on a machine that is as much slower as GEMMs alone allow.
function TestWords.test_what_gemms_alone_allow_is_no_difference()
  local fast, slow = entry(1, 1, time(1, 1.1, 1.2)), entry(2, 1, time(1.3, 1.4, 1.5))
  luaunit.assertEquals(words.verdict(fast.result, slow.result, "overlapped", true), "longer")
  fast.result.times.gemms, slow.result.times.gemms = time(0.95, 1, 1.05), time(0.95, 1, 1.05)
  luaunit.assertEquals(select(2, words.verdict(fast.result, slow.result, "overlapped", true)), "meet")
  luaunit.assertStrContains(words.best { fast, slow }, "the intervals of 2 threads, 1 channel reach it")
end

-- Nobody's numbers: what is hidden is at most all, and overlapped steps have their GEMMs in them.
function TestWords.test_numbers_that_contradict_each_other_give_no_share()
  local function told(change)
    local one = entry(1, 1, time(1, 1, 1), exposed, { low = 0.6, median = 0.75, high = 0.8 }).result
    luaunit.assertTrue(words.knows_hidden(one))
    change(one)
    luaunit.assertFalse(words.knows_hidden(one))
    luaunit.assertStrContains(words.hidden(one), "The machine was disturbed, or the numbers contradict")
    luaunit.assertNotStrContains(words.hidden(one), "overlapping hides")
    luaunit.assertNotStrContains(words.cost(one), " %")
    return words.hidden(one)
  end
  luaunit.assertStrContains(told(function(one)
    one.ratios.hidden = { low = 1.77, median = 2.19, high = 4.54, samples = 20 }
  end), "more than there is: 219 % (177 % to 454 %)")
  luaunit.assertStrContains(told(function(one) one.times.left = time(-0.5, -0.4, -0.1) end),
    "less than their GEMMs alone, by 0.40 ms (0.10 to 0.50)")
  luaunit.assertStrContains(told(function(one) one.ranks[1].gemm_us = 670 end), "0.67 ms, less than alone")
  luaunit.assertStrContains(told(function(one)
    one.ranks[1].gemm_us, one.ranks[1].gemm_cpu_us, one.ranks[1].communication_cpu_us = 371e3, 171e3, 10e3
  end), "for 190.00 ms others had their processor")
end

-- More ranks than cores: others of the same step have the processor, and steps say what they say.
function TestWords.test_ranks_that_share_cores_disturb_nobody()
  local one = entry(1, 1, time(1, 1, 1), exposed, { low = 0.6, median = 0.75, high = 0.8 }).result
  one.ranks = { one.ranks[1], { gemm_us = 2200, gemm_cpu_us = 1000, communication_cpu_us = 50 },
    one.ranks[1] }
  luaunit.assertTrue(words.knows_hidden(one))
  one.machine.cores = 3
  luaunit.assertFalse(words.knows_hidden(one))
end

function TestWords.test_kernels_of_a_gpu_are_not_compared_with_steps_that_have_pauses()
  local one = entry(1, 1, time(1, 1, 1), exposed, { low = 0.6, median = 0.75, high = 0.8 }).result
  one.backend, one.ranks[1].gemm_us = "cuda", 670
  luaunit.assertTrue(words.knows_hidden(one))
  luaunit.assertStrContains(words.cost(one), "no saying what communication cost them")
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
  luaunit.assertFalse(words.knows_hidden(one.result))
end

-- Of steps without any collective a few take longer by chance.
function TestWords.test_of_a_few_steps_nothing_is_told()
  local one = entry(1, 1, time(1, 1, 1), time(0.5, 1, 1.5), { low = 0.9, median = 1, high = 1 })
  luaunit.assertTrue(words.knows_hidden(one.result))
  one.result.times.exposed.samples = 5
  luaunit.assertFalse(words.knows_hidden(one.result))
  luaunit.assertStrContains(words.hidden(one.result), "is not known of 5 steps")
end

-- Their least and greatest are no interval, and nothing that is said is sure.
function TestWords.test_fewer_than_six_steps_have_no_interval()
  local fast, slow = entry(1, 1, time(1, 1.1, 1.2)), entry(2, 1, time(1.3, 1.4, 1.5))
  slow.result.times.overlapped.samples = 5
  luaunit.assertEquals({ words.verdict(fast.result, slow.result, "overlapped", true) }, { nil, "few" })
  luaunit.assertEquals({ words.verdict(slow.result, fast.result, "overlapped", false) }, { nil, "few" })
  luaunit.assertStrContains(words.best { fast, slow }, "Whether that is so is not known of fewer than 6")
  luaunit.assertStrContains(words.best { slow }, "1.40 ms (of 5 steps) a step")
  luaunit.assertNil(words.interval(slow.result.times.overlapped, 1, "%.0f"))
  slow.result.times.overlapped.samples = 6
  luaunit.assertEquals(words.interval(slow.result.times.overlapped, 1e-3, "%.1f"), "1.3 to 1.5")
  luaunit.assertStrContains(words.tracing(slow.result), "95 % interval 0.0 to 2.0 %")
  slow.result.ratios.tracing.samples = 1
  luaunit.assertEquals(words.tracing(slow.result), "What tracing costs is not known of 1 step.")
end

function TestWords.test_shared_cores_and_own_cores_are_told_apart()
  local one, more = entry(1, 1, time(1, 1, 1)).result, entry(2, 2, time(1, 1, 1)).result
  luaunit.assertStrContains(words.why({ one }, 2), "4 threads share 2 cores: what moves data")
  luaunit.assertStrContains(words.why({ one, more }, 2), "4 to 6 threads share 2 cores: what moves data")
  one.machine.cores = 4
  luaunit.assertStrContains(words.why({ one }, 2), "cores of its own")
  luaunit.assertStrContains(words.why({ one, more }, 2), "share 4 cores: where they are more than")
end

function TestWords.test_a_cost_within_noise_is_no_percentage()
  local one = entry(1, 1, time(1, 1, 1), exposed, { low = 0.6, median = 0.75, high = 0.8 }).result
  one.times.gemms.high, one.ranks[1].gemm_us = 1.3e3, 1.3e3
  one.ranks[1].gemm_cpu_us = 1.3e3
  luaunit.assertStrContains(words.cost(one), "no more than alone within noise")
  one.times.gemms.high = 1.2e3
  luaunit.assertStrContains(words.cost(one), "% against")
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
