-- The data of Open MPI's files: rules by message size, and the parameters that a search found. Renders and
-- measures nothing.
--
-- A search (gentables sweep --transport, sweep/transport.lua) leaves transport.tp{N}.{arch}.csv: times of
-- calls in a row for settings of Open MPI's parameters × algorithms × sizes. An algorithm's time depends on
-- the transport, so that each parameter file has rules of its own, from the times of its setting. Rules
-- without parameters are made from times of the default transport: those of the search, if there is one, else
-- those of the benchmark rows.
--
-- The best setting has the greatest gain over the defaults, as a geometric mean over the sizes. It must have
-- reached the last round, and at no size be slower than the defaults by more than MAY_LOSE and the spread of
-- the defaults.
--
-- ompi.tp_tables(source, nodes) gives { tp, segments, points }, for rules alone; ompi.searched(source) { tp,
-- parameters, setting, segments, has_rules, gain, worst, spread, sizes, library } of each search.
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local rank_placement = require "lists.rank_placement"
local by_bytes = require "sizes.by_bytes"
local rows_folder = require "rows.rows_folder"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local ompi = {}

ompi.columns = { "world_size", "library", "setting", "strategy", "size", "time (us)", "low (us)", "high (us)",
  "launches" }
ompi.default_setting, ompi.default_again, ompi.rules_alone = "default", "default again", "rules alone"

local MAY_LOSE = 0.05 -- of the defaults' time, at one size

function ompi.can_name(strategy) return strategy.ompi_algorithm ~= nil or strategy.name == "MPI" end

function ompi.search_path(data_dir, tp, arch)
  return ("%s/transport.tp%d.%s.csv"):format(data_dir, tp, arch)
end

-- ---- the search's files -----------------------------------------------------------------------

local function read_line(path, number, line)
  local fields = {}
  for field in (line .. ","):gmatch("([^,]*),") do fields[#fields + 1] = field end
  local size, time = math.tointeger(tonumber(fields[5])), tonumber(fields[6])
  local launches = math.tointeger(tonumber(fields[9]))
  local good = #fields == #ompi.columns and size and size > 0 and time and time > 0 and launches
  if not (good and lists.find("strategies", fields[4])) then
    fail.input("%s:%d: no row of a search of parameters; sweep --transport writes them", path, number)
  end
  return { library = fields[2], setting = fields[3], strategy = fields[4], size = size, time_us = time,
    launches = launches }
end

-- Reads a search: { library, settings = { name -> size -> strategy -> time }, launches = { name -> count },
-- order = { names } }.
local function read_search(path)
  local search, number = { settings = {}, launches = {}, order = {} }, 0
  for line in fail.unless(file.read(path)):gmatch("[^\n]+") do
    number = number + 1
    if number == 1 and line ~= table.concat(ompi.columns, ",") then
      fail.input("%s:1: not the columns of a search; sweep --transport writes %s", path,
        table.concat(ompi.columns, ","))
    elseif number > 1 then
      local row = read_line(path, number, line)
      search.library = row.library
      if not search.settings[row.setting] then
        search.settings[row.setting], search.launches[row.setting] = {}, row.launches
        table.insert(search.order, row.setting)
      end
      sequences.at(search.settings[row.setting], row.size)[row.strategy] = row.time_us
    end
  end
  if not search.settings[ompi.default_setting] then
    fail.input("%s: no row of the setting %s, to which others compare", path, ompi.default_setting)
  end
  return search
end

-- The points (see sizes/by_bytes.lua) of one setting.
local function points_of(by_size)
  local points = {}
  for size, times in pairs(by_size) do
    local badness, least = {}, math.huge
    for _, time in pairs(times) do least = math.min(least, time) end
    for name, time in pairs(times) do badness[name] = time / least - 1 end
    points[#points + 1] = { size = size, badness = badness, times = times }
  end
  return ordering.sort(points, ordering.by "size")
end

-- ---- the best setting -------------------------------------------------------------------------

-- The spread of the defaults: the largest ratio, over sizes, of two measurements of the defaults; 1: not
-- measured.
local function spread_of(search)
  local again, spread = search.settings[ompi.default_again], 1
  for size, times in pairs(search.settings[ompi.default_setting]) do
    local other = again and again[size] and again[size].MPI
    if other and times.MPI then
      spread = math.max(spread, times.MPI / other, other / times.MPI)
    end
  end
  return spread
end

-- The gain of segments over the defaults' own decision, as ratios of times over the sizes that both have:
-- their geometric mean, the least one, and their number.
local function gain_of(segments, default)
  local sum, count, worst = 0, 0, math.huge
  for _, segment in ipairs(segments) do
    for _, point in ipairs(segment.points) do
      local before = default[point.size] and default[point.size].MPI
      if before then
        local gain = before / point.times[segment.strategy.name]
        sum, count, worst = sum + math.log(gain), count + 1, math.min(worst, gain)
      end
    end
  end
  if count == 0 then return 0, 0, 0 end
  return math.exp(sum / count), worst, count
end

-- "a=1;b=2" as { { name, value } ... }: Open MPI's parameters. Names in capitals are variables of the
-- environment; they become the value of one parameter.
function ompi.parameters_of(setting)
  local parameters, environment = {}, {}
  for name, value in setting:gmatch("([%w_]+)=([^;]*)") do
    if name:find("^%u") then
      environment[#environment + 1] = name .. "=" .. value
    else
      parameters[#parameters + 1] = { name = name, value = value }
    end
  end
  if #environment > 0 then
    parameters[#parameters + 1] = { name = "mca_base_env_list", value = table.concat(environment, ";") }
  end
  return parameters
end

-- Whether any segment differs from the built-in decision.
local function has_a_rule(segments)
  return sequences.any(segments, function(segment) return segment.strategy.ompi_algorithm end)
end

-- Whether a setting was launched as often as the defaults.
local function is_in_last_round(search, setting)
  return (search.launches[setting] or -1) >= (search.launches[ompi.default_again] or 0)
end

-- The best setting of a search.
local function choose(search)
  local default, spread = search.settings[ompi.default_setting], spread_of(search)
  local best
  for _, setting in ipairs(search.order) do
    local segments = by_bytes.segments(points_of(search.settings[setting]))
    local gain, worst, count = gain_of(segments, default)
    local may_win = is_in_last_round(search, setting) and worst * spread * (1 + MAY_LOSE) >= 1
    if may_win and (not best or gain > best.gain) then
      best = { setting = setting, segments = segments, gain = gain, worst = worst, spread = spread,
        sizes = count, library = search.library, parameters = ompi.parameters_of(setting),
        has_rules = has_a_rule(segments) }
    end
  end
  return best
end

-- The best setting of the search in a file: { setting, parameters, gain, worst, spread, ... }.
function ompi.best(path) return choose(read_search(path)) end

-- ---- rules for each TP size ---------------------------------------------------------------------

-- The searches of a source, by TP size; read once. They are of one node.
local function searches_of(source)
  if source.searches then return source.searches end
  source.searches = {}
  for _, entry in ipairs(source.files) do
    local path = ompi.search_path(source.data_dir, entry.tp, source.arch)
    if not rank_placement.spans(entry.nodes) and file.exists(path) then
      rows_folder.check_beside(path, entry)
      local search = read_search(path)
      local alone = is_in_last_round(search, ompi.rules_alone) and search.settings[ompi.rules_alone]
      source.searches[entry.tp] = { best = choose(search),
        alone = alone and by_bytes.segments(points_of(alone)) }
    end
  end
  return source.searches
end

-- The tables of ranks on `nodes` nodes (nil: one).
function ompi.tp_tables(source, nodes)
  if rank_placement.spans(nodes) then return by_bytes.tp_tables(source, ompi.can_name, nil, nodes) end
  local tp_tables, searches, seen = {}, searches_of(source), {}
  for _, tp_table in ipairs(by_bytes.tp_tables(source, ompi.can_name)) do
    local search = searches[tp_table.tp]
    if search and search.alone then tp_table.segments = search.alone end
    tp_tables[#tp_tables + 1], seen[tp_table.tp] = tp_table, true
  end
  for tp, search in pairs(searches) do
    if not seen[tp] and search.alone then
      tp_tables[#tp_tables + 1] = { tp = tp, segments = search.alone }
    end
  end
  return ordering.sort(tp_tables, ordering.by "tp")
end

-- The best setting of each TP size that was searched, for a parameter file each.
function ompi.searched(source)
  local tp_tables = {}
  for tp, search in pairs(searches_of(source)) do
    local best = search.best
    best.tp = tp
    tp_tables[#tp_tables + 1] = best
  end
  return ordering.sort(tp_tables, ordering.by "tp")
end

-- Of these, those that have rules.
function ompi.searched_with_rules(source)
  return sequences.filter(ompi.searched(source), function(tp_table) return tp_table.has_rules end)
end

-- ---- rules ------------------------------------------------------------------------------------

-- Open MPI 6's names of its algorithms, by number; 0 is its own decision.
local words = { [0] = "ignore", "basic_linear", "nonoverlapping", "recursive_doubling", "ring",
  "segmented_ring", "rabenseifner" }

local function rules_of(tp_table)
  return sequences.map(tp_table.segments, function(segment)
    local number = segment.strategy.ompi_algorithm or 0
    return { first = segment.first, last = segment.last, algorithm = number, word = words[number],
      name = number == 0 and "the built-in decision" or words[number] }
  end)
end

-- The communicator sizes of a rules file: { size, measured, predicted, rules }. Unless `exact`, the reader
-- uses the entry of the largest size up to its own, so each gap gets an entry with the built-in decision.
-- `of`: the rules of a table, and `otherwise` the rule of gaps; nil: those of coll/tuned.
function ompi.communicators(tp_tables, exact, of, otherwise)
  local out, measured = {}, sequences.set(sequences.field(tp_tables, "tp"))
  otherwise = otherwise or { first = 0, algorithm = 0, name = "the built-in decision" }
  for _, tp_table in ipairs(tp_tables) do
    out[#out + 1] = { size = tp_table.tp, measured = true, predicted = tp_table.predicted,
      rules = (of or rules_of)(tp_table) }
    if not exact and not measured[tp_table.tp + 1] then
      out[#out + 1] = { size = tp_table.tp + 1, rules = { otherwise } }
    end
  end
  return out
end

-- The communicators of a file of Open MPI 6 for jobs on `nodes` nodes: { size, rules, distribution }. Its
-- rules distinguish communicators on one node, and those with one rank on each node; these come first. It has
-- no room for marks, so predicted choices are left out.
function ompi.distributed(source, nodes)
  local counts = require("formats.model").node_counts(source, true)
  local out, others = {}, {}
  local function add(tp_table, distribution, list)
    local communicator = ompi.communicators({ tp_table }, true)[1]
    communicator.distribution = distribution
    list[#list + 1] = communicator
  end
  for _, tp_table in ipairs(ompi.tp_tables(source)) do
    add(tp_table, #counts > 1 and "single-node" or "any", out)
  end
  for _, count in ipairs(counts) do
    for _, tp_table in ipairs(count > 1 and ompi.tp_tables(source, count) or {}) do
      if tp_table.tp == count then
        add(tp_table, "one-per-node", out)
      elseif count == nodes then
        add(tp_table, "any", others)
      end
    end
  end
  return table.move(others, 1, #others, #out + 1, out)
end

-- ---- missing measurements ---------------------------------------------------------------------

-- The measurements that are missing for rules, as text; nil: none.
function ompi.lacks_rules(source)
  for _, search in pairs(searches_of(source)) do
    if search.alone then return nil end
  end
  for name in pairs(require("formats.model").measured(source)) do
    if lists.find("strategies", name).ompi_algorithm then return nil end
  end
  return "no row of a single algorithm of Open MPI; measure MPI_RING and the others: gentables sweep, " ..
    "with Open MPI"
end

-- "5.0.7" as { 5, 0, 7 }.
local function numbers_of(version)
  local numbers = {}
  for number in version:gmatch("%d+") do numbers[#numbers + 1] = math.tointeger(number) end
  return numbers
end

local function is_below(version, least)
  local is, wanted = numbers_of(version), numbers_of(least)
  for i, number in ipairs(wanted) do
    if (is[i] or 0) ~= number then return (is[i] or 0) < number end
  end
  return false
end

-- The formats of rules: the versions of Open MPI that read them as they are meant, each range as { first,
-- before (nil: no end) }; `words` and the format to use instead for messages. Open MPI 6 reads classic rules
-- and version 2, too, but a rule for N ranks counts below N there.
ompi.versions = {
  classic = { ranges = { { "0", "6.0" } }, words = "Open MPI before 6.0 reads it as it is meant",
    instead = "ompi_rules.json (--formats ompi-json)" },
  v2 = { ranges = { { "4.1.8", "5.0" }, { "5.0.7", "6.0" } },
    words = "Open MPI 4.1.8, and 5.0 from 5.0.7 on, read it", instead = "ompi_rules.conf (--formats ompi)",
    instead_since = { "6.0", "ompi_rules.json (--formats ompi-json)" } },
  json = { ranges = { { "6.0" } }, words = "Open MPI 6.0 and later read it",
    instead = "ompi_rules.conf (--formats ompi)" },
}

-- The versions of Open MPI with which the rows and searches of a source were measured, if they are recorded.
local function versions_of(source)
  local versions = sequences.map(source.files, function(entry)
    local machine = entry.provenance and entry.provenance.machine
    return machine and machine.mpi and machine.mpi:match("^Open MPI (%d[%d.]*)")
  end)
  for _, search in pairs(searches_of(source)) do
    versions[#versions + 1] = search.best.library:match("^%d[%d.]*")
  end
  return versions
end

local function is_read_by(format, version)
  return sequences.any(format.ranges, function(range)
    return not is_below(version, range[1]) and (not range[2] or is_below(version, range[2]))
  end)
end

-- Whether a version of Open MPI, as text, reads a format of rules (a key of ompi.versions) as it is meant.
function ompi.reads(name, version) return is_read_by(ompi.versions[name], version) end

-- A message if rows are of a version of Open MPI that does not read a format of rules (a key of
-- ompi.versions); else nil.
function ompi.unread(source, name)
  local format = ompi.versions[name]
  for _, version in ipairs(versions_of(source)) do
    if not is_read_by(format, version) then
      local since = format.instead_since
      local instead = since and not is_below(version, since[1]) and since[2] or format.instead
      return ("%s, and the rows are of Open MPI %s; use %s, or rows of such a version"):format(format.words,
        version, instead)
    end
  end
end

-- Whether all rows of a source that name a version of Open MPI name `least` or a later one, and some do.
function ompi.is_since(source, least)
  local versions = versions_of(source)
  return #versions > 0 and not sequences.any(versions, function(version) return is_below(version, least) end)
end

function ompi.lacks_search(source)
  if next(searches_of(source)) then return nil end
  return ("no transport.tp{N}.%s.csv; gentables sweep --transport measures Open MPI's parameters"):format(
    source.arch)
end

-- The measurements that are missing for rules with parameters, as text; nil: none.
function ompi.lacks_searched_rules(source)
  local lacks = ompi.lacks_search(source)
  if lacks or #ompi.searched_with_rules(source) > 0 then return lacks end
  return "the best parameters do not change the algorithms; ompi_tp{N}.conf alone has them"
end

return ompi
