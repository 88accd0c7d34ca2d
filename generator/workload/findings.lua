-- What the numbers of a configuration say, in words; each sentence says how sure it is. `result` is what
-- configuration.lua returned: medians over the measured steps with 95 % intervals, of the slowest rank of
-- each.
local findings = {}

local MOST_UNEXPLAINED = 0.1 -- of a step's GEMMs: time in which nothing of the rank's own ran
local LEAST_SAMPLES = 6 -- of fewer there is no 95 % interval, and a few are above zero by chance

local function several(count, what) return ("%d %s%s"):format(count, what, count == 1 and "" or "s") end

-- How a configuration, { threads =, channels = }, is called.
function findings.name(entry)
  return several(entry.threads, "thread") .. ", " .. several(entry.channels, "channel")
end

-- What pages say of the intervals that they show.
findings.INTERVALS = ("95 %% intervals, where there are at least %d steps"):format(LEAST_SAMPLES)

-- Whether a summary's low and high are an interval of its median, not just its least and greatest sample.
function findings.has_interval(summary) return summary.samples >= LEAST_SAMPLES end

-- "1.90 to 2.10", of a summary's interval in another unit; nil where it has none.
function findings.interval(summary, scale, format)
  if not findings.has_interval(summary) then return nil end
  return (format .. " to " .. format):format(summary.low * scale, summary.high * scale)
end

-- The unit of times like this one, and its length in us: what takes less than a millisecond would have its
-- digits, and its interval, rounded away in one.
function findings.unit(us)
  if math.abs(us) < 999.995 then return "us", 1 end -- what is not written as 1000.00
  return "ms", 1e3
end

-- The unit in which steps of these results stand beside each other: that of the shortest.
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

-- The median of a time with its interval, or of how few steps it is.
local function known(time)
  local _, length = findings.unit(time.median)
  return ("%s (%s)"):format(findings.time(time.median),
    findings.interval(time, 1 / length, "%.2f") or "of " .. several(time.samples, "step"))
end

local function percent(share) return ("%.0f %%"):format(100 * share) end

-- Percent by which something changes, without the sign.
local function change(share) return (("%+.0f"):format(100 * share):gsub("^[+-]0$", "0")) end

-- "GEMMs alone take ..., with each collective waited for ..., overlapped ..."
function findings.times(result)
  local times = result.times
  return ("A step takes %s of GEMMs alone, %s where each collective is waited for at once, and %s"
    .. " overlapped."):format(known(times.gemms), known(times.serial), known(times.overlapped))
end

-- Where a rank's overlapped steps spend their GEMMs: { wall, cpu, communication }, us, of the slowest rank.
local function gemms_of(result)
  local slowest
  for _, rank in ipairs(result.ranks) do
    if not slowest or rank.gemm_us > slowest.gemm_us then slowest = rank end
  end
  return { wall = slowest.gemm_us, cpu = slowest.gemm_cpu_us, communication = slowest.communication_cpu_us }
end

-- Why the numbers cannot be of a machine that was left alone, in a sentence; nil where they can.
local function contradiction(result)
  local hidden, left = result.ratios.hidden, result.times.left
  if findings.has_interval(left) and left.high < 0 then
    return "overlapped steps take less than their GEMMs alone, by " .. known { median = -left.median,
      low = -left.high, high = -left.low, samples = left.samples }
  end
  if findings.has_interval(hidden) and hidden.low > 1 then
    return ("overlapping seems to hide more than there is: %s (%s to %s)"):format(percent(hidden.median),
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
    return ("overlapped GEMMs take %s, run on a processor for %s of that, and moving data runs for %s: for %s"
      .. " %s"):format(findings.time(gemms.wall), findings.time(gemms.cpu),
        findings.time(gemms.communication),
      findings.time(unexplained), result.wait == "futex" and "others had their processor"
      or "threads that poll, or others, had it")
  end
end

-- Whether the numbers say how much was hidden: the collectives' time is told from noise, and nothing
-- contradicts itself.
function findings.knows_hidden(result)
  local exposed = result.times.exposed
  return findings.has_interval(exposed) and findings.has_interval(result.ratios.hidden) and exposed.low > 0
    and not contradiction(result)
end

-- How much of the communication was hidden.
function findings.hidden(result)
  local hidden, exposed = result.ratios.hidden, result.times.exposed
  local why = contradiction(result)
  if why then
    return ("The machine was disturbed, or the numbers contradict each other: %s. There is no saying how much"
      .. " was hidden."):format(why)
  end
  if not findings.has_interval(exposed) or not findings.has_interval(hidden) then
    return ("What the collectives add to a step, and how much of it was hidden, is not known of %s."):format(
      several(math.min(exposed.samples, hidden.samples), "step"))
  end
  if not findings.knows_hidden(result) then
    return ("What the collectives add to a step, %s, cannot be told from noise: there is no saying how much"
      .. " was hidden."):format(known(exposed))
  end
  local sure = hidden.low > 0 and "surely some" or hidden.high < 0 and "surely none: overlapping costs time"
    or hidden.median < 0 and "it may be none, or cost time" or "it may be none"
  return ("The collectives add %s to a step, and overlapping hides %s of that (95 %% interval %s to %s;"
    .. " %s)."):format(known(exposed), percent(hidden.median), percent(hidden.low), percent(hidden.high),
    sure)
end

-- How much longer GEMMs take beside communication, and how sure that is.
local function cost_of(result)
  local cost = result.ratios.cost
  if not findings.has_interval(cost) then
    return ("What communication costs them is not known of %s."):format(several(cost.samples, "step"))
  end
  if contradiction(result) then return "What of that communication costs them these numbers do not say." end
  local sure = cost.low <= 0 and "; it may cost them nothing"
    or result.backend == "cuda" and "; multiprocessors that move data do not multiply" or ""
  return ("Communication costs them %s %% (95 %% interval %s to %s %%%s)."):format(change(cost.median),
    change(cost.low), change(cost.high), sure)
end

-- What communication at the same time cost the GEMMs: the sums of their intervals in neighbouring steps, with
-- it and without it; on a processor, how much of the former they ran.
function findings.cost(result)
  local times, gemms = result.times, gemms_of(result)
  local text = ("GEMMs take %s of a step beside communication, %s alone. %s"):format(
    findings.time(times.gemms_beside.median), findings.time(times.gemms_alone.median), cost_of(result))
  if result.backend == "cuda" then return text end
  return ("%s They run on a processor for %s, and moving data for %s."):format(text, findings.time(gemms.cpu),
    findings.time(gemms.communication))
end

-- The source of the kernels' times; CUPTI may have lost records of some configurations.
local function told_by(results)
  local by_cupti = 0
  for _, result in ipairs(results) do by_cupti = by_cupti + (result.clock == "cupti" and 1 or 0) end
  if by_cupti == #results then return "Kernels are told of by CUPTI." end
  local events = "timed by events around each GEMM and each collective"
  if by_cupti == 0 then return ("Kernels are %s."):format(events) end
  return ("Kernels of %d of %d configurations are told of by CUPTI, those of the others %s."):format(by_cupti,
    #results, events)
end

-- Why, of one configuration or of several on a machine; on a GPU, how its time line was taken.
function findings.why(results, ranks)
  local first = results[1]
  if first.backend == "cuda" then return told_by(results) end
  local least, most = math.huge, 0
  for _, result in ipairs(results) do
    local threads = ranks * (1 + result.used.threads)
    least, most = math.min(least, threads), math.max(most, threads)
  end
  local cores, count = first.machine.cores, least == most and tostring(least)
    or ("%d to %d"):format(least, most)
  if most <= cores then
    return ("%s threads have %d cores: what moves data has cores of its own."):format(count, cores)
  end
  return ("%s threads share %d cores: %swhat moves data takes its time from the GEMMs, so that only waiting"
    .. " for other ranks can be hidden, not moving."):format(count, cores,
    least <= cores and "where they are more than these, " or "")
end

function findings.tracing(result)
  local tracing = result.ratios.tracing
  if not findings.has_interval(tracing) then
    return ("What tracing costs is not known of %s."):format(several(tracing.samples, "step"))
  end
  return ("Tracing costs %.1f %% of a step (95 %% interval %.1f to %.1f %%)."):format(100 * tracing.median,
    100 * tracing.low, 100 * tracing.high)
end

-- What was asked for and what there was.
function findings.used(entry)
  local used = entry.result.used
  if used.channels == entry.channels and used.threads == entry.threads then return entry.result.note end
  if used.channels == 0 or used.threads == 0 then -- the log has no such line
    return ("%s were asked for%s"):format(findings.name(entry),
      entry.result.note and "; " .. entry.result.note or ".")
  end
  if entry.result.backend == "cuda" then
    return ("%s were asked for; NCCL's log says %s%s"):format(findings.name(entry), findings.name(used),
      entry.result.note and "; " .. entry.result.note or ".")
  end
  return ("%s were asked for; %s were used: a thread without a channel has nothing to do.%s"):format(
    findings.name(entry), findings.name(used), entry.result.note and " " .. entry.result.note .. "." or "")
end

-- What the sureness of comparisons between configurations is of.
findings.LAUNCHES = "Each configuration is one launch, one after another; intervals are of the steps within a"
  .. " launch. GEMMs alone, which should take the same in all, say what else changed between launches."

-- Whether the machine was the same in both launches, judged by GEMMs alone: true, and by what factor
-- they differ at most, their intervals included; or false.
local function drift(a, b)
  local x, y = a.times.gemms, b.times.gemms
  if x.high < y.low or y.high < x.low then return false end
  return true, math.max(x.high, y.high) / math.min(x.low, y.low)
end

-- How time `name` of result b compares with a's: "shorter" or "longer" where that is sure; else nil and why:
-- "few": one is of too few steps to have an interval; "meet": the intervals do, or would if the machine was
-- as much slower as GEMMs alone allow; "changed": GEMMs alone, which should take the same in both, differ.
-- `controlled`: they should.
function findings.verdict(a, b, name, controlled)
  local x, y, stretch = a.times[name], b.times[name], 1
  if not findings.has_interval(x) or not findings.has_interval(y) then return nil, "few" end
  if controlled then
    local alike, factor = drift(a, b)
    if not alike then return nil, "changed" end
    stretch = factor
  end
  if y.high * stretch < x.low then return "shorter" end
  if x.high * stretch < y.low then return "longer" end
  return nil, "meet"
end

-- What stands where a verdict is "few".
findings.FEW = ("not known of fewer than %d steps"):format(LEAST_SAMPLES)

-- "not sure: ..." about GEMMs alone in two launches.
local function changed(a, b)
  return ("the machine changed between launches: GEMMs alone, which should take the same, took %s with %s and"
    .. " %s with %s"):format(known(a.result.times.gemms), findings.name(a), known(b.result.times.gemms),
    findings.name(b))
end

-- Which configuration had the shortest overlapped step, and how sure that is. `entries`: those with a result.
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
    if why == "few" then return ("%s Whether that is so is %s."):format(text, findings.FEW) end
    if why == "changed" then return ("%s That is not sure: %s."):format(text, changed(best, order[i])) end
    if not longer then close[#close + 1] = findings.name(order[i]) end
  end
  if #close == 0 then
    return text .. " No other interval reaches it, not even if the machine was as much slower then as GEMMs"
      .. " alone allow: that is sure of these launches."
  end
  return text .. (" That is not sure: the intervals of %s reach it, or would with a machine that is slower by"
    .. " as much as GEMMs alone differ."):format(table.concat(close, "; "))
end

return findings
