-- The best candidate for each size, its margin and its state; and the report of them.
--
-- A candidate's time is the median over launches of its medians. The choice and its state are those of a
-- table of the same rows (choose/select.c). The margin compares the times of two candidates. Only candidates
-- that ended well in every launch take part.
local choices = require "core.choose"
local fail = require "base.fail"
local lists = require "lists.lists"
local quantities = require "base.quantities"
local rank_placement = require "lists.rank_placement"
local rows = require "core.rows"
local sequences = require "base.sequences"
local statistics = require "base.statistics"
local to_rows = require "tune.to_rows"

local choice = {}

local function kind_of(entry) return entry.strategy .. " " .. entry.epilogue end

-- The results of one cell by candidate and epilogue, launches together, fastest first.
local function by_candidate(cell)
  local found, ranked = {}, {}
  for _, result in ipairs(cell.results) do
    local entry = sequences.entry(ranked, found, kind_of(result), function()
      return { strategy = result.strategy, epilogue = result.epilogue, first = result, results = {} }
    end)
    table.insert(entry.results, result)
  end
  for _, entry in ipairs(ranked) do
    local function median_of(key) return statistics.median(sequences.field(entry.results, key)) end
    entry.launches = sequences.field(entry.results, "time_us")
    entry.time_us, entry.low_us, entry.high_us = median_of "time_us", median_of "low_us", median_of "high_us"
  end
  table.sort(ranked, function(a, b)
    if a.time_us ~= b.time_us then return a.time_us < b.time_us end
    return a.strategy .. a.epilogue < b.strategy .. b.epilogue
  end)
  return ranked, found
end

-- The gain of the fusion: the time of the separate pair over that of the fused one.
local function add_gain(entry, found)
  local separate = found[entry.strategy .. " separate"]
  if entry.epilogue == "fused" and separate then entry.fusion_gain = separate.time_us / entry.time_us end
end

-- Drops from a cell the candidates that are excluded, had no time in some launch, or are missing in one:
-- times of different launches are not comparable.
local function drop_incomplete(job, cell)
  local barred, count, most = {}, {}, 0
  for _, entry in ipairs(cell.no_time) do barred[kind_of(entry)] = true end
  for _, result in ipairs(cell.results) do
    local kind = kind_of(result)
    count[kind] = (count[kind] or 0) + 1
    most = math.max(most, count[kind])
  end
  local kept = {}
  for _, result in ipairs(cell.results) do
    local kind = kind_of(result)
    if count[kind] < most and not barred[kind] and not job.excluded[result.strategy] then
      barred[kind] = true
      table.insert(cell.no_time, { strategy = result.strategy, epilogue = result.epilogue,
        reason = ("has a time in %d of %d launches"):format(count[kind], most) })
    end
    if not job.excluded[result.strategy] and not barred[kind] then kept[#kept + 1] = result end
  end
  cell.results = kept
end

-- Ranks the results of a cell: `ranked`, and by_kind, "STRATEGY epilogue" -> entry.
local function rank(job, cell)
  drop_incomplete(job, cell)
  cell.ranked, cell.by_kind = by_candidate(cell)
  for _, entry in ipairs(cell.ranked) do add_gain(entry, cell.by_kind) end
end

-- The table of one number of ranks; nil if nothing has a time.
local function table_of(job, world_size)
  local records = to_rows.records(job, world_size)
  if #records == 0 then return nil end
  local of_tp_size = fail.unless(rows.of(rank_placement.words(world_size, job.nodes), records))
  return fail.unless(choices.select(of_tp_size, { lookup = "nearest", incumbent = job.stays,
    loopback = job.arch:find("%-loopback$") ~= nil }))
end

-- The table's cell (table/table_lua.c) for a cell of this fusion; an empty one without a choice, as for a
-- size that no row can hold.
local function found_in(job, canonical, cell, fusion)
  if not canonical or not to_rows.fits(cell) then return {} end
  return canonical:find { world_size = cell.world_size, nodes = job.nodes, dtype = cell.dtype, op = cell.op,
    mode = to_rows.MODE, splits = cell.splits, fusion = fusion,
    hidden_size = cell.num_tokens and cell.hidden_size or rows.HIDDEN_SIZE_NONE,
    num_tokens = cell.num_tokens or cell.size } or {}
end

-- The entry in `running`, fastest first, of this name in tables; of two ways of an epilogue the faster one.
-- Without a name the fastest.
local function entry_of(job, running, name)
  return sequences.find(running, function(entry)
    return not name or to_rows.name(job, entry.strategy) == name
  end)
end

-- The entries of these ways that may be chosen: not those that the list of strategies excludes from choices,
-- such as the call through an incumbent's lookup.
local function running_of(cell, is_way)
  return sequences.filter(cell.ranked, function(entry)
    local known = lists.find("strategies", entry.strategy)
    return is_way(entry.epilogue) and not (known and known.candidate == false)
  end)
end

local function choose(job, canonical, cell)
  local running = running_of(cell, function(way) return way ~= "alone" end)
  local found = found_in(job, canonical, cell, cell.fusion or "NONE")
  cell.best = entry_of(job, running, found.strategy)
  if cell.fusion then
    local alone = running_of(cell, function(way) return way == "alone" end)
    cell.plain = entry_of(job, alone, found_in(job, canonical, cell, "NONE").strategy)
  end
  if not cell.best then return end
  cell.runner_up = running[1] ~= cell.best and running[1] or running[2]
  cell.margin = cell.runner_up and cell.runner_up.time_us / cell.best.time_us - 1
  cell.state, cell.confidence = found.state, found.confidence
end

-- Chooses for all cells. job.stays: a table (of core.table) that keeps the choices that hardly lose, or nil.
function choice.make(job)
  for _, cell in ipairs(job.cells) do rank(job, cell) end
  for _, world_size in ipairs(job.world_sizes) do
    local canonical = table_of(job, world_size)
    for _, cell in ipairs(job.cells) do
      if cell.world_size == world_size then choose(job, canonical, cell) end
    end
  end
end

-- Gives all cells at this number of ranks the default, without results.
function choice.take_default(job, world_size, reason)
  for _, cell in ipairs(job.cells) do
    if cell.world_size == world_size then
      cell.results, cell.default, cell.reason = {}, job.default, reason
    end
  end
end

local function name_of(entry)
  local name = entry.epilogue == "none" and entry.strategy or entry.strategy .. " " .. entry.epilogue
  return entry.first.place == "in" and name .. " (in place)" or name
end

local function line_of(cell)
  local best = cell.best
  local size = quantities.exact_bytes(cell.size)
  if not best then return ("%-10s %s"):format(size, cell.default or "nothing has a time") end
  local bus = lists.find("ops", cell.op).bus_factor(cell.world_size) * cell.size / best.time_us / 1000
  local line = ("%-10s %-26s %10.2f us %8.2f GB/s"):format(size, name_of(best),
    best.time_us, bus)
  if cell.runner_up then
    line = line .. ("  %5.1f%% %s %s%s"):format(100 * math.abs(cell.margin),
      cell.margin < 0 and "behind" or "before", name_of(cell.runner_up),
      cell.state == "certain" and "" or (" (%s)"):format(cell.state or "no state"))
  end
  if cell.plain and cell.plain.strategy ~= best.strategy then
    line = line .. (", the sum alone: %s"):format(cell.plain.strategy)
  end
  if best.fusion_gain then line = line .. (", fusion %.2fx"):format(best.fusion_gain) end
  return line
end

local function print_cost(job)
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
  local function beyond(total, calls) return (cost[total] - cost[calls]) / 1000 end
  print(("synchronised once: %.1f ms beyond the calls; op by op: %.1f ms; medians differ by %.1f%% (median)")
    :format(beyond("total_us", "calls_us"), beyond("op_total_us", "op_calls_us"),
      #changes > 0 and 100 * statistics.median(changes) or 0))
end

-- Prints the choice of each cell, its margin, and its state unless it is certain.
function choice.report(job)
  local head
  for _, cell in ipairs(job.cells) do
    local ranks = rank_placement.words(cell.world_size, job.nodes)
    local this = ("%s, %s, %s%s%s"):format(cell.op, ranks, cell.dtype,
      cell.splits and ", splits " .. cell.splits or "", cell.fusion and ", " .. cell.fusion or "")
    if this ~= head then print(this) end
    head = this
    print("  " .. line_of(cell))
  end
  local reasons = sequences.map(sequences.join(sequences.field(job.cells, "no_time")), function(entry)
    return ("no time: %s: %s"):format(entry.strategy, entry.reason)
  end)
  for _, words in ipairs(sequences.distinct(reasons)) do print(words) end
  for _, candidate in ipairs(job.candidates) do
    local reason = job.excluded[candidate.name]
    if reason then print(("left out: %s: %s"):format(candidate.name, reason)) end
  end
  print_cost(job)
  if job.launches == 1 and sequences.any(job.cells, function(cell) return cell.best end) then
    print("one launch: states assume the usual noise between launches; --launches 5 measures it")
  end
  if (job.measured or 0) == 0 then print("all results are from the cache; --fresh measures again") end
end

return choice
