-- The launches of `gentables tune --backend cuda`: measured as a sweep measures (bench.lua), in one group of
-- ranks for each launch, op by op with all candidates of an op interleaved. Plug-ins are tried before that in
-- processes of their own; one that fails in the group is left out, and that launch starts again.
local backends = require "backends"
local bench = require "bench"
local group = require "tune_bench"

local serve = {}

local BUDGET_US = 30e6 -- of a cell: samples are counted, and time is not

-- What one launch said of a candidate, as tune_bench.lua has it.
local function result_of(record)
  local result = { epilogue = "none" }
  for _, name in ipairs { "strategy", "time_us", "low_us", "high_us", "samples", "min_us", "p95_us", "p99_us",
    "skew_us", "bound_us", "floor_us", "calls", "accumulate", "placement" } do
    result[name] = record[name]
  end
  return result
end

local function request_of(cell)
  return { op = cell.op, dtype = cell.dtype, world_size = cell.world_size, fusion = "NONE", mode = "eager",
    count = cell.count, size = cell.size, splits = cell.splits }
end

local function start(job, world_size, cells)
  local names, seen = {}, {}
  for _, cell in ipairs(cells) do
    for _, name in ipairs(cell.candidates) do
      if not seen[name] then names[#names + 1] = name end
      seen[name] = true
    end
  end
  local backend = backends[job.backend]
  return bench.start { command = backend.command(job, world_size), program = job.program,
    world_size = world_size, identity = job.identity, patience = 2 * job.timeout, strategies = names,
    arguments = group.with_plugins(backend.arguments(group.setting(job, cells), world_size),
      group.living(job)) }
end

-- The candidates of a cell that there are, and why there are no others.
local function available(job, session, cell)
  local names = {}
  for _, name in ipairs(cell.candidates) do
    local reason = session.unavailable[name]
    if reason and not job.excluded[name] then
      cell.no_time[#cell.no_time + 1] = { strategy = name, epilogue = "none", reason = reason }
    elseif not job.excluded[name] then -- of whom it has been said
      names[#names + 1] = name
    end
  end
  return names
end

local function in_words(failure)
  return ("the group failed: %s%s"):format(failure.reason, failure.detail ~= "" and ": " .. failure.detail
    or "")
end

local function culprit(failure) return group.culprit(failure.reason .. "\n" .. failure.detail) end

-- Returns nil, or why there is no answer, and who is at fault for it, if anyone.
local function run_launch(job, world_size, cells)
  local session, failure = start(job, world_size, cells)
  if not session then return in_words(failure), culprit(failure) end
  local limits = { min_samples = job.samples, max_samples = job.samples, cell_us = BUDGET_US, precision = 0 }
  for id, cell in ipairs(cells) do
    cell.no_time, cell.fresh = {}, {}
    local names = available(job, session, cell)
    local answer
    if #names > 0 then
      answer, failure = session:measure(id, request_of(cell), names, limits, function() end)
      if not answer then return in_words(failure), culprit(failure) end
    end
    for _, record in ipairs(answer and answer.rows or {}) do
      cell.fresh[#cell.fresh + 1] = result_of(record)
    end
    for _, record in ipairs(answer and answer.no_time or {}) do
      cell.no_time[#cell.no_time + 1] = { strategy = record.strategy, epilogue = "none",
        reason = record.reason }
    end
  end
  session:stop()
  for _, cell in ipairs(cells) do table.move(cell.fresh, 1, #cell.fresh, #cell.results + 1, cell.results) end
end

-- One launch; once more without a candidate of a plug-in that fails there.
local function launch(job, world_size, cells)
  while true do
    local problem, name, what = run_launch(job, world_size, cells)
    if not problem then return nil end
    if not name or job.excluded[name] then return problem end
    group.exclude(job, name, what)
  end
end

-- Measures cells at one number of ranks. Returns nil, or why nothing could be measured.
function serve.measure(job, world_size, cells)
  group.try_plugins(job, world_size, cells)
  for number = 1, job.launches do
    job.progress:show(("TP %d: launch %d of %d"):format(world_size, number, job.launches))
    local problem = launch(job, world_size, cells)
    if problem then return problem end
  end
end

return serve
