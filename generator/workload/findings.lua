-- The results of a configuration, in sentences with their certainty. `result` is that of configuration.lua:
-- medians over the measured steps with 95 % intervals, of the slowest rank of each step.
local sequences = require "base.sequences"

local findings = {}

local MOST_UNEXPLAINED = 0.1 -- of a step's GEMMs: time in which no thread of the rank ran
local LEAST_SAMPLES = 6 -- fewer give no 95 % interval; a few may be above zero by chance

local function several(count, what) return ("%d %s%s"):format(count, what, count == 1 and "" or "s") end

-- The name of a configuration, { threads =, channels = }.
function findings.name(entry)
  return several(entry.threads, "thread") .. ", " .. several(entry.channels, "channel")
end

-- The text of pages about the intervals that they show.
findings.INTERVALS = ("95 %% intervals, if there are at least %d steps"):format(LEAST_SAMPLES)

-- Whether a summary's low and high are an interval of its median, not only its smallest and largest sample.
function findings.has_interval(summary) return summary.samples >= LEAST_SAMPLES end

-- "1.90 to 2.10", of a summary's interval in another unit; nil if it has none.
function findings.interval(summary, scale, format)
  if not findings.has_interval(summary) then return nil end
  return (format .. " to " .. format):format(summary.low * scale, summary.high * scale)
end

-- The unit of times like this one, and its length in us. Times below a millisecond are in us, because
-- rounding would remove their digits, and their interval.
function findings.unit(us)
  if math.abs(us) < 999.995 then return "us", 1 end -- below 1000.00 after rounding
  return "ms", 1e3
end

-- The unit for steps of these results side by side: that of the shortest.
function findings.unit_of(results)
  local least = math.huge
  for _, result in ipairs(results) do
    for _, name in ipairs { "gemms", "serial", "overlapped" } do
      least = math.min(least, result.times[name].median)
    end
  end
  return findings.unit(least)
end

-- "1.25 ms"
function findings.time(us)
  local unit, length = findings.unit(us)
  return ("%.2f %s"):format(us / length, unit)
end

-- The median of a time with its interval, or with the number of steps if they are too few.
local function known(time)
  local _, length = findings.unit(time.median)
  return ("%s (%s)"):format(findings.time(time.median),
    findings.interval(time, 1 / length, "%.2f") or "of " .. several(time.samples, "step"))
end

local function percent(share) return ("%.0f %%"):format(100 * share) end

-- Percent by which something changes; a change that rounds to 0 has no sign.
local function change(share) return (("%+.0f"):format(100 * share):gsub("^[+-]0$", "0")) end

-- "GEMMs alone take ..., with each collective waited for ..., overlapped ..."
function findings.times(result)
  local times = result.times
  return ("A step takes %s of GEMMs alone, %s if each collective is waited for at once, and %s"
    .. " overlapped."):format(known(times.gemms), known(times.serial), known(times.overlapped))
end

-- The parts of the GEMMs in a rank's overlapped steps: { wall, cpu, communication }, us, of the slowest rank.
local function gemms_of(result)
  local slowest = sequences.largest(result.ranks, function(rank) return rank.gemm_us end)
  return { wall = slowest.gemm_us, cpu = slowest.gemm_cpu_us, communication = slowest.communication_cpu_us }
end

-- The reason why the numbers show a disturbed machine, in a sentence; nil if they do not.
local function contradiction(result)
  local hidden, left = result.ratios.hidden, result.times.left
  if findings.has_interval(left) and left.high < 0 then
    return "overlapped steps take less than their GEMMs alone, by " .. known { median = -left.median,
      low = -left.high, high = -left.low, samples = left.samples }
  end
  if findings.has_interval(hidden) and hidden.low > 1 then
    return ("overlapping seems to hide more than all of it: %s (%s to %s)"):format(percent(hidden.median),
      percent(hidden.low), percent(hidden.high))
  end
  local gemms, cost = gemms_of(result), result.ratios.cost
  if findings.has_interval(cost) and cost.high < -MOST_UNEXPLAINED then
    return ("GEMMs take less beside communication than alone, by %s (%s to %s)"):format(
      percent(-cost.median), percent(-cost.high), percent(-cost.low))
  end
  if result.backend == "cuda" then return nil end
  local unexplained = gemms.wall - gemms.cpu - gemms.communication
  if #result.ranks <= result.machine.cores and unexplained > MOST_UNEXPLAINED * gemms.wall then
    return ("overlapped GEMMs take %s, run on a processor for %s of that, and moving data runs for %s;"
      .. " threads were descheduled for %s%s"):format(findings.time(gemms.wall), findings.time(gemms.cpu),
        findings.time(gemms.communication), findings.time(unexplained),
        result.wait == "futex" and "" or ", also by threads that poll")
  end
end

-- Whether the hidden part of the communication is known: the collectives' time is above noise, and no numbers
-- contradict each other.
function findings.has_hidden(result)
  local exposed = result.times.exposed
  return findings.has_interval(exposed) and findings.has_interval(result.ratios.hidden) and exposed.low > 0
    and not contradiction(result)
end

-- A sentence about the hidden part of the communication.
function findings.hidden(result)
  local hidden, exposed = result.ratios.hidden, result.times.exposed
  local why = contradiction(result)
  if why then
    return ("The machine was disturbed, or the numbers contradict each other: %s. The hidden time cannot be"
      .. " estimated."):format(why)
  end
  if not findings.has_interval(exposed) or not findings.has_interval(hidden) then
    return ("The time that collectives add to a step, and its hidden part, are unknown from %s."):format(
      several(math.min(exposed.samples, hidden.samples), "step"))
  end
  if not findings.has_hidden(result) then
    return ("The time that collectives add to a step, %s, is within noise; its hidden part cannot be"
      .. " estimated."):format(known(exposed))
  end
  local sure = hidden.low > 0 and "surely some" or hidden.high < 0 and "surely none: overlapping costs time"
    or hidden.median < 0 and "it may be none, or cost time" or "it may be none"
  return ("The collectives add %s to a step, and overlapping hides %s of that (95 %% interval %s to %s;"
    .. " %s)."):format(known(exposed), percent(hidden.median), percent(hidden.low), percent(hidden.high),
    sure)
end

-- The slowdown of GEMMs beside communication, with its certainty.
local function cost_of(result)
  local cost = result.ratios.cost
  if not findings.has_interval(cost) then
    return ("The cost of communication for them is unknown from %s."):format(several(cost.samples, "step"))
  end
  if contradiction(result) then return "The part that communication costs them is unknown." end
  local sure = cost.low <= 0 and "; it may cost them nothing"
    or result.backend == "cuda" and "; multiprocessors that move data do not multiply" or ""
  return ("Communication costs them %s %% (95 %% interval %s to %s %%%s)."):format(change(cost.median),
    change(cost.low), change(cost.high), sure)
end

-- The cost for GEMMs of communication at the same time: the sums of their intervals in neighbouring steps,
-- with it and without it; on a processor, also the time in which the former ran.
function findings.cost(result)
  local times, gemms = result.times, gemms_of(result)
  local text = ("GEMMs take %s of a step beside communication, %s alone. %s"):format(
    findings.time(times.gemms_beside.median), findings.time(times.gemms_alone.median), cost_of(result))
  if result.backend == "cuda" then return text end
  return ("%s They run on a processor for %s, and moving data for %s."):format(text, findings.time(gemms.cpu),
    findings.time(gemms.communication))
end

-- The source of the kernels' times; CUPTI may have lost records of some configurations.
local function clock_of(results)
  local by_cupti = 0
  for _, result in ipairs(results) do by_cupti = by_cupti + (result.clock == "cupti" and 1 or 0) end
  if by_cupti == #results then return "The times of kernels are from CUPTI." end
  local events = "timed by events around each GEMM and each collective"
  if by_cupti == 0 then return ("Kernels are %s."):format(events) end
  return ("The times of kernels are from CUPTI in %d of %d configurations; in the others kernels are %s.")
    :format(by_cupti, #results, events)
end

-- The reason for the hidden part, of one configuration or of several on a machine; on a GPU, the source of
-- its time line.
function findings.why(results, ranks)
  local first = results[1]
  if first.backend == "cuda" then return clock_of(results) end
  local least, most = math.huge, 0
  for _, result in ipairs(results) do
    local threads = ranks * (1 + result.used.threads)
    least, most = math.min(least, threads), math.max(most, threads)
  end
  local cores, count = first.machine.cores, least == most and tostring(least)
    or ("%d to %d"):format(least, most)
  if most <= cores then
    return ("%s threads have %d cores: threads that move data have their own cores."):format(count, cores)
  end
  return ("%s threads share %d cores: %sthreads that move data take their time from the GEMMs, so only the"
    .. " waiting for other ranks can be hidden, not the movement."):format(count, cores,
    least <= cores and "if they are more than the cores, " or "")
end

function findings.tracing(result)
  local tracing = result.ratios.tracing
  if not findings.has_interval(tracing) then
    return ("The cost of tracing is unknown from %s."):format(several(tracing.samples, "step"))
  end
  return ("Tracing costs %.1f %% of a step (95 %% interval %.1f to %.1f %%)."):format(100 * tracing.median,
    100 * tracing.low, 100 * tracing.high)
end

-- The requested and the used settings.
function findings.used(entry)
  local used = entry.result.used
  if used.channels == entry.channels and used.threads == entry.threads then return entry.result.note end
  if used.channels == 0 or used.threads == 0 then -- the log has no such line
    return ("%s were requested%s"):format(findings.name(entry),
      entry.result.note and "; " .. entry.result.note or ".")
  end
  if entry.result.note and entry.result.note:find("all ranks share one GPU", 1, true) then
    return ("%s were requested; %s were used; %s"):format(findings.name(entry), findings.name(used),
      entry.result.note)
  end
  if entry.result.backend == "cuda" then
    return ("%s were requested; NCCL's log has %s%s"):format(findings.name(entry), findings.name(used),
      entry.result.note and "; " .. entry.result.note or ".")
  end
  return ("%s were requested; %s were used: a thread without a channel has no work.%s"):format(
    findings.name(entry), findings.name(used), entry.result.note and " " .. entry.result.note .. "." or "")
end

-- The basis of the certainty of comparisons between configurations.
findings.LAUNCHES = "Each configuration is one launch, one after another; intervals are of the steps within a"
  .. " launch. GEMMs alone should take the same time in all; they show other changes between launches."

-- Whether the machine was the same in both launches, judged by GEMMs alone: true, and the factor by which
-- they differ at most, including their intervals; or false.
local function drift(a, b)
  local x, y = a.times.gemms, b.times.gemms
  if x.high < y.low or y.high < x.low then return false end
  return true, math.max(x.high, y.high) / math.min(x.low, y.low)
end

-- Compares time `name` of result b with a's: "shorter" or "longer" if that is certain; else nil and the
-- reason. "few": one has too few steps for an interval; "meet": the intervals overlap, or would overlap on a
-- machine slower by the difference of GEMMs alone; "changed": GEMMs alone differ, although they should take
-- the same time in both. `controlled`: whether they should.
function findings.verdict(a, b, name, controlled)
  local x, y, stretch = a.times[name], b.times[name], 1
  if not findings.has_interval(x) or not findings.has_interval(y) then return nil, "few" end
  if controlled then
    local is_same, factor = drift(a, b)
    if not is_same then return nil, "changed" end
    stretch = factor
  end
  if y.high * stretch < x.low then return "shorter" end
  if x.high * stretch < y.low then return "longer" end
  return nil, "meet"
end

-- The text for the verdict "few".
findings.FEW = ("unknown for fewer than %d steps"):format(LEAST_SAMPLES)

-- The text for the verdict "changed", about GEMMs alone in two launches.
local function changed(a, b)
  return ("the machine changed between launches: GEMMs alone, which should take the same time, took %s with"
    .. " %s and %s with %s"):format(known(a.result.times.gemms), findings.name(a),
    known(b.result.times.gemms), findings.name(b))
end

-- The configuration with the shortest overlapped step, and its certainty. `entries`: those with a result.
function findings.best(entries)
  local order = table.move(entries, 1, #entries, 1, {})
  table.sort(order, function(a, b)
    return a.result.times.overlapped.median < b.result.times.overlapped.median
  end)
  local best, close = order[1], {}
  local time = best.result.times.overlapped
  if #order == 1 then
    return ("One configuration is measured: %s, %s a step."):format(findings.name(best), known(time))
  end
  local text = ("The shortest step is that of %s: %s."):format(findings.name(best), known(time))
  for i = 2, #order do
    local longer, why = findings.verdict(best.result, order[i].result, "overlapped", true)
    if why == "few" then return ("%s The order is %s."):format(text, findings.FEW) end
    if why == "changed" then return ("%s That is uncertain: %s."):format(text, changed(best, order[i])) end
    if not longer then close[#close + 1] = findings.name(order[i]) end
  end
  if #close == 0 then
    return text .. " No other interval reaches it, even on a machine slower by the difference of GEMMs alone:"
      .. " that is certain for these launches."
  end
  return text .. (" That is uncertain: the intervals of %s reach it, or reach it on a machine slower by"
    .. " the difference of GEMMs alone."):format(table.concat(close, "; "))
end

return findings
