-- Which candidate is best at which size, by how much and how sure that is; and the report of it.
--
-- A candidate's time is the median over launches of its medians. The choice is sure where the best one's
-- interval
-- ends below the runner-up's; with several launches, where it is the best in each of them.
local layout = require "plot.layout"
local lists = require "lists"

local choice = {}

local function median(values)
  table.sort(values)
  local middle = #values // 2
  return #values % 2 == 1 and values[middle + 1] or (values[middle] + values[middle + 1]) / 2
end

-- The results of one cell by candidate and epilogue, launches together, fastest first.
local function by_candidate(cell)
  local found, ranked = {}, {}
  for _, result in ipairs(cell.results) do
    local key = result.strategy .. " " .. result.epilogue
    local entry = found[key]
    if not entry then
      entry = { strategy = result.strategy, epilogue = result.epilogue, launches = {}, results = {} }
      found[key], ranked[#ranked + 1] = entry, entry
    end
    table.insert(entry.launches, result.time_us)
    table.insert(entry.results, result)
  end
  for _, entry in ipairs(ranked) do
    local low, high, times = {}, {}, {}
    for i, result in ipairs(entry.results) do
      low[i], high[i], times[i] = result.low_us, result.high_us, result.time_us
    end
    entry.time_us, entry.low_us, entry.high_us = median(times), median(low), median(high)
    entry.first = entry.results[1]
  end
  table.sort(ranked, function(a, b)
    if a.time_us ~= b.time_us then return a.time_us < b.time_us end
    return a.strategy .. a.epilogue < b.strategy .. b.epilogue
  end)
  return ranked, found
end

local function is_sure(best, other)
  if not other then return true end
  if #best.launches > 1 and #best.launches == #other.launches then
    for i, time_us in ipairs(best.launches) do
      if time_us >= other.launches[i] then return false end
    end
    return true
  end
  return best.high_us < other.low_us
end

-- What the fusion gains: the separate pair against the fused one.
local function add_gain(entry, found)
  local separate = found[entry.strategy .. " separate"]
  if entry.epilogue == "fused" and separate then entry.fusion_gain = separate.time_us / entry.time_us end
end

-- What the spec's list says may never be chosen, as the call through an incumbent's lookup, is told only.
local function may_be_chosen(entry)
  local known = lists.find("strategies", entry.strategy)
  return entry.epilogue ~= "alone" and not (known and known.candidate == false)
end

local function choose(cell)
  local ranked, found = by_candidate(cell)
  local running = {}
  for _, entry in ipairs(ranked) do
    add_gain(entry, found)
    if may_be_chosen(entry) then running[#running + 1] = entry end
  end
  cell.ranked = ranked
  cell.best, cell.runner_up = running[1], running[2]
  if not cell.best then return end
  cell.margin = cell.runner_up and cell.runner_up.time_us / cell.best.time_us - 1
  cell.sure = is_sure(cell.best, cell.runner_up)
end

function choice.make(job)
  for _, cell in ipairs(job.cells) do choose(cell) end
end

-- Nothing that was measured counts: all ranks take the default.
function choice.take_default(job, reason)
  for _, cell in ipairs(job.cells) do
    cell.results, cell.default, cell.reason = {}, job.default, reason
  end
end

local function name_of(entry)
  return entry.epilogue == "none" and entry.strategy or entry.strategy .. " " .. entry.epilogue
end

local function line_of(cell)
  local best = cell.best
  local size = layout.exact_bytes(cell.size)
  if not best then return ("%-10s %s"):format(size, cell.default or "nothing has a time") end
  local bus = lists.find("ops", cell.op).bus_factor(cell.world_size) * cell.size / best.time_us / 1000
  local line = ("%-10s %-26s %10.2f us %8.2f GB/s"):format(size, name_of(best),
    best.time_us, bus)
  if cell.runner_up then
    line = line .. ("  %5.1f%% before %s%s"):format(100 * cell.margin, name_of(cell.runner_up),
      cell.sure and "" or " (within noise)")
  end
  if best.fusion_gain then line = line .. (", fusion %.2fx"):format(best.fusion_gain) end
  return line
end

local function say_cost(job)
  local cost = job.cost
  if not cost or job.sync ~= "both" then return end
  local changes = {}
  for _, cell in ipairs(job.cells) do
    for _, entry in ipairs(cell.ranked) do
      if entry.first.op_us and entry.first.op_us > 0 then
        changes[#changes + 1] = math.abs(entry.first.op_us / entry.first.time_us - 1)
      end
    end
  end
  local function beyond(total, calls) return (tonumber(cost[total]) - tonumber(cost[calls])) / 1000 end
  print(("synchronised once: %.1f ms beyond the calls; op by op: %.1f ms; medians differ by %.1f%% (median)")
    :format(beyond("total_us", "calls_us"), beyond("op_total_us", "op_calls_us"),
      #changes > 0 and 100 * median(changes) or 0))
end

-- Prints which candidate won where, by how much and how sure.
function choice.report(job)
  local head
  for _, cell in ipairs(job.cells) do
    local this = ("%s, TP %d, %s%s%s"):format(cell.op, cell.world_size, cell.dtype,
      cell.splits and ", splits " .. cell.splits or "", cell.fusion and ", " .. cell.fusion or "")
    if this ~= head then print(this) end
    head = this
    print("  " .. line_of(cell))
  end
  local told = {}
  for _, cell in ipairs(job.cells) do
    for _, entry in ipairs(cell.no_time) do
      local words = ("%s: %s"):format(entry.strategy, entry.reason)
      if not told[words] then print("no time: " .. words) end
      told[words] = true
    end
  end
  for _, candidate in ipairs(job.candidates) do
    local reason = job.excluded[candidate.name]
    if reason then print(("left out: %s: %s"):format(candidate.name, reason)) end
  end
  say_cost(job)
  if job.launches == 1 and (job.measured or 0) > 0 then
    print("one launch: another may differ by more than the intervals; --launches 5 tells")
  end
  if (job.measured or 0) == 0 then print("all of it was measured before; --fresh measures anew") end
end

return choice
