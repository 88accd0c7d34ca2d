-- The sentences of a page: they claim only facts that the numbers support.
local luaunit = require "luaunit"
local findings = require "workload.findings"

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
      exposed = exposed, left = time(0.1, 0.2, 0.3), gemms_beside = time(1, 1.1, 1.2),
      gemms_alone = time(0.9, 1, 1.1) },
    ratios = { hidden = hidden, cost = { low = 0.05, median = 0.1, high = 0.15, samples = 20 },
      tracing = { low = 0, median = 0.01, high = 0.02, samples = 20 } } } }
end

local exposed = time(0.5, 1, 1.5)

local TestWords = {}

function TestWords.test_the_best_is_sure_only_where_no_interval_reaches_it()
  local fast, slow, near = entry(1, 1, time(1, 1.1, 1.2)), entry(2, 1, time(1.3, 1.4, 1.5)),
    entry(2, 4, time(1.15, 1.3, 1.4))
  local text = findings.best { slow, fast }
  luaunit.assertStrContains(text, "1 thread, 1 channel: 1.10 ms (1.00 to 1.20). No other")
  luaunit.assertStrContains(text, "certain for these launches")
  text = findings.best { slow, near, fast }
  luaunit.assertStrContains(text, "uncertain: the intervals of 2 threads, 4 channels reach it")
  luaunit.assertStrContains(findings.best { fast }, "One configuration is measured")
end

-- GEMMs alone should take the same time in every launch; otherwise the machine changed.
function TestWords.test_a_machine_that_changed_between_launches_makes_nothing_sure()
  local fast, slow = entry(1, 1, time(1, 1.1, 1.2)), entry(2, 1, time(1.3, 1.4, 1.5))
  slow.result.times.gemms = time(1.2, 1.25, 1.3)
  luaunit.assertStrContains(findings.best { fast, slow }, "That is uncertain: the machine changed between"
    .. " launches: GEMMs alone, which should take the same time, took 1.00 ms (0.99 to 1.01) with 1 thread,"
    .. " 1 channel and 1.25 ms (1.20 to 1.30) with 2 threads, 1 channel.")
  local verdict, why = findings.verdict(fast.result, slow.result, "overlapped", true)
  luaunit.assertEquals({ verdict, why }, { nil, "changed" })
  luaunit.assertEquals(findings.verdict(fast.result, slow.result, "overlapped", false), "longer")
  luaunit.assertEquals(findings.verdict(slow.result, fast.result, "overlapped", false), "shorter")
end

-- 1.20 and 1.30 do not meet, but would on a machine that is slower by as much as the GEMMs alone show.
function TestWords.test_differences_within_those_of_gemms_alone_are_none()
  local fast, slow = entry(1, 1, time(1, 1.1, 1.2)), entry(2, 1, time(1.3, 1.4, 1.5))
  luaunit.assertEquals(findings.verdict(fast.result, slow.result, "overlapped", true), "longer")
  fast.result.times.gemms, slow.result.times.gemms = time(0.95, 1, 1.05), time(0.95, 1, 1.05)
  luaunit.assertEquals(select(2, findings.verdict(fast.result, slow.result, "overlapped", true)), "meet")
  luaunit.assertStrContains(findings.best { fast, slow }, "the intervals of 2 threads, 1 channel reach it")
end

-- Made-up numbers: the hidden time is at most all of it, and overlapped steps include their GEMMs.
function TestWords.test_numbers_that_contradict_each_other_give_no_share()
  local function sentence(change)
    local one = entry(1, 1, time(1, 1, 1), exposed, { low = 0.6, median = 0.75, high = 0.8 }).result
    luaunit.assertTrue(findings.has_hidden(one))
    change(one)
    luaunit.assertFalse(findings.has_hidden(one))
    luaunit.assertStrContains(findings.hidden(one), "The machine was disturbed, or the numbers contradict")
    luaunit.assertNotStrContains(findings.hidden(one), "overlapping hides")
    luaunit.assertNotStrContains(findings.cost(one), " %")
    return findings.hidden(one)
  end
  luaunit.assertStrContains(sentence(function(one)
    one.ratios.hidden = { low = 1.77, median = 2.19, high = 4.54, samples = 20 }
  end), "more than all of it: 219 % (177 % to 454 %)")
  luaunit.assertStrContains(sentence(function(one) one.times.left = time(-0.5, -0.4, -0.1) end),
    "less than their GEMMs alone, by 400.00 us (100.00 to 500.00)")
  luaunit.assertStrContains(sentence(function(one)
    one.ratios.cost = { low = -0.4, median = -0.3, high = -0.12, samples = 20 }
  end), "GEMMs take less beside communication than alone, by 30 % (12 % to 40 %)")
  luaunit.assertStrContains(sentence(function(one)
    one.ranks[1].gemm_us, one.ranks[1].gemm_cpu_us, one.ranks[1].communication_cpu_us = 371e3, 171e3, 10e3
  end), "threads were descheduled for 190.00 ms")
end

-- More ranks than cores: the processor was busy with ranks of the same step, and the hidden time is known.
function TestWords.test_ranks_that_share_cores_are_no_disturbance()
  local one = entry(1, 1, time(1, 1, 1), exposed, { low = 0.6, median = 0.75, high = 0.8 }).result
  one.ranks = { one.ranks[1], { gemm_us = 2200, gemm_cpu_us = 1000, communication_cpu_us = 50 },
    one.ranks[1] }
  luaunit.assertTrue(findings.has_hidden(one))
  one.machine.cores = 3
  luaunit.assertFalse(findings.has_hidden(one))
end

-- GEMMs that take a little less than alone show the effect of the place in a round, not a disturbed machine.
function TestWords.test_gemms_that_are_hardly_faster_contradict_nothing()
  local one = entry(1, 1, time(1, 1, 1), exposed, { low = 0.6, median = 0.75, high = 0.8 }).result
  one.ratios.cost = { low = -0.05, median = -0.03, high = -0.01, samples = 20 }
  luaunit.assertTrue(findings.has_hidden(one))
  luaunit.assertStrContains(findings.cost(one), "costs them -3 % (95 % interval -5 to -1 %; it may cost them"
    .. " nothing)")
end

function TestWords.test_the_hidden_share_has_its_interval()
  local function hidden(low, median, high)
    local shares = { low = low, median = median, high = high }
    return findings.hidden(entry(1, 1, time(1, 1, 1), exposed, shares).result)
  end
  luaunit.assertStrContains(hidden(0.6, 0.75, 0.8), "hides 75 % of that (95 % interval 60 % to 80 %; surely")
  luaunit.assertStrContains(hidden(-0.1, 0.2, 0.5), "it may be none")
  luaunit.assertStrContains(hidden(-0.9, -0.7, -0.5), "surely none: overlapping costs time")
end

function TestWords.test_where_nothing_stands_out_nothing_is_hidden()
  local one = entry(1, 1, time(1, 1, 1), time(-0.5, 0.5, 1.5), { low = 0.9, median = 1, high = 1 })
  luaunit.assertStrContains(findings.hidden(one.result), "is within noise")
  luaunit.assertFalse(findings.has_hidden(one.result))
end

-- Of steps without any collective a few take longer by chance.
function TestWords.test_few_steps_allow_no_conclusion()
  local one = entry(1, 1, time(1, 1, 1), time(0.5, 1, 1.5), { low = 0.9, median = 1, high = 1 })
  luaunit.assertTrue(findings.has_hidden(one.result))
  one.result.times.exposed.samples = 5
  luaunit.assertFalse(findings.has_hidden(one.result))
  luaunit.assertStrContains(findings.hidden(one.result), "are unknown from 5 steps")
end

-- The least and greatest of few steps are no interval, and no conclusion from them is certain.
function TestWords.test_fewer_than_six_steps_have_no_interval()
  local fast, slow = entry(1, 1, time(1, 1.1, 1.2)), entry(2, 1, time(1.3, 1.4, 1.5))
  slow.result.times.overlapped.samples = 5
  luaunit.assertEquals({ findings.verdict(fast.result, slow.result, "overlapped", true) }, { nil, "few" })
  luaunit.assertEquals({ findings.verdict(slow.result, fast.result, "overlapped", false) }, { nil, "few" })
  luaunit.assertStrContains(findings.best { fast, slow }, "The order is unknown for fewer than 6")
  luaunit.assertStrContains(findings.best { slow }, "1.40 ms (of 5 steps) a step")
  luaunit.assertNil(findings.interval(slow.result.times.overlapped, 1, "%.0f"))
  slow.result.times.overlapped.samples = 6
  luaunit.assertEquals(findings.interval(slow.result.times.overlapped, 1e-3, "%.1f"), "1.3 to 1.5")
  luaunit.assertStrContains(findings.tracing(slow.result), "95 % interval 0.0 to 2.0 %")
  slow.result.ratios.tracing.samples = 1
  luaunit.assertEquals(findings.tracing(slow.result), "The cost of tracing is unknown from 1 step.")
end

-- In milliseconds with two decimals 30 us would be 0.03, from 0.03 to 0.03.
function TestWords.test_short_steps_keep_their_intervals()
  local one = entry(1, 1, time(0.0295, 0.0312, 0.0333), time(0.0004, 0.0008, 0.0013),
    { low = 0.6, median = 0.75, high = 0.8 })
  one.result.times.gemms, one.result.times.serial = time(0.0288, 0.0301, 0.0322), time(0.99, 1.01, 1.02)
  one.result.ranks = { { gemm_us = 30, gemm_cpu_us = 29.5, communication_cpu_us = 1.25 } }
  luaunit.assertEquals(findings.times(one.result), "A step takes 30.10 us (28.80 to 32.20) of GEMMs alone,"
    .. " 1.01 ms (0.99 to 1.02) if each collective is waited for at once, and 31.20 us (29.50 to 33.30)"
    .. " overlapped.")
  luaunit.assertStrContains(findings.best { one }, "1 channel, 31.20 us (29.50 to 33.30) a step")
  luaunit.assertStrContains(findings.hidden(one.result),
    "The collectives add 0.80 us (0.40 to 1.30) to a step")
  luaunit.assertStrContains(findings.cost(one.result), "for 29.50 us, and moving data for 1.25 us")
  luaunit.assertEquals({ findings.unit_of { one.result, entry(1, 1, time(2, 3, 4)).result } }, { "us", 1 })
  luaunit.assertEquals({ findings.unit_of { entry(1, 1, time(2, 3, 4)).result } }, { "ms", 1e3 })
end

-- On a GPU the cost of events was never measured.
function TestWords.test_the_timing_of_kernels_is_reported_without_its_cost()
  local one = entry(1, 1, time(1, 1, 1)).result
  one.backend, one.clock = "cuda", "event"
  luaunit.assertEquals(findings.why({ one }, 2),
    "Kernels are timed by events around each GEMM and each collective.")
  one.clock = "cupti"
  luaunit.assertEquals(findings.why({ one }, 2), "The times of kernels are from CUPTI.")
  local other = entry(2, 1, time(1, 1, 1)).result
  other.backend, other.clock = "cuda", "event"
  luaunit.assertEquals(findings.why({ one, other }, 2),
    "The times of kernels are from CUPTI in 1 of 2 configurations;"
    .. " in the others kernels are timed by events around each GEMM and each collective.")
end

function TestWords.test_shared_cores_and_own_cores_are_distinguished()
  local one, more = entry(1, 1, time(1, 1, 1)).result, entry(2, 2, time(1, 1, 1)).result
  luaunit.assertStrContains(findings.why({ one }, 2), "4 threads share 2 cores: threads that move data")
  luaunit.assertStrContains(findings.why({ one, more }, 2), "4 to 6 threads share 2 cores: threads that move")
  one.machine.cores = 4
  luaunit.assertStrContains(findings.why({ one }, 2), "have their own cores")
  luaunit.assertStrContains(findings.why({ one, more }, 2), "share 4 cores: if they are more than")
end

function TestWords.test_the_cost_of_communication_for_gemms_has_its_interval()
  local one = entry(1, 1, time(1, 1, 1), exposed, { low = 0.6, median = 0.75, high = 0.8 }).result
  luaunit.assertEquals(findings.cost(one), "GEMMs take 1.10 ms of a step beside communication, 1.00 ms alone."
    .. " Communication costs them +10 % (95 % interval +5 to +15 %). They run on a processor for 1.00 ms, and"
    .. " moving data for 50.00 us.")
  one.ratios.cost.low = -0.002
  luaunit.assertStrContains(findings.cost(one), "+10 % (95 % interval 0 to +15 %; it may cost them nothing)")
  one.backend = "cuda"
  luaunit.assertNotStrContains(findings.cost(one), "processor")
  luaunit.assertNotStrContains(findings.cost(one), "multiprocessors")
  one.ratios.cost.low = 0.01
  luaunit.assertStrContains(findings.cost(one),
    "+1 to +15 %; multiprocessors that move data do not multiply)")
  one.ratios.cost.samples = 5
  luaunit.assertStrContains(findings.cost(one), "The cost of communication for them is unknown from 5 steps.")
end

function TestWords.test_different_settings_are_reported()
  local one = entry(2, 1, time(1, 1, 1))
  luaunit.assertNil(findings.used(one))
  one.result.used = { threads = 1, channels = 1 }
  luaunit.assertStrContains(findings.used(one),
    "2 threads, 1 channel were requested; 1 thread, 1 channel were used")
end

function TestWords.test_counts_that_no_log_has_are_unknown()
  local one = entry(512, 28, time(1, 1, 1))
  one.result.backend, one.result.used = "cuda", { threads = 0, channels = 0 }
  one.result.note = "NCCL's log does not show its channels and threads"
  luaunit.assertEquals(findings.used(one),
    "512 threads, 28 channels were requested; NCCL's log does not show its channels and threads")
end

return require "suites" { { "TestWords", TestWords } }
