-- What Open MPI's files are made from: rules by message size, and the parameters that a search found. It
-- renders nothing and measures nothing.
--
-- A search (gentables sweep --transport, transport.lua) leaves transport.tp{N}.{arch}.csv: times of calls
-- in a row for settings of Open MPI's parameters × algorithms × sizes. Where there is one, the rules of
-- that size are those of its best setting, for an algorithm's time depends on the transport; else they are
-- of the benchmark rows.
--
-- ompi.worlds(source) gives { tp, segments, points, search }, for rules; ompi.searched(source) those with a
-- `search`: { setting, parameters, gain, sizes, library }.
local fail = require "fail"
local file = require "core.file"
local lists = require "lists"
local sizes = require "sizes"

local ompi = {}

ompi.columns = { "world_size", "library", "setting", "strategy", "size", "time (us)", "low (us)", "high (us)",
  "launches" }
ompi.default_setting = "default"

function ompi.can_name(strategy) return strategy.ompi_algorithm ~= nil or strategy.name == "MPI" end

function ompi.search_path(data_dir, tp, arch)
  return ("%s/transport.tp%d.%s.csv"):format(data_dir, tp, arch)
end

-- ---- the search's files -----------------------------------------------------------------------

local function read_line(path, number, line)
  local fields = {}
  for field in (line .. ","):gmatch("([^,]*),") do fields[#fields + 1] = field end
  local size, time = math.tointeger(tonumber(fields[5])), tonumber(fields[6])
  local good = #fields == #ompi.columns and size and size > 0 and time and time > 0
  if not (good and lists.find("strategies", fields[4])) then
    fail.input("%s:%d: no row of a search of parameters; sweep --transport writes them", path, number)
  end
  return { library = fields[2], setting = fields[3], strategy = fields[4], size = size, time_us = time }
end

-- Reads a search: { library, settings = { name -> size -> strategy -> time }, order = { names } }.
local function read_search(path)
  local search, number = { settings = {}, order = {} }, 0
  for line in fail.unless(file.read(path)):gmatch("[^\n]+") do
    number = number + 1
    if number == 1 and line ~= table.concat(ompi.columns, ",") then
      fail.input("%s:1: not the columns of a search; sweep --transport writes %s", path,
        table.concat(ompi.columns, ","))
    elseif number > 1 then
      local row = read_line(path, number, line)
      search.library = row.library
      if not search.settings[row.setting] then
        search.settings[row.setting] = {}
        table.insert(search.order, row.setting)
      end
      local by_size = search.settings[row.setting]
      by_size[row.size] = by_size[row.size] or {}
      by_size[row.size][row.strategy] = row.time_us
    end
  end
  if not search.settings[ompi.default_setting] then
    fail.input("%s: no row of the setting %s, to which others compare", path, ompi.default_setting)
  end
  return search
end

-- The points (see sizes.lua) of one setting.
local function points_of(by_size)
  local points = {}
  for size, times in pairs(by_size) do
    local best, badness = math.huge, {}
    for _, time in pairs(times) do best = math.min(best, time) end
    for name, time in pairs(times) do badness[name] = time / best - 1 end
    points[#points + 1] = { size = size, badness = badness, times = times }
  end
  table.sort(points, function(a, b) return a.size < b.size end)
  return points
end

-- How many times faster than the default's own decision: a geometric mean over the sizes that both have.
function ompi.gain(segments, default)
  local sum, count = 0, 0
  for _, segment in ipairs(segments) do
    for _, point in ipairs(segment.points) do
      local before = default[point.size] and default[point.size].MPI
      if before then
        sum, count = sum + math.log(before / point.times[segment.strategy.name]), count + 1
      end
    end
  end
  return count > 0 and math.exp(sum / count) or 0, count
end

-- "a=1;b=2" as { { name, value } ... }.
function ompi.parameters_of(setting)
  local parameters = {}
  for name, value in setting:gmatch("([%w_]+)=([^;]*)") do
    parameters[#parameters + 1] = { name = name, value = value }
  end
  return parameters
end

-- The parameters of a setting, and what makes Open MPI read the rules where these say anything.
local function with_rules(setting, segments)
  local parameters = ompi.parameters_of(setting)
  local needs_rules = false
  for _, segment in ipairs(segments) do
    needs_rules = needs_rules or segment.strategy.ompi_algorithm ~= nil
  end
  if needs_rules then
    parameters[#parameters + 1] = { name = "coll_tuned_use_dynamic_rules", value = "1" }
    parameters[#parameters + 1] = { name = "coll_tuned_dynamic_rules_filename", value = "ompi_rules.conf" }
  end
  return parameters
end

-- Whether a setting leaves the choice to coll/tuned, so that rules have a say.
local function has_rules(by_size)
  for _, times in pairs(by_size) do
    for name in pairs(times) do
      if name ~= "MPI" then return true end
    end
  end
end

-- The best setting of a search, its segments, and the segments of the best one that has rules.
local function choose(search)
  local default, best, ruled = search.settings[ompi.default_setting], nil, nil
  for _, setting in ipairs(search.order) do
    local by_size = search.settings[setting]
    local segments = sizes.segments(points_of(by_size))
    local gain, count = ompi.gain(segments, default)
    local entry = { setting = setting, segments = segments, gain = gain, sizes = count,
      library = search.library }
    if not best or gain > best.gain then best = entry end
    if has_rules(by_size) and (not ruled or gain > ruled.gain) then ruled = entry end
  end
  return best, ruled or best
end

-- ---- worlds -----------------------------------------------------------------------------------

-- The searches of a source, by TP size; read once.
local function searches_of(source)
  if source.searches then return source.searches end
  source.searches = {}
  for _, entry in ipairs(source.files) do
    local path = ompi.search_path(source.data_dir, entry.tp, source.arch)
    if file.exists(path) then
      local best, ruled = choose(read_search(path))
      best.parameters = with_rules(best.setting, best.segments)
      source.searches[entry.tp] = { best = best, ruled = ruled }
    end
  end
  return source.searches
end

function ompi.worlds(source)
  local worlds, searches, seen = {}, searches_of(source), {}
  for _, world in ipairs(sizes.worlds(source, ompi.can_name)) do
    local search = searches[world.tp]
    if search then world.segments = search.ruled.segments end
    worlds[#worlds + 1], seen[world.tp] = world, true
  end
  for tp, search in pairs(searches) do
    if not seen[tp] then worlds[#worlds + 1] = { tp = tp, segments = search.ruled.segments } end
  end
  table.sort(worlds, function(a, b) return a.tp < b.tp end)
  return worlds
end

-- The TP sizes that were searched, as worlds for a parameter file each.
function ompi.searched(source)
  local worlds = {}
  for tp, search in pairs(searches_of(source)) do
    local best = search.best
    worlds[#worlds + 1] = { tp = tp, parameters = best.parameters, gain = best.gain, sizes = best.sizes,
      library = best.library }
  end
  table.sort(worlds, function(a, b) return a.tp < b.tp end)
  return worlds
end

-- ---- rules ------------------------------------------------------------------------------------

-- Open MPI 6's words for its algorithms, by number; 0 is its own decision.
local words = { [0] = "ignore", "basic_linear", "nonoverlapping", "recursive_doubling", "ring",
  "segmented_ring", "rabenseifner" }

local function rules_of(world)
  local rules = {}
  for i, segment in ipairs(world.segments) do
    local number = segment.strategy.ompi_algorithm or 0
    rules[i] = { first = segment.first, last = segment.last, algorithm = number, word = words[number],
      name = number == 0 and "the built-in decision" or words[number] }
  end
  return rules
end

-- The communicator sizes of a rules file: { size, measured, rules }. Unless `exact`, the reader uses the
-- entry of the last size that is not above its own, so that each gap is closed by one that decides nothing.
function ompi.communicators(worlds, exact)
  local out, measured = {}, {}
  for _, world in ipairs(worlds) do measured[world.tp] = true end
  for _, world in ipairs(worlds) do
    out[#out + 1] = { size = world.tp, measured = true, rules = rules_of(world) }
    if not exact and not measured[world.tp + 1] then
      out[#out + 1] = { size = world.tp + 1,
        rules = { { first = 0, algorithm = 0, name = "the built-in decision" } } }
    end
  end
  return out
end

-- ---- what has to be measured ------------------------------------------------------------------

-- What lacks before there can be rules; nil: nothing.
function ompi.lacks_rules(source)
  if next(searches_of(source)) then return nil end
  for name in pairs(require("model").measured(source)) do
    if lists.find("strategies", name).ompi_algorithm then return nil end
  end
  return "no row of a single algorithm of Open MPI; measure MPI_RING and the others: gentables sweep, " ..
    "with Open MPI"
end

function ompi.lacks_search(source)
  if next(searches_of(source)) then return nil end
  return ("no transport.tp{N}.%s.csv; gentables sweep --transport measures Open MPI's parameters"):format(
    source.arch)
end

return ompi
