-- The launches of `gentables tune --backend cuda`: measured as a sweep measures (bench.lua), in one group of
-- ranks for each launch, op by op with all candidates of an op interleaved. Plug-ins are tried before that in
-- processes of their own; one that fails in the group is left out, and that launch starts again.
--
-- An allreduce with an epilogue is two requests: one for all that do it whole, fused or with a kernel of its
-- own behind the sum, interleaved, of which the choice is; and one for the allreduce alone.
local backends = require "backends"
local bench = require "bench"
local group = require "tune_bench"
local lists = require "lists"

local serve = {}

local BUDGET_US = 30e6 -- of a cell: samples are counted, and time is not

local APART = "_EPILOGUE" -- a candidate's name with this: its sum, then a kernel of ours

-- The candidate, and how it does the epilogue of `cell` in a request for `fusion`.
local function kind_of(job, cell, fusion, name)
  if not cell.fusion then return name, "none" end
  if fusion == "NONE" then return name, "alone" end
  local base = name:sub(-#APART) == APART and name:sub(1, -#APART - 1)
  if base and job.candidates[base] then return base, "separate" end
  local row = lists.find("strategies", name)
  local has_kernel_behind = row and row.cuda and (row.cuda.nccl or row.cuda.epilogue)
  return name, has_kernel_behind and "separate" or "fused"
end

-- What one launch said of a candidate, as tune_bench.lua has it.
local function result_of(record, strategy, epilogue)
  local result = { strategy = strategy, epilogue = epilogue }
  for _, name in ipairs { "time_us", "low_us", "high_us", "samples", "min_us", "p95_us", "p99_us",
    "skew_us", "bound_us", "floor_us", "calls", "accumulate", "placement" } do
    result[name] = record[name]
  end
  return result
end

local function request_of(cell, fusion)
  local has_shape = cell.fusion ~= nil
  return { op = cell.op, dtype = cell.dtype, world_size = cell.world_size, fusion = fusion, mode = "eager",
    count = not has_shape and cell.count or nil, size = cell.size, splits = cell.splits,
    hidden_size = has_shape and cell.hidden_size or nil, num_tokens = has_shape and cell.num_tokens or nil }
end

-- The fusions that a cell is requested with.
local function fusions_of(cell) return cell.fusion and { cell.fusion, "NONE" } or { "NONE" } end

-- Whom to ask in a request for `fusion`: these, and those of them that have their epilogue apart.
local function asked_of(job, fusion, names)
  local asked = {}
  for _, name in ipairs(names) do
    asked[#asked + 1] = name
    if fusion ~= "NONE" and job.candidates[name .. APART] then asked[#asked + 1] = name .. APART end
  end
  return asked
end

local function start(job, world_size, cells)
  local names, seen = {}, {}
  for _, cell in ipairs(cells) do
    for _, name in ipairs(asked_of(job, cell.fusion or "NONE", cell.candidates)) do
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

local function leave_out(job, cell, fusion, name, reason)
  local strategy, epilogue = kind_of(job, cell, fusion, name)
  cell.no_time[#cell.no_time + 1] = { strategy = strategy, epilogue = epilogue, reason = reason }
end

-- Whom to ask for a cell and fusion, and why not others.
local function available(job, session, cell, fusion)
  local left, names = {}, {}
  for _, name in ipairs(cell.candidates) do
    if not job.excluded[name] then left[#left + 1] = name end -- of whom it has been said
  end
  for _, name in ipairs(asked_of(job, fusion, left)) do
    local reason = session.unavailable[name]
    if reason then
      leave_out(job, cell, fusion, name, reason)
    else
      names[#names + 1] = name
    end
  end
  return names
end

-- Says of each candidate in which ways there is none to time.
local function complete(job, cell)
  if not cell.fusion then return end
  local told = {}
  for _, list in ipairs { cell.fresh, cell.no_time } do
    for _, entry in ipairs(list) do told[entry.strategy .. " " .. entry.epilogue] = true end
  end
  for _, name in ipairs(cell.candidates) do
    for _, epilogue in ipairs { "fused", "separate" } do
      if not job.excluded[name] and not told[name .. " " .. epilogue] then
        cell.no_time[#cell.no_time + 1] = { strategy = name, epilogue = epilogue,
          reason = ("there is no %s epilogue of it"):format(epilogue) }
      end
    end
  end
end

-- Takes an answer into its cell.
local function take(job, cell, fusion, answer)
  for _, record in ipairs(answer.rows) do
    cell.fresh[#cell.fresh + 1] = result_of(record, kind_of(job, cell, fusion, record.strategy))
  end
  for _, record in ipairs(answer.no_time) do
    leave_out(job, cell, fusion, record.strategy, record.reason)
  end
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
  local id = 0
  for _, cell in ipairs(cells) do
    cell.no_time, cell.fresh = {}, {}
    for _, fusion in ipairs(fusions_of(cell)) do
      local names = available(job, session, cell, fusion)
      id = id + 1
      if #names > 0 then
        local answer
        answer, failure = session:measure(id, request_of(cell, fusion), names, limits, function() end)
        if not answer then return in_words(failure), culprit(failure) end
        take(job, cell, fusion, answer)
      end
    end
    complete(job, cell)
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
