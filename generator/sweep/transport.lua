-- gentables sweep --transport: searches Open MPI's parameters, together with the rules for its algorithms:
-- the transport, component and algorithm with the fastest calls in a row. formats/ompi.lua makes files of the
-- result.
--
-- The space is ompi_parameters.lua: families of settings. The search has a budget. In a turn every
-- remaining setting is launched once, in random order, and the defaults twice, as two settings, which shows
-- the noise of a comparison. After HEAT turns the slower half of each family is dropped, down to FINALISTS,
-- HEATS times; the finalists take turns until the budget ends, LAST_TURNS at most. The search reports turns
-- that it could not finish. The cost of a setting is the geometric mean over sizes of the best algorithm's
-- median time over launches. Calls are of float32, which Open MPI adds up itself.
--
-- A machine can change by a factor of three from one second to the next. Therefore every launch also times a
-- control at every size, which no parameter of Open MPI changes; a time counts if its control took about the
-- median of all controls.
local child_process = require "system.child_process"
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local launcher = require "conversation.launcher"
local lists = require "lists.lists"
local ompi = require "formats.ompi"
local ompi_parameters = require "sweep.ompi_parameters"
local ordering = require "base.ordering"
local process = require "core.process"
local progress = require "system.progress"
local provenance = require "rows.provenance"
local scratch = require "system.scratch"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local statistics = require "base.statistics"

local transport = {}

local BUDGET_S = 240 -- for each TP size
local HEATS, HEAT, FINALISTS, LAST_TURNS = 2, 2, 3, 20
local LAST_SHARE = 0.4 -- of the budget, for the finalists
local LAUNCH_SHARE = 1 / 6 -- of the patience, for a launch; settings that take longer are left out
local HOPELESS = 2 -- times the defaults' time
local CONTROL, CHANGED = "ONESHOT", 1.5
local SIZES = { "-b", "256", "-e", "4M", "-f", "2" }
local CALLS = { "-d", "float32", "-n", "4000", "-w", "3" }
local GRACE = 5 -- seconds for the end of a launch
local SIZE_S = 0.024 -- for all algorithms; in shorter launches a machine has not reached its usual speed

-- ---- one launch -------------------------------------------------------------------------------

-- The strategies to time in a family: with a component there is no algorithm to choose.
local function strategies_of(family)
  local names = { "MPI", CONTROL }
  for _, row in ipairs(family.component and {} or lists.strategies) do
    if row.ompi_algorithm then names[#names + 1] = row.name end
  end
  return names
end

-- The bench of a launch writes its times to `path`, as JSON.
local function command_of(job, size, setting, path)
  local words = launcher.plain_command(size, job.machine.cores)
  local function add(...) sequences.append(words, { ... }) end
  for _, parameter in ipairs(ompi.parameters_of(setting.text)) do
    add("--mca", parameter.name, parameter.value)
  end
  if not setting.family.component then add("--mca", "coll_tuned_use_dynamic_rules", "1") end
  local strategies = strategies_of(setting.family)
  add(job.program, "--strategies", table.concat(strategies, ","))
  add(table.unpack(SIZES))
  add(table.unpack(CALLS))
  add("--budget", ("%g"):format(SIZE_S / #strategies), "--output_file", path)
  return words
end

-- The times of the file that a bench wrote: size -> strategy -> microseconds; nil if it has none.
local function read_times(path)
  local document, times = json.decode(file.read(path) or ""), {}
  for _, result in ipairs(document and document.results or {}) do
    local time_us = result.out_of_place.time
    if time_us > 0 then
      sequences.at(times, result.size)[result.strategy] = time_us
    end
  end
  return next(times) and times
end

-- The times of one launch, as read_times returns them; or nil and the failure.
local function times_of_launch(job, size, setting)
  local folder <close> = scratch.folder("gentables-transport")
  local path = folder.path .. "/times.json"
  local limit_s = job.patience * LAUNCH_SHARE
  local ran = launcher.run(command_of(job, size, setting, path),
    { seconds = limit_s, grace = GRACE, returns_on_signal = true })
  child_process.raise_if_interrupted("nothing was written")
  if ran.problem == "start" then fail.input("no mpirun (%s); install Open MPI", ran.reason) end
  if ran.problem == "timeout" then return nil, ("a launch takes more than %g s"):format(limit_s) end
  if not ran.well then return nil, "the bench failed: " .. ran.reason end
  local times = read_times(path)
  if not times then return nil, "the bench has no times" end
  return times
end

-- Launches a setting once, and enters its times with the control's beside them.
local function launch(job, search, setting)
  job.progress:within(search.done, search.total, ("TP %d: %s"):format(search.size, setting.text))
  local times, problem = times_of_launch(job, search.size, setting)
  search.done = search.done + 1
  if not times then
    if lists.contains(search.defaults, setting) then
      fail.work("TP %d, the defaults: %s", search.size, problem)
    end
    setting.left_out = problem
    return
  end
  for size, by_strategy in pairs(times) do
    local control = by_strategy[CONTROL]
    if control then table.insert(sequences.at(search.controls, size), control) end
    local times_here = sequences.at(setting.times, size)
    by_strategy[CONTROL] = nil
    for strategy, time in pairs(by_strategy) do
      table.insert(sequences.at(times_here, strategy), { time = time, control = control })
    end
  end
  setting.launches = setting.launches + 1
end

-- ---- the cost of a setting --------------------------------------------------------------------

-- The times that count, of those of launches; if none does, nil, or, with `need`, all.
local function counted(entries, middle, need)
  local kept, all = {}, {}
  for i, entry in ipairs(entries) do
    all[i] = entry.time
    local change = entry.control and middle and entry.control / middle or 1
    if change < CHANGED and change > 1 / CHANGED then kept[#kept + 1] = entry.time end
  end
  return (#kept > 0 and kept) or (need and all) or nil
end

-- The times of a setting that count: size -> strategy -> microseconds. The defaults, with which the others
-- are compared, have some at every size.
local function times_of(search, setting)
  local out, need = {}, lists.contains(search.defaults, setting)
  for size, by_strategy in pairs(setting.times) do
    local controls = search.controls[size]
    local middle = controls and statistics.lower_median(controls)
    out[size] = {}
    for strategy, entries in pairs(by_strategy) do out[size][strategy] = counted(entries, middle, need) end
  end
  return out
end

-- The cost: the mean over sizes of log(the best algorithm's time / the defaults' time); nil if no time
-- counts.
local function cost_of(search, setting)
  local sum, count, defaults = 0, 0, times_of(search, search.defaults[1])
  for size, by_strategy in pairs(times_of(search, setting)) do
    local best = math.huge
    for _, times in pairs(by_strategy) do best = math.min(best, statistics.lower_median(times)) end
    if best < math.huge then
      sum, count = sum + math.log(best / statistics.lower_median(defaults[size].MPI)), count + 1
    end
  end
  return count > 0 and sum / count or nil
end

-- ---- the search ---------------------------------------------------------------------------------

local function new_setting(search, family, text)
  local setting = { text = text, family = family, times = {}, launches = 0 }
  table.insert(search.order, setting)
  return setting
end

-- All combinations of one text of each axis, behind the family's base: parameters joined by ";".
local function texts_of(family)
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

-- Adds the settings of all families, which it returns, and the defaults, which are never dropped.
local function enter(search, families)
  local others, as_it_is = {}, { component = "none" }
  search.defaults = { new_setting(search, as_it_is, ompi.default_setting),
    new_setting(search, as_it_is, ompi.default_again) }
  others[1] = new_setting(search, {}, ompi.rules_alone) -- a family of its own, so that it is never dropped
  for _, family in ipairs(families) do
    for _, text in ipairs(texts_of(family)) do
      if text ~= "" then others[#others + 1] = new_setting(search, family, text) end
    end
  end
  return others
end

local function shuffle(list)
  for i = #list, 2, -1 do
    local j = math.random(i)
    list[i], list[j] = list[j], list[i]
  end
end

-- The settings of a list that are not left out.
local function remaining(settings)
  return sequences.filter(settings, function(setting) return not setting.left_out end)
end

-- Launches each setting once, in random order, until the time is over. The defaults come last, so that
-- settings with as many launches as they have are comparable; in the first turn they come first, whatever
-- the time is, because nothing is comparable without them. Returns whether the turn is complete.
local function take_turn(job, search, settings, ends_at)
  local order = table.move(settings, 1, #settings, 1, {})
  shuffle(order)
  local is_first = search.defaults[1].launches == 0
  local index = is_first and 1 or #order + 1
  for i, default in ipairs(search.defaults) do table.insert(order, index + i - 1, default) end
  for i, setting in ipairs(order) do
    if process.now() >= ends_at and not (is_first and i <= #search.defaults) then return false end
    launch(job, search, setting)
  end
  return true
end

-- The faster half of one family's settings, but at least FINALISTS, without those that are HOPELESS times
-- slower than the defaults; and the settings without a time that counts.
local function faster_half(search, settings)
  local cost, known, kept = {}, {}, {}
  for _, setting in ipairs(settings) do
    cost[setting] = cost_of(search, setting)
    table.insert(cost[setting] and known or kept, setting)
  end
  table.sort(known, function(a, b)
    return cost[a] < cost[b] or cost[a] == cost[b] and a.text < b.text
  end)
  for i = 1, math.min(#known, math.max(FINALISTS, (#known + 1) // 2)) do
    if cost[known[i]] < math.log(HOPELESS) then kept[#kept + 1] = known[i] end
  end
  return kept
end

-- The faster half of each family: a setting that is slower on average may be the best at some sizes.
local function faster_halves(search, settings)
  local families = ordering.groups(settings, function(setting) return setting.family end)
  return sequences.join(families, function(family) return faster_half(search, family) end)
end

-- Runs the heats until their share of the budget is spent. Returns the finalists.
local function run_heats(job, search, settings, ends_at)
  for heat = 1, HEATS do
    for turn = 1, HEAT do
      search.total = search.done + (HEATS - heat + 1) * HEAT * (#settings + #search.defaults)
      if not take_turn(job, search, settings, ends_at) then
        search.unfinished = ("heat %d of %d, turn %d of %d"):format(heat, HEATS, turn, HEAT)
        return remaining(settings)
      end
      settings = remaining(settings)
    end
    settings = faster_halves(search, settings)
  end
  return settings
end

local function find_finalists(job, search, families)
  local settings, started = enter(search, families), process.now()
  local finalists = run_heats(job, search, settings, started + job.budget_s * (1 - LAST_SHARE))
  for turn = 1, LAST_TURNS do
    search.total = search.done + (LAST_TURNS - turn + 1) * (#finalists + #search.defaults)
    if not take_turn(job, search, finalists, started + job.budget_s) then break end
    finalists = remaining(finalists)
  end
  search.finalists = finalists
  job.progress:step()
  job.progress:clear()
end

-- ---- output -----------------------------------------------------------------------------------

-- Adds the rows of a setting: the median, least and largest of its times that count.
local function add_rows(out, job, search, setting)
  local times = times_of(search, setting)
  for _, size in ipairs(sorted_keys(times)) do
    for _, strategy in ipairs(lists.names("strategies")) do
      local of = times[size][strategy]
      if of then
        out[#out + 1] = ("%d,%s,%s,%s,%d,%.4f,%.4f,%.4f,%d"):format(search.size, job.library, setting.text,
          strategy, size, statistics.lower_median(of), math.min(table.unpack(of)), math.max(table.unpack(of)),
          setting.launches)
      end
    end
  end
end

local function text_of(job, search)
  local out = { table.concat(ompi.columns, ",") }
  for _, setting in ipairs(search.order) do
    if not setting.left_out then add_rows(out, job, search, setting) end
  end
  return table.concat(out, "\n") .. "\n"
end

local function write(job, search)
  local text = text_of(job, search)
  fail.unless_done(provenance.write(search.path, text, { world_size = search.size, arch = job.arch,
    fingerprint = job.fingerprint, machine = job.machine, bench = job.identity, spec = { hash = "transport" },
    placement = search.size > job.machine.cores and "oversubscribed" or "dedicated",
    date = os.date("!%Y-%m-%dT%H:%M:%SZ"), no_time = {} }))
end

-- Whether the file is of this machine and bench.
local function is_current(job, search)
  local path = provenance.path_of(search.path)
  if job.fresh or not (file.exists(search.path) and file.exists(path)) then return false end
  local old = provenance.read(path)
  return old and old.fingerprint == job.fingerprint
end

local function print_unfinished(job, search)
  for _, group in ipairs(ordering.groups(search.order, function(setting) return setting.left_out end)) do
    print(("      left out: %d, %s"):format(#group, group.key))
  end
  if search.unfinished then
    print(("      not finished in %g s: %s was cut off, with %d settings left; use a larger --budget")
      :format(job.budget_s, search.unfinished, #search.finalists))
  end
end

local function print_result(job, search)
  local best = ompi.best(search.path)
  print(("TP %d: best of %d settings: %s: %.2f times faster than the defaults, %.2f at the least gain " ..
    "(the defaults against themselves: %.2f)"):format(search.size, #search.order, best.setting, best.gain,
    best.worst, best.spread))
  print_unfinished(job, search)
end

-- The TP sizes of the job on one node.
local function sizes_of(job)
  local sizes = sequences.map(job.placements, function(of) return of.nodes == 1 and of.world_size or nil end)
  if #sizes == 0 then fail.input("--transport searches on one node, and no TP size is on one") end
  return sizes
end

-- Searches for each TP size. `job` is that of a sweep: { out, arch, placements, program, identity, machine,
-- fingerprint, patience, fresh, budget_s (nil: BUDGET_S for each) }.
function transport.run(job)
  local version = launcher.open_mpi_version()
  if not version then
    fail.input("--transport searches Open MPI's parameters; the mpirun in PATH is not Open MPI's")
  end
  local families = ompi_parameters(version.major)
  job.library = version.text
  job.fingerprint = job.fingerprint .. " transport"
  local sizes = sizes_of(job)
  job.budget_s = job.budget_s and job.budget_s / #sizes or BUDGET_S
  local searches = sequences.map(sizes, function(size)
    local search = { size = size, order = {}, controls = {}, done = 0, total = 0, -- launches
      path = ompi.search_path(job.out, size, job.arch) }
    search.is_current = is_current(job, search)
    return search
  end)
  job.progress = progress.new()
  job.progress.total = #sequences.filter(searches, function(search) return not search.is_current end)
  job.progress:in_lines()
  job.progress:in_turn()
  for _, search in ipairs(searches) do
    if search.is_current then
      print(("%s: up to date, of this machine and bench"):format(search.path))
    else
      find_finalists(job, search, families)
      write(job, search)
      print_result(job, search)
      print(("wrote %s"):format(search.path))
    end
  end
end

return transport
