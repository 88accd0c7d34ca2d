-- gentables sweep --transport: searches Open MPI's parameters, with the rules that go with them: which
-- transport and component, beside which algorithm, makes calls in a row fastest. ompi.lua makes files of
-- what it finds.
--
-- The space is lists.ompi_parameters: families of settings. A race: all settings take turns, in random
-- order, for ROUND_LAUNCHES launches each; then the slower half of each family leaves, but for FINALISTS; and
-- so for ROUNDS rounds. What is left takes turns for LAST_LAUNCHES more. Faster is: a smaller geometric mean
-- over the sizes of the best algorithm's mean over the launches.
--
-- A machine can change by a factor of three from one half minute to the next, so that a launch is compared
-- with launches of the defaults close by: BLOCK launches stand between two of these, and count as shares of
-- their mean. Where the two differ by CHANGED or more, the block is launched again. The defaults also run as
-- one more setting, which tells how far that comparison goes.
local fail = require "fail"
local file = require "core.file"
local launcher = require "launcher"
local lists = require "lists"
local ompi = require "ompi"
local process = require "core.process"
local progress = require "progress"
local provenance = require "provenance"

local transport = {}

local ROUNDS, ROUND_LAUNCHES, FINALISTS, LAST_LAUNCHES = 2, 3, 2, 7
local BLOCK, CHANGED, ATTEMPTS = 3, 1.5, 2
local SIZES = { "-b", "256", "-e", "4M", "-f", "2" }
local CALLS = { "-n", "4000", "-w", "3", "--budget", "0.003" } -- per algorithm and size

-- ---- one launch -------------------------------------------------------------------------------

-- The strategies that are worth a time under a family: a component leaves nothing to choose.
local function strategies_of(family)
  if family.component then return "MPI" end
  local names = { "MPI" }
  for _, row in ipairs(lists.strategies) do
    if row.ompi_algorithm then names[#names + 1] = row.name end
  end
  return table.concat(names, ",")
end

local function command_of(job, size, candidate)
  local words = launcher.plain_command(size, job.machine.cores)
  local function add(...) table.move({ ... }, 1, select("#", ...), #words + 1, words) end
  for _, parameter in ipairs(ompi.parameters_of(candidate.text)) do
    add("--mca", parameter.name, parameter.value)
  end
  if not candidate.family.component then add("--mca", "coll_tuned_use_dynamic_rules", "1") end
  add(job.program, "--strategies", strategies_of(candidate.family))
  add(table.unpack(SIZES))
  add(table.unpack(CALLS))
  return words
end

-- The times of one launch: size -> strategy -> microseconds.
local function launch(job, world, candidate)
  job.progress:show(("TP %d: %s"):format(world.size, candidate.text))
  local child, message = process.start(command_of(job, world.size, candidate))
  if not child then fail.input("no mpirun (%s); install Open MPI", message) end
  local times = {}
  while true do
    local line, problem = child:read_line(job.patience)
    if not line then
      local reason, clean = child:close(problem == "timeout" and 0 or 5)
      if process.interrupted() then fail.with(130, "interrupted; nothing was written") end
      if problem == "timeout" or not clean or not next(times) then
        fail.work("TP %d, %s: the bench failed: %s", world.size, candidate.text,
          problem == "timeout" and "no answer in time" or reason)
      end
      return times
    end
    local bytes, strategy, time = line:match("^%s*(%d+)%s+%d+%s+%S+%s+sum%s+(%S+)%s+([%d.]+)%s")
    if bytes and tonumber(time) > 0 then
      local size = tonumber(bytes)
      times[size] = times[size] or {}
      times[size][strategy] = tonumber(time)
    end
  end
end

-- ---- how good a setting is --------------------------------------------------------------------

-- The middle, the least and the most of positive numbers. The middle is their geometric mean, of five or more
-- without the least and the most: a machine that is now in one state and now in another makes two heaps, of
-- which a median would tell one alone.
local function middle_of(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local cut = #sorted >= 5 and 1 or 0
  local sum = 0
  for i = 1 + cut, #sorted - cut do sum = sum + math.log(sorted[i]) end
  return math.exp(sum / (#sorted - 2 * cut)), sorted[1], sorted[#sorted]
end

-- The geometric mean over the sizes of the best algorithm's share of the defaults' time.
local function cost_of(candidate)
  local sum, count = 0, 0
  for _, by_strategy in pairs(candidate.shares) do
    local best = math.huge
    for _, shares in pairs(by_strategy) do best = math.min(best, (middle_of(shares))) end
    sum, count = sum + math.log(best), count + 1
  end
  return math.exp(sum / count)
end

-- ---- blocks -----------------------------------------------------------------------------------

local function push(lists_of, size, strategy, value)
  lists_of[size] = lists_of[size] or {}
  lists_of[size][strategy] = lists_of[size][strategy] or {}
  table.insert(lists_of[size][strategy], value)
end

-- A launch of the defaults: size -> microseconds.
local function launch_reference(job, world)
  local reference = {}
  for size, times in pairs(launch(job, world, world.reference)) do
    if not times.MPI then fail.work("TP %d: the bench has no time for MPI at %d bytes", world.size, size) end
    reference[size] = times.MPI
    push(world.reference.times, size, "MPI", times.MPI)
  end
  world.reference.launches = world.reference.launches + 1
  return reference
end

-- By how much, as a ratio, two launches of the defaults differ: the geometric mean over the sizes.
local function change_between(before, after)
  local sum, count = 0, 0
  for size, time in pairs(before) do sum, count = sum + math.log(time / after[size]), count + 1 end
  return math.exp(math.abs(sum / count))
end

-- Enters the times of one launch of a candidate as shares of the two references beside it.
local function take(candidate, times, before, after)
  for size, by_strategy in pairs(times) do
    local reference = math.sqrt(before[size] * after[size])
    for strategy, time in pairs(by_strategy) do push(candidate.shares, size, strategy, time / reference) end
  end
  candidate.launches = candidate.launches + 1
end

-- Launches a few candidates, between two launches of the defaults.
local function run_block(job, world, block)
  local before, after, times
  for attempt = 1, ATTEMPTS do
    before = attempt == 1 and world.last_reference or launch_reference(job, world)
    times = {}
    for i, candidate in ipairs(block) do times[i] = launch(job, world, candidate) end
    after = launch_reference(job, world)
    if change_between(before, after) < CHANGED then break end
  end
  for i, candidate in ipairs(block) do take(candidate, times[i], before, after) end
  world.last_reference = after
end

-- ---- the race ---------------------------------------------------------------------------------

local function new_candidate(world, family, text)
  local candidate = { text = text, family = family, shares = {}, launches = 0 }
  table.insert(world.order, candidate)
  return candidate
end

-- All combinations of one text of each axis, behind the family's base: parameters joined by ";".
local function settings_of(family)
  local texts = { family.base or "" }
  for _, axis in ipairs(family.axes) do
    local longer = {}
    for _, text in ipairs(texts) do
      for _, more in ipairs(axis) do
        longer[#longer + 1] = text .. (text ~= "" and more ~= "" and ";" or "") .. more
      end
    end
    texts = longer
  end
  return texts
end

-- Everything that is in the race, and the defaults, which stay in it to the end.
local function enter(world, families)
  local again, others = new_candidate(world, families[1], ompi.default_again), {}
  for _, family in ipairs(families) do
    for _, text in ipairs(settings_of(family)) do
      if text ~= "" then others[#others + 1] = new_candidate(world, family, text) end
    end
  end
  return again, others
end

local function shuffle(list)
  for i = #list, 2, -1 do
    local j = math.random(i)
    list[i], list[j] = list[j], list[i]
  end
end

-- All of them take turns, so many times; `also` as one of them.
local function take_turns(job, world, candidates, also, launches)
  local order = table.move(candidates, 1, #candidates, 2, { also })
  for _ = 1, launches do
    shuffle(order)
    for first = 1, #order, BLOCK do
      local block = table.move(order, first, math.min(first + BLOCK - 1, #order), 1, {})
      run_block(job, world, block)
      for _ = 1, #block do job.progress:step() end
    end
  end
end

-- The faster half of one family's, but no fewer than its finalists.
local function faster_half(candidates)
  local cost = {}
  for _, candidate in ipairs(candidates) do cost[candidate] = cost_of(candidate) end
  table.sort(candidates, function(a, b)
    return cost[a] < cost[b] or cost[a] == cost[b] and a.text < b.text
  end)
  return table.move(candidates, 1, math.min(#candidates, math.max(FINALISTS, (#candidates + 1) // 2)), 1, {})
end

-- The faster half of each family: what is best but for some size leaves room for what is better there.
local function faster_halves(candidates)
  local by_family, families, kept = {}, {}, {}
  for _, candidate in ipairs(candidates) do
    local family = candidate.family
    if not by_family[family] then by_family[family], families[#families + 1] = {}, family end
    table.insert(by_family[family], candidate)
  end
  for _, family in ipairs(families) do
    for _, candidate in ipairs(faster_half(by_family[family])) do kept[#kept + 1] = candidate end
  end
  return kept
end

local function race(job, world, families)
  world.reference = { text = ompi.default_setting, family = { component = "none" }, times = {}, launches = 0 }
  local again, candidates = enter(world, families)
  job.progress = progress.new(0)
  world.last_reference = launch_reference(job, world)
  for round = 1, ROUNDS do
    job.progress.total = job.progress.done + (ROUNDS - round + 1) * ROUND_LAUNCHES * (#candidates + 1)
    take_turns(job, world, candidates, again, ROUND_LAUNCHES)
    candidates = faster_halves(candidates)
  end
  job.progress.total = job.progress.done + LAST_LAUNCHES * (#candidates + 1)
  take_turns(job, world, candidates, again, LAST_LAUNCHES)
  job.progress:clear()
end

-- ---- what is written --------------------------------------------------------------------------

-- The rows of a candidate: the middle, the least and the most of `lists_of`, size -> strategy -> numbers, in
-- units of `unit(size)`.
local function add_rows(out, job, world, candidate, lists_of, unit)
  local sizes = {}
  for size in pairs(lists_of) do sizes[#sizes + 1] = size end
  table.sort(sizes)
  for _, size in ipairs(sizes) do
    for _, strategy in ipairs(lists.names("strategies")) do
      local numbers = lists_of[size][strategy]
      if numbers then
        local middle, low, high = middle_of(numbers)
        out[#out + 1] = ("%d,%s,%s,%s,%d,%.4f,%.4f,%.4f,%d"):format(world.size, job.library, candidate.text,
          strategy, size, middle * unit(size), low * unit(size), high * unit(size), #numbers)
      end
    end
  end
end

-- Times are shares of the defaults' times close by, in units of what these took in all.
local function text_of(job, world)
  local out, reference = { table.concat(ompi.columns, ",") }, world.reference
  add_rows(out, job, world, reference, reference.times, function() return 1 end)
  local function unit(size) return (middle_of(reference.times[size].MPI)) end
  for _, candidate in ipairs(world.order) do
    add_rows(out, job, world, candidate, candidate.shares, unit)
  end
  return table.concat(out, "\n") .. "\n"
end

local function write(job, world)
  local text = text_of(job, world)
  local written, message = provenance.write(world.path, text, { world_size = world.size, arch = job.arch,
    fingerprint = job.fingerprint, machine = job.machine, bench = job.identity, spec = { hash = "transport" },
    placement = world.size > job.machine.cores and "oversubscribed" or "dedicated",
    date = os.date("!%Y-%m-%dT%H:%M:%SZ"), no_time = {} })
  if not written then fail.work("%s", message) end
end

-- Whether the file is of this machine and bench.
local function is_current(job, world)
  local path = provenance.path_of(world.path)
  if job.fresh or not (file.exists(world.path) and file.exists(path)) then return false end
  local old = provenance.read(path)
  return old and old.fingerprint == job.fingerprint
end

local function say(world)
  local best = ompi.best(world.path)
  print(("TP %d: best of %d settings: %s: %.2f times faster than the defaults, %.2f where it is least " ..
    "(the defaults against themselves: %.2f)"):format(world.size, #world.order, best.setting, best.gain,
    best.worst, best.spread))
end

-- Searches for each TP size. `job` is sweep's: { out, arch, sizes, program, identity, machine, fingerprint,
-- patience, fresh }.
function transport.run(job)
  local version = launcher.open_mpi_version()
  if not version then
    fail.input("--transport searches Open MPI's parameters; mpirun is none of Open MPI's")
  end
  local families = lists.ompi_parameters(version.major)
  job.library = version.text
  job.fingerprint = job.fingerprint .. " transport"
  for _, size in ipairs(job.sizes) do
    local world = { size = size, order = {}, path = ompi.search_path(job.out, size, job.arch) }
    if is_current(job, world) then
      print(("%s: up to date, of this machine and bench"):format(world.path))
    else
      race(job, world, families)
      write(job, world)
      say(world)
      print(("wrote %s"):format(world.path))
    end
  end
end

return transport
