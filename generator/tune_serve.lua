-- The launches of `gentables tune --backend cuda`: candidates of our own, measured as a sweep measures
-- (bench.lua), in one group of ranks for each launch, op by op with all candidates of an op interleaved.
-- There are no plug-ins.
local backends = require "backends"
local bench = require "bench"

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
  local names, seen, largest = {}, {}, 0
  for _, cell in ipairs(cells) do
    largest = math.max(largest, cell.size)
    for _, name in ipairs(cell.candidates) do
      if not seen[name] then names[#names + 1] = name end
      seen[name] = true
    end
  end
  local backend = backends[job.backend]
  return bench.start { command = backend.command(job, world_size), program = job.program,
    world_size = world_size, identity = job.identity, patience = 2 * job.timeout, strategies = names,
    arguments = backend.arguments({ launcher = job.launcher, arch = job.arch,
      spec = { limits = { message_bytes = largest } } }, world_size) }
end

-- The candidates of a cell that there are, and why there are no others.
local function available(session, cell)
  local names = {}
  for _, name in ipairs(cell.candidates) do
    local reason = session.unavailable[name]
    if reason then
      cell.no_time[#cell.no_time + 1] = { strategy = name, epilogue = "none", reason = reason }
    else
      names[#names + 1] = name
    end
  end
  return names
end

local function in_words(failure)
  return ("the group failed: %s%s"):format(failure.reason, failure.detail ~= "" and ": " .. failure.detail
    or "")
end

local function run_launch(job, world_size, cells)
  local session, failure = start(job, world_size, cells)
  if not session then return in_words(failure) end
  local limits = { min_samples = job.samples, max_samples = job.samples, cell_us = BUDGET_US, precision = 0 }
  for id, cell in ipairs(cells) do
    cell.no_time = {}
    local names = available(session, cell)
    local answer
    if #names > 0 then
      answer, failure = session:measure(id, request_of(cell), names, limits, function() end)
      if not answer then return in_words(failure) end
    end
    for _, record in ipairs(answer and answer.rows or {}) do
      cell.results[#cell.results + 1] = result_of(record)
    end
    for _, record in ipairs(answer and answer.no_time or {}) do
      cell.no_time[#cell.no_time + 1] = { strategy = record.strategy, epilogue = "none",
        reason = record.reason }
    end
  end
  session:stop()
end

-- Measures cells at one number of ranks. Returns nil, or why nothing could be measured.
function serve.measure(job, world_size, cells)
  for number = 1, job.launches do
    job.progress:show(("TP %d: launch %d of %d"):format(world_size, number, job.launches))
    local problem = run_launch(job, world_size, cells)
    if problem then return problem end
  end
end

return serve
