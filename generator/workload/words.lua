-- What the numbers of a configuration say, in words; each sentence says how sure it is. `result` is what
-- session.lua returned: medians over the measured steps with 95 % intervals, of the slowest rank of each.
local words = {}

local LEAST_SAMPLES = 6 -- of fewer there is no 95 % interval, and a few are above zero by chance

local function several(count, what) return ("%d %s%s"):format(count, what, count == 1 and "" or "s") end

-- How a configuration, { threads =, channels = }, is called.
function words.name(entry)
  return several(entry.threads, "thread") .. ", " .. several(entry.channels, "channel")
end

-- Milliseconds of a time, with its interval.
local function ms(time)
  return ("%.2f ms (%.2f to %.2f)"):format(time.median / 1e3, time.low / 1e3, time.high / 1e3)
end

local function percent(share) return ("%.0f %%"):format(100 * share) end

-- "GEMMs alone take ..., with each collective waited for ..., overlapped ..."
function words.times(result)
  local times = result.times
  return ("A step takes %s of GEMMs alone, %s where each collective is waited for at once, and %s"
    .. " overlapped."):format(ms(times.gemms), ms(times.serial), ms(times.overlapped))
end

-- Whether there is anything to hide: the collectives' time is told from noise.
function words.has_exposed(result)
  local exposed = result.times.exposed
  return exposed.samples >= LEAST_SAMPLES and exposed.low > 0
end

-- How much of the communication was hidden.
function words.hidden(result)
  local hidden, exposed = result.ratios.hidden, result.times.exposed
  if not words.has_exposed(result) then
    return ("What the collectives add to a step, %s, cannot be told from noise: there is no saying how much"
      .. " was hidden."):format(ms(exposed))
  end
  local sure = hidden.low > 0 and "surely some" or hidden.high < 0 and "surely none: overlapping costs time"
    or "it may be none"
  return ("The collectives add %s to a step, and overlapping hides %s of that (95 %% interval %s to %s;"
    .. " %s)."):format(ms(exposed), percent(hidden.median), percent(hidden.low), percent(hidden.high), sure)
end

-- What communication at the same time cost the GEMMs: their intervals against their processor time and
-- against GEMMs alone.
function words.cost(result)
  local wall, cpu, communication = 0, 0, 0
  for _, rank in ipairs(result.ranks) do
    wall = math.max(wall, rank.gemm_us)
    cpu = math.max(cpu, rank.gemm_cpu_us)
    communication = math.max(communication, rank.communication_cpu_us)
  end
  local alone = result.times.gemms.median
  if result.backend == "cuda" then
    return ("Overlapped GEMMs take %.2f ms of a step, %+.0f %% against %.2f ms alone: multiprocessors that"
      .. " move data do not multiply."):format(wall / 1e3, 100 * (wall / alone - 1), alone / 1e3)
  end
  return ("Overlapped GEMMs take %.2f ms of a step, %+.0f %% against %.2f ms alone; %.2f ms of that they run"
    .. " on a processor. Moving data runs for %.2f ms."):format(wall / 1e3, 100 * (wall / alone - 1),
    alone / 1e3, cpu / 1e3, communication / 1e3)
end

-- Why; on a GPU, how its time line was taken.
function words.why(result, ranks)
  if result.backend == "cuda" then
    return result.clock == "cupti" and "Kernels are told of by CUPTI."
      or "Kernels are timed by events around them, which costs more than CUPTI does."
  end
  local threads = ranks * (1 + result.used.threads)
  if threads <= result.machine.cores then
    return ("%d threads have %d cores: what moves data has cores of its own."):format(threads,
      result.machine.cores)
  end
  return ("%d threads share %d cores: what moves data takes its time from the GEMMs, so that only waiting for"
    .. " other ranks can be hidden, not moving."):format(threads, result.machine.cores)
end

function words.tracing(result)
  local tracing = result.ratios.tracing
  return ("Tracing costs %.1f %% of a step (95 %% interval %.1f to %.1f %%)."):format(100 * tracing.median,
    100 * tracing.low, 100 * tracing.high)
end

-- What was asked for and what there was.
function words.used(entry)
  local used = entry.result.used
  if used.channels == entry.channels and used.threads == entry.threads then return entry.result.note end
  if used.channels == 0 or used.threads == 0 then -- the log does not tell
    return ("%s were asked for%s"):format(words.name(entry),
      entry.result.note and "; " .. entry.result.note or ".")
  end
  if entry.result.backend == "cuda" then
    return ("%s were asked for; NCCL's log says %s%s"):format(words.name(entry), words.name(used),
      entry.result.note and "; " .. entry.result.note or ".")
  end
  return ("%s were asked for; %s were used: a thread without a channel has nothing to do."):format(
    words.name(entry), words.name(used))
end

-- Which configuration had the shortest overlapped step, and how sure that is. `entries`: those with a result.
function words.best(entries)
  local order = table.move(entries, 1, #entries, 1, {})
  table.sort(order, function(a, b)
    return a.result.times.overlapped.median < b.result.times.overlapped.median
  end)
  local best, close = order[1], {}
  local time = best.result.times.overlapped
  if #order == 1 then
    return ("One configuration is measured: %s, %s a step."):format(words.name(best), ms(time))
  end
  for i = 2, #order do
    if order[i].result.times.overlapped.low <= time.high then close[#close + 1] = words.name(order[i]) end
  end
  local text = ("The shortest step is that of %s: %s."):format(words.name(best), ms(time))
  if #close == 0 then return text .. " No other interval reaches it: that is sure." end
  return text .. (" That is not sure: the intervals of %s reach it."):format(table.concat(close, "; "))
end

return words
