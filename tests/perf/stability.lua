-- How often tables that are made again from other launches change the bits of results, played on recorded
-- rows. tests/recorded/numerics_are_stable.lua asserts it.
--
--   gentables lua tests/perf/stability.lua RECORDED.csv [RUNS [FUSION]]
--
-- The first tables are chosen from all recorded launches. For each run as many launches, drawn at random with
-- replacement, are the rows, from which the tables are made again beside the first ones, with --numerics any
-- and with --numerics stable: the table by shape, the one by powers of two, and the rules by bytes. Prints
-- how many of the results at recorded shapes have other bits than by the first tables.
local tests = arg[0]:match "^(.*/)perf/[^/]*$"
if tests then package.path = package.path .. ";" .. tests .. "?.lua" end
local by_bytes = require "sizes.by_bytes"
local cell_records = require "rows.cell_records"
local lib = require "recorded.lib"
local lookup = require "core.lookup_rule"

local stability = {}

-- A generator of integers from 1 to `most`, the same for a seed on every machine.
local function generator(seed)
  local state = seed
  return function(most)
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (state >> 33) % most + 1
  end
end

-- The recorded launches, or as many of them, drawn with replacement.
local function drawn(count, seed)
  local order, draw = {}, generator(seed)
  for i = 1, count do order[i] = seed == 0 and i or draw(count) end
  return order
end

-- ---- the tables -------------------------------------------------------------------------------

-- The tables { nearest, log2, tp_tables[fusion] } from rows, as formats.model makes them; `first`: those that
-- they replace, or nil.
local function tables_of(recording, spec, read, is_stable, first)
  local nearest = lib.select(recording, spec, read, { lookup = "nearest", incumbent = first and first.nearest,
    stable = is_stable and (first and first.nearest or true) })
  local source = { rows = read, files = {}, derived = {}, axes = spec.table, stable = is_stable,
    stable_as = is_stable and nearest }
  local tp_tables = {}
  for _, fusion in ipairs(spec.fusions) do
    tp_tables[fusion] = by_bytes.tp_tables(source, function() return true end, fusion)[1]
  end
  return { nearest = nearest, tp_tables = tp_tables,
    log2 = lib.select(recording, spec, read, { lookup = "log2", stable = is_stable and nearest }) }
end

-- ---- what programs get ------------------------------------------------------------------------

local function by_shape(made, key, spec, find)
  key.hidden_size = spec.hidden_sizes[find(spec.hidden_sizes, key.hidden_size)]
  key.num_tokens = spec.num_tokens[find(spec.num_tokens, key.num_tokens)]
  local cell = made:find(key)
  return cell and cell.strategy
end

local function by_size(tp_table, size)
  for _, segment in ipairs(tp_table.segments) do
    if not segment.last or size <= segment.last then return segment.strategy.name end
  end
end

local function floor_of_log2(axis, value)
  local power = 1
  while 2 * power <= value do power = 2 * power end
  return lookup.nearest(axis, power)
end

-- The strategies of all tables at a recorded shape: { nearest, log2, bytes }.
local function answers(made, spec, record)
  local function key() return cell_records.record(record) end
  return { nearest = by_shape(made.nearest, key(), spec, lookup.nearest),
    log2 = by_shape(made.log2, key(), spec, floor_of_log2),
    bytes = by_size(made.tp_tables[record.fusion], record.size) }
end

-- Whether two strategies give other bits at a shape; so do those of which one was not recorded there.
local function differ(of, old, new)
  if old == new then return false end
  local first, second = of[old], of[new]
  return not (first and second) or first.bits ~= second.bits or first.bits == "varies"
end

-- Adds the changes of a run to counts = { results, nearest, log2, bytes }.
local function count_changes(recording, spec, first, again, counts)
  for _, of in pairs(recording.of) do
    local _, record = next(of)
    local old, new = answers(first, spec, record), answers(again, spec, record)
    counts.results = counts.results + 1
    for name in pairs(old) do
      if differ(of, old[name], new[name]) then counts[name] = counts[name] + 1 end
    end
  end
end

-- { any, stable = { results = results of each kind of table, nearest, log2, bytes = how many of these have
-- other bits } } of the rows at `path`, in so many runs, with these token counts in the grid (nil: all), and
-- of one fusion (nil: all).
function stability.figures(path, runs, num_tokens, fusion)
  local recording = lib.read(path)
  for key, of in pairs(recording.of) do
    local _, record = next(of)
    if fusion and record.fusion ~= fusion then recording.of[key] = nil end
  end
  local spec = lib.spec(recording, fusion)
  spec.num_tokens = num_tokens or spec.num_tokens
  local figures, first = {}, {}
  for seed = 0, runs do
    local read = lib.rows_on_grid(recording, spec, drawn(#recording.any.launches, seed))
    for name, is_stable in pairs { any = false, stable = true } do
      figures[name] = figures[name] or { results = 0, nearest = 0, log2 = 0, bytes = 0 }
      local made = tables_of(recording, spec, read, is_stable, first[name])
      first[name] = first[name] or made
      if seed > 0 then count_changes(recording, spec, first[name], made, figures[name]) end
    end
  end
  return figures
end

-- Figures in a line.
function stability.words(name, of)
  return ("%-6s of %d results by each table: %d by shape, %d by powers of two, %d by bytes"):format(name,
    of.results, of.nearest, of.log2, of.bytes)
end

if not arg[0]:find("stability.lua", 1, true) then return stability end
local path = arg[1]
assert(path, "usage: gentables lua tests/perf/stability.lua RECORDED.csv [RUNS]")
local figures = stability.figures(path, tonumber(arg[2] or 1000), { 1, 4, 16, 64, 256 }, arg[3])
print "results with other bits than by the first tables"
for _, name in ipairs { "any", "stable" } do print(stability.words(name, figures[name])) end
