-- gentables sweep --transport: searches Open MPI's parameters, with the rules that go with them: which
-- transport and component, beside which algorithm, makes calls in a row fastest. ompi.lua makes files of
-- what it finds.
--
-- The space is lists.ompi_parameters: families, each with a base and axes. From its base a family goes axis
-- by axis; a value is taken where it is better by more than LEAST_GAIN. All values of an axis, and what
-- stands so far, take turns for LAUNCHES launches each, for launches differ among each other, and drift
-- hits all alike. In the end the best of each family and the defaults take turns again. Better is: a
-- smaller geometric mean over the sizes of the best algorithm's median over the launches.
local fail = require "fail"
local file = require "core.file"
local launcher = require "launcher"
local lists = require "lists"
local ompi = require "ompi"
local process = require "core.process"
local progress = require "progress"
local provenance = require "provenance"

local transport = {}

local LAUNCHES, LAST_LAUNCHES = 3, 5
local LEAST_GAIN = 1.02
local SIZES = { "-b", "256", "-e", "4M", "-f", "4" }
local CALLS = { "-n", "400", "-w", "3", "--budget", "0.005" } -- per algorithm and size

-- ---- one launch -------------------------------------------------------------------------------

local function setting_text(parameters)
  if #parameters == 0 then return ompi.default_setting end
  local out = {}
  for i, parameter in ipairs(parameters) do out[i] = parameter.name .. "=" .. parameter.value end
  return table.concat(out, ";")
end

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
  for _, parameter in ipairs(candidate.parameters) do add("--mca", parameter.name, parameter.value) end
  if not candidate.family.component then add("--mca", "coll_tuned_use_dynamic_rules", "1") end
  add(job.program, "--strategies", strategies_of(candidate.family))
  add(table.unpack(SIZES))
  add(table.unpack(CALLS))
  return words
end

-- Enters the times of one launch into the candidate: times[size][strategy] = { one per launch }.
local function launch(job, size, candidate)
  local child, message = process.start(command_of(job, size, candidate))
  if not child then fail.input("no mpirun (%s); install Open MPI", message) end
  local rows = 0
  while true do
    local line, problem = child:read_line(job.patience)
    if not line then
      local reason, clean = child:close(problem == "timeout" and 0 or 5)
      if process.interrupted() then fail.with(130, "interrupted; nothing was written") end
      if problem == "timeout" or not clean or rows == 0 then
        fail.work("TP %d, %s: the bench failed: %s", size, candidate.text,
          problem == "timeout" and "no answer in time" or reason)
      end
      break
    end
    local bytes, strategy, time = line:match("^%s*(%d+)%s+%d+%s+%S+%s+sum%s+(%S+)%s+([%d.]+)%s")
    if bytes and tonumber(time) > 0 then
      rows = rows + 1
      local by_size = candidate.times[tonumber(bytes)] or {}
      candidate.times[tonumber(bytes)] = by_size
      by_size[strategy] = by_size[strategy] or {}
      table.insert(by_size[strategy], tonumber(time))
    end
  end
  candidate.launches = candidate.launches + 1
end

-- ---- how good a setting is --------------------------------------------------------------------

local function median(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  return (sorted[(#sorted + 1) // 2] + sorted[#sorted // 2 + 1]) / 2, sorted[1], sorted[#sorted]
end

-- The geometric mean over the sizes of the best algorithm's median.
local function cost_of(candidate)
  local sum, count = 0, 0
  for _, by_strategy in pairs(candidate.times) do
    local best = math.huge
    for _, times in pairs(by_strategy) do best = math.min(best, (median(times))) end
    sum, count = sum + math.log(best), count + 1
  end
  return math.exp(sum / count)
end

-- ---- the search -------------------------------------------------------------------------------

-- The candidate of these parameters; the same one where they were tried before.
local function candidate_of(world, family, parameters)
  local text = setting_text(parameters)
  if not world.candidates[text] then
    world.candidates[text] = { text = text, family = family, parameters = parameters, times = {},
      launches = 0 }
    table.insert(world.order, world.candidates[text])
  end
  return world.candidates[text]
end

-- All of them take turns until each has so many launches more than the one with the fewest had.
local function take_turns(job, world, candidates, launches)
  for _ = 1, launches do
    for _, candidate in ipairs(candidates) do
      job.progress:show(("TP %d: %s"):format(world.size, candidate.text))
      launch(job, world.size, candidate)
      job.progress:step()
    end
  end
end

local function with(parameters, name, value)
  local out = table.move(parameters, 1, #parameters, 1, {})
  out[#out + 1] = { name = name, value = value }
  return out
end

-- Goes along the axes of a family. Returns its best candidate.
local function search_family(job, world, family)
  local best = candidate_of(world, family, family.base)
  if best.launches == 0 then take_turns(job, world, { best }, LAUNCHES) end
  for _, axis in ipairs(family.axes) do
    local tried = { best }
    for _, value in ipairs(axis.values) do
      tried[#tried + 1] = candidate_of(world, family, with(best.parameters, axis.name, value))
    end
    take_turns(job, world, tried, LAUNCHES)
    local stands = best
    for i = 2, #tried do
      local gains = cost_of(tried[i]) * LEAST_GAIN < cost_of(stands)
      if gains and cost_of(tried[i]) < cost_of(best) then best = tried[i] end
    end
  end
  return best
end

local function launches_of(families)
  local count = 0
  for _, family in ipairs(families) do
    count = count + LAUNCHES + LAST_LAUNCHES
    for _, axis in ipairs(family.axes) do count = count + LAUNCHES * (#axis.values + 1) end
  end
  return count + LAST_LAUNCHES
end

local function search(job, world, families)
  local finalists, seen = { candidate_of(world, families[1], {}) }, {}
  take_turns(job, world, finalists, LAUNCHES)
  seen[finalists[1]] = true
  for _, family in ipairs(families) do
    local best = search_family(job, world, family)
    if not seen[best] then finalists[#finalists + 1] = best end
    seen[best] = true
  end
  take_turns(job, world, finalists, LAST_LAUNCHES)
end

-- ---- what is written --------------------------------------------------------------------------

local function text_of(job, world)
  local out = { table.concat(ompi.columns, ",") }
  for _, candidate in ipairs(world.order) do
    local sizes = {}
    for size in pairs(candidate.times) do sizes[#sizes + 1] = size end
    table.sort(sizes)
    for _, size in ipairs(sizes) do
      for _, strategy in ipairs(lists.names("strategies")) do
        local times = candidate.times[size][strategy]
        if times then
          local middle, low, high = median(times)
          out[#out + 1] = ("%d,%s,%s,%s,%d,%.4f,%.4f,%.4f,%d"):format(world.size, job.library, candidate.text,
            strategy, size, middle, low, high, #times)
        end
      end
    end
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
  local best
  for _, candidate in ipairs(world.order) do
    if not best or cost_of(candidate) < cost_of(best) then best = candidate end
  end
  local default = world.candidates[ompi.default_setting]
  local words = "TP %d: best of %d settings: %s; its best algorithms against those of the defaults: %.2f"
  print(words:format(world.size, #world.order, best.text, cost_of(default) / cost_of(best)))
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
    local world = { size = size, candidates = {}, order = {},
      path = ompi.search_path(job.out, size, job.arch) }
    if is_current(job, world) then
      print(("%s: up to date, of this machine and bench"):format(world.path))
    else
      job.progress = progress.new(launches_of(families))
      search(job, world, families)
      job.progress:clear()
      write(job, world)
      say(world)
      print(("wrote %s"):format(world.path))
    end
  end
end

return transport
