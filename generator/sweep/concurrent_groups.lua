-- Placements on few nodes that are measured at once, each on nodes of its own, if that disturbs none of them.
-- An A/A check decides it: a group of nodes times a small and a large AllReduce of MPI, alone and beside a
-- second group that measures, in the order alone, beside, beside, alone.
local process = require "core.process"
local quantities = require "base.quantities"
local screening = require "sweep.screening"

local concurrent_groups = {}

local DISTURBED = 1.03 -- beside / alone, above which groups disturb each other
local UNSTEADY = 1.05  -- between the two times alone, above which the check says nothing
local LARGE = 2        -- the size that the second group measures
local BUSY_S = 2       -- for so long at least
local BUSY_LIMITS = { min_samples = 1, max_samples = 1000000, cell_us = BUSY_S * 1e6, precision = 0 }

-- ---- the A/A check ----------------------------------------------------------------------------------

-- The times of a bench, while `other` (nil: none) measures; or nil and the reason.
local function times_beside(running, other, state)
  local began, sent, failure = process.now(), true, nil
  if other then
    sent, failure = other:send(1, screening.cell(state.size, state.nodes, LARGE), { "MPI" }, BUSY_LIMITS)
  end
  if not sent then return nil, failure.reason end
  local times
  times, failure = screening.times(running, state.size, state.nodes)
  local took = process.now() - began
  if not times then return nil, failure.reason end
  local answered = true
  if other then answered, failure = other:answers(function() end) end
  if not answered then return nil, failure.reason end
  if other and took > BUSY_S then return nil, "the check takes longer than the second group measures" end
  return times
end

-- Whether the times of each size, alone and beside { alone, beside, beside, alone }, are the same; and words
-- about it.
function concurrent_groups.agree(rounds)
  local ratio, drift = 1, 1
  if #rounds[1] == 0 then return false, "MPI has no times to compare" end
  for i in ipairs(rounds[1]) do
    local first, last = rounds[1][i], rounds[4][i]
    ratio = math.max(ratio, math.sqrt(rounds[2][i] * rounds[3][i] / (first * last)))
    drift = math.max(drift, first / last, last / first)
  end
  if drift > UNSTEADY then return false, ("times alone differ by a factor of %.2f"):format(drift) end
  local words = ("times beside another group are %.2f times those alone"):format(ratio)
  return ratio <= DISTURBED, words
end

-- Starts a bench on each of two groups of nodes, with as many ranks as `state`, and adds it to `benches`.
-- Returns whether they may run at once, and words about it.
local function compare(job, state, names, benches)
  local rounds = {}
  for i = 1, 2 do
    local group = table.move(names, (i - 1) * state.nodes + 1, i * state.nodes, 1, {})
    local running, failure = screening.start(job, group, state.size)
    if not running then return false, failure.reason end
    benches[i] = running
  end
  for round, is_beside in ipairs { false, true, true, false } do
    local times, reason = times_beside(benches[1], is_beside and benches[2] or nil, state)
    if not times then return false, reason end
    rounds[round] = times
  end
  return concurrent_groups.agree(rounds)
end

-- Runs the check, and ends its benches. Returns the same as `compare`.
local function check(job, state, names)
  local benches = {}
  local may, words = compare(job, state, names, benches)
  for _, running in ipairs(benches) do running:stop() end
  return may, words
end

-- ---- batches ----------------------------------------------------------------------------------------

-- How many of the states on as many nodes as `state` may be measured at once. Prints the result of the check.
local function most_at_once(job, state)
  local names = job.hosts and job.hosts.names or {}
  local groups = (#names - (job.slow_nodes or 0)) // state.nodes
  local takes_hosts = not job.launcher or job.launcher:find("{hosts}", 1, true)
  if groups < 2 or not takes_hosts or not screening.has_time(job) then return 1 end
  local may, words = check(job, state, names)
  job.progress:clear()
  print(("%s: %s; %s"):format(quantities.counted(state.nodes, "node"), words,
    may and ("up to %d groups at once"):format(groups) or "one group after another"))
  return may and groups or 1
end

-- Gives each state of a batch `hosts` of its own.
local function divide_hosts(job, states)
  for i, state in ipairs(states) do
    local first = (i - 1) * state.nodes + 1
    state.hosts = { names = table.move(job.hosts.names, first, first + state.nodes - 1, 1, {}),
      hostfile = job.hosts.hostfile }
    state.beside = #states
  end
end

-- Divides the open states, ordered by nodes, into batches to measure at once: lists of states.
function concurrent_groups.batches(job, open)
  local batches, most = {}, 1
  for i, state in ipairs(open) do
    local batch = batches[#batches]
    local is_first = not batch or batch[1].nodes ~= state.nodes
    local has_next = open[i + 1] and open[i + 1].nodes == state.nodes
    if is_first then most = has_next and most_at_once(job, state) or 1 end
    if is_first or #batch == most then
      batches[#batches + 1] = { state }
    else
      batch[#batch + 1] = state
    end
  end
  for _, states in ipairs(batches) do
    if #states > 1 then divide_hosts(job, states) end
  end
  return batches
end

-- Runs measure(state) for all states of a batch at once: one goes on while the others wait for their benches.
-- Raises the first error after all have ended.
function concurrent_groups.run(states, measure)
  if #states == 1 then return measure(states[1]) end
  local threads, problem = {}, nil
  for i, state in ipairs(states) do threads[i] = coroutine.create(function() measure(state) end) end
  repeat
    local alive = {}
    for _, thread in ipairs(threads) do
      local well, message = coroutine.resume(thread)
      if not well and problem == nil then problem = message end
      if coroutine.status(thread) ~= "dead" then alive[#alive + 1] = thread end
    end
    threads = alive
  until #threads == 0
  if problem ~= nil then error(problem, 0) end
end

return concurrent_groups
