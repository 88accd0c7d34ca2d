-- Which nodes of a sweep are slow: before it, pairs of nodes time a small and a large AllReduce of MPI, one
-- rank on each node. A node is slow if one of them takes SLOW times as long, in the best pair with this node,
-- as in a good pair of any nodes. Slow nodes, and those that do not start, come last in the list of hosts, so
-- that placements with fewer nodes do without them.
--
-- Nodes meet others in rounds of disjoint pairs (the circle method). Pairs take turns, and do not disturb
-- each other.
local bench = require "conversation.bench"
local hosts = require "conversation.hosts"
local process = require "core.process"
local quantities = require "base.quantities"

local screening = {}

local SLOW = 1.5          -- times as long as in a good pair
local GOOD = 0.25         -- the quantile of the pairs' times that is a good pair's
local ROUNDS = 3          -- partners of a node, if there are so many
local SHARE = 0.2         -- of a budget, after which nothing more is tried before the sweep
local TRIES = 2           -- pairs of a node that do not start, after which it is left out
local LEAST = 3           -- nodes; two do not show which of them is slow
local HIDDEN_SIZE = 1024
local TOKENS = { 1, 512 } -- 2 KiB and 1 MiB
local LIMITS = { min_samples = 5, max_samples = 200, cell_us = 100000, precision = 0.05 }

-- The pairs of round `round` among `count` nodes, as lists of two numbers. Each two nodes meet in one of
-- count - 1 rounds (count rounds, in each of which one node rests, if `count` is odd).
function screening.pairs_of(count, round)
  local even = count + count % 2
  local function at(place) return place == 0 and even or (place - 1 + round - 1) % (even - 1) + 1 end
  local found = {}
  for i = 0, even // 2 - 1 do
    local one, other = at(i), at(even - 1 - i)
    if one <= count and other <= count then
      found[#found + 1] = { math.min(one, other), math.max(one, other) }
    end
  end
  return found
end

-- Starts a bench of `world_size` ranks, divided among the hosts with these names. Returns the same as
-- bench.start.
function screening.start(job, names, world_size)
  local over = hosts.over({ nodes = #names, ranks_per_node = world_size // #names },
    { names = names, hostfile = job.hosts.hostfile })
  return bench.start { command = job.backend.command(job, world_size, over), program = job.program,
    arguments = job.backend.arguments(job, world_size), world_size = world_size, nodes = #names,
    identity = job.identity, patience = job.patience, start_patience = job.patience, strategies = { "MPI" },
    environment = job.environment }
end

-- The cell of ranks on these nodes with the `which`-th number of tokens.
function screening.cell(world_size, nodes, which)
  return { world_size = world_size, nodes = nodes, ranks_per_node = world_size // nodes, dtype = "bfloat16",
    op = "allreduce", mode = "eager", fusion = "NONE", hidden_size = HIDDEN_SIZE,
    num_tokens = TOKENS[which] }
end

-- The shortest times of MPI's AllReduce on a bench of screening.start, in microseconds, by the number of
-- tokens; or nil and the failure, after which the bench has ended.
function screening.times(running, world_size, nodes)
  local times = {}
  for i in ipairs(TOKENS) do
    local result, failure = running:measure(i, screening.cell(world_size, nodes, i), { "MPI" }, LIMITS,
      function() end)
    if not result then return nil, failure end
    if not result.rows[1] then break end
    times[i] = result.rows[1].min_us
  end
  return times
end

-- The times of a pair of hosts; or nil and the failure.
local function time_pair(job, names)
  local running, failure = screening.start(job, names, #names)
  if not running then return nil, failure end
  local times
  times, failure = screening.times(running, #names, #names)
  if times then running:stop() end
  return times, failure
end

-- Enters the times of a pair for both of its nodes. `seen`: for each node and each size the times.
local function enter(seen, pair, times)
  for _, node in ipairs(pair) do
    for i, time_us in ipairs(times) do table.insert(seen[node][i], time_us) end
  end
end

-- How many times as long each node takes, in its best pair, as a good pair does: the larger ratio of both
-- sizes; false for a node without a time. `seen` as of `enter`.
function screening.ratios(seen)
  local ratios = {}
  for node in ipairs(seen) do ratios[node] = false end
  for i in ipairs(TOKENS) do
    local all = {}
    for _, times in ipairs(seen) do table.move(times[i], 1, #times[i], #all + 1, all) end
    table.sort(all)
    local good = all[math.max(1, math.ceil(GOOD * #all))]
    for node, times in ipairs(seen) do
      if #times[i] > 0 then
        ratios[node] = math.max(ratios[node] or 0, math.min(table.unpack(times[i])) / good)
      end
    end
  end
  return ratios
end

-- Whether there is time to try something more before the sweep.
function screening.has_time(job)
  return not job.budget_s or process.now() - job.began_at < SHARE * job.budget_s
end

-- Whether another pair with a node may start.
local function may_start(of) return #of[1] > 0 or of.failures < TRIES end

-- Times the pairs of a round. Returns how many there were.
local function time_round(job, names, round, seen)
  local count = 0
  for _, pair in ipairs(screening.pairs_of(#names, round)) do
    local one, other = seen[pair[1]], seen[pair[2]]
    if screening.has_time(job) and may_start(one) and may_start(other) then
      job.progress:show(("nodes %s and %s"):format(names[pair[1]], names[pair[2]]))
      local times, failure = time_pair(job, { names[pair[1]], names[pair[2]] })
      if times then
        enter(seen, pair, times)
        count = count + 1
      else
        one.failures, other.failures = one.failures + 1, other.failures + 1
        job.progress:print(("gentables: nodes %s and %s: %s"):format(names[pair[1]], names[pair[2]],
          failure.reason))
      end
    end
  end
  return count
end

-- Times each node that seems slow once more, with the best one: a short disturbance makes no node slow.
local function time_again(job, names, seen)
  local ratios, best = screening.ratios(seen), nil
  for node, ratio in ipairs(ratios) do
    if ratio and (not best or ratio < ratios[best]) then best = node end
  end
  for node, ratio in ipairs(ratios) do
    if ratio and ratio >= SLOW and screening.has_time(job) then
      local times = time_pair(job, { names[best], names[node] })
      if times then enter(seen, { best, node }, times) end
    end
  end
end

-- Times pairs in rounds. Returns what was seen of each node; nil if no pair of the first round starts, which
-- is no matter of single nodes.
local function time_pairs(job, names)
  local seen = {}
  for node in ipairs(names) do
    seen[node] = { failures = 0 }
    for i in ipairs(TOKENS) do seen[node][i] = {} end
  end
  for round = 1, math.min(ROUNDS, #names - 1 + #names % 2) do
    if time_round(job, names, round, seen) == 0 and round == 1 then return nil end
  end
  time_again(job, names, seen)
  return seen
end

-- Why a node comes last, as text; nil: it is as good as others, or there was no time to try it.
local function fault_of(ratio, seen)
  if ratio then return ratio >= SLOW and ("%.1f times as slow as others"):format(ratio) or nil end
  return seen.failures > 0 and "no pair with it starts" or nil
end

-- Puts slow nodes at the end of job.hosts.names, and prints them. Sets job.slow_nodes: their number. Does
-- nothing if the launcher does not take hosts. `most`: the largest number of nodes of the placements to
-- measure.
function screening.run(job, most)
  local names = job.hosts and job.hosts.names
  if not names or #names < LEAST or most < 2 then return end
  if job.launcher and not job.launcher:find("{hosts}", 1, true) then return end
  local seen = time_pairs(job, names)
  job.progress:clear()
  if not seen then return end
  local ratios = screening.ratios(seen)
  local good, slow = {}, {}
  for node, name in ipairs(names) do
    table.insert(fault_of(ratios[node], seen[node]) and slow or good, name)
  end
  for node, name in ipairs(names) do
    local fault = fault_of(ratios[node], seen[node])
    if fault then
      print(("node %s: %s; %s"):format(name, fault, #good < most
        and ("placements on more than %s have it"):format(quantities.counted(#good, "node")) or "left out"))
    end
  end
  job.slow_nodes = #slow
  job.hosts.names = table.move(slow, 1, #slow, #good + 1, good)
end

return screening
