-- How well the confidence and the expected loss of choices agree with held-out launches, played on recorded
-- rows. tests/recorded/confidence_is_calibrated.lua asserts it.
--
--   gentables lua tests/perf/calibration.lua RUNS RECORDED.csv [RECORDED.csv...] [--tokens 1,2,4...]
--
-- --tokens: the token counts of the grid.
-- In each run some of the recorded launches, at random, are a sweep, from which a table is chosen; the
-- others are its outcomes. The sweep is of a grid in TRAINING launches, and a second one of the planner's
-- own visits in lib.LAUNCHES. The loss of a choice: the best strategy of one half of the other launches,
-- taken from the other half, and the other way round, so that the best is not the luckiest. Prints for
-- choices at measured shapes, at shapes between them, and over bins of all recorded shapes: the share of
-- uncertain ones, mean loss and stated loss, the calibration error (the mean difference of confidence and
-- share of losses up to 2 %, over groups of GROUP outcomes in the order of confidence), and these groups.
-- Choices of several recordings count together. A bin has one choice; the least loss is that of the strategy
-- that loses least in it. Inherent: the share of bins that are uncertain even by all launches at all recorded
-- shapes, because no one choice suits them; avoidable: the share that only the sweep leaves uncertain.
local tests = arg[0]:match "^(.*/)perf/[^/]*$"
if tests then package.path = package.path .. ";" .. tests .. "?.lua" end
local cell_records = require "rows.cell_records"
local choices = require "core.choose"
local derive = require "choose.derive"
local fail = require "base.fail"
local lib = require "recorded.lib"
local lookup = require "core.lookup_rule"
local rows = require "core.rows"
local pooling = require "sweep.pooling"
local statistics = require "base.statistics"

local TOKENS = { 1, 2, 4, 8, 16, 32, 64, 128, 256 } -- of the grid
local TRAINING, GROUP = 3, 400
local RIGHT = choices.rule.right

local function log2(number) return math.log(number, 2) end

-- ---- outcomes ---------------------------------------------------------------------------------

-- How much slower a strategy is than another one at a shape, in octaves: the median over the launches that
-- have both, as what slows a launch cancels. Nil without any.
local function slower(of, name, other, launches)
  local levels = {}
  for _, launch in ipairs(launches) do
    local time, time_of_other = of[name].launches[launch], of[other].launches[launch]
    if time and time_of_other then levels[#levels + 1] = log2(time / time_of_other) end
  end
  return statistics.median(levels)
end

-- The fastest strategy at a shape in these launches, by how much slower it is than `name`.
local function fastest(of, name, launches)
  local best, least = name, 0
  for other in pairs(of) do
    local level = slower(of, other, name, launches)
    if level and (level < least or level == least and other < best) then best, least = other, level end
  end
  return best
end

-- The losses of a strategy at a shape: by the best of either half. Nil if it has no time in one.
local function losses_at(of, name, halves)
  local out = {}
  for i, half in ipairs(halves) do
    local level = of[name] and slower(of, name, fastest(of, name, half), halves[3 - i])
    if not level then return nil end
    out[i] = 2 ^ level - 1
  end
  return out
end

-- The mean losses of a strategy over shapes (cells of a recording). Nil if it lacks one.
local function losses_over(shapes, name, halves)
  local sums = { 0, 0 }
  for _, of in ipairs(shapes) do
    local losses = losses_at(of, name, halves)
    if not losses then return nil end
    sums = { sums[1] + losses[1] / #shapes, sums[2] + losses[2] / #shapes }
  end
  return sums
end

-- The mean loss of the strategy that loses least over shapes by either half, in the other.
local function least_loss(shapes, halves)
  local best = {}
  for name in pairs(shapes[1]) do
    local losses = losses_over(shapes, name, halves)
    for i = 1, losses and 2 or 0 do
      if not best[i] or losses[i] < best[i][i] then best[i] = losses end
    end
  end
  return (best[1][2] + best[2][1]) / 2
end

-- ---- the figures ------------------------------------------------------------------------------

local function new_group()
  return { choices = 0, uncertain = 0, inherent = 0, avoidable = 0, stated = 0, loss = 0, least = 0,
    outcomes = {} }
end

-- Enters a choice and its losses.
local function enter(group, cell, losses)
  group.choices = group.choices + 1
  if cell.state == "uncertain" then group.uncertain = group.uncertain + 1 end
  group.stated = group.stated + cell.expected_loss
  for _, loss in ipairs(losses) do
    group.loss = group.loss + loss / #losses
    table.insert(group.outcomes, { confidence = cell.confidence, is_right = loss <= RIGHT,
      order = #group.outcomes })
  end
end

-- The calibration error of a group, and its parts { confidence, right } in the order of confidence.
local function calibration(group)
  local list, parts, error = group.outcomes, {}, 0
  table.sort(list, function(a, b)
    if a.confidence ~= b.confidence then return a.confidence < b.confidence end
    return a.order < b.order
  end)
  local count = math.max(1, #list // GROUP)
  for part = 1, count do
    local first, last = (part - 1) * #list // count + 1, part * #list // count
    local confidence, right = 0, 0
    for i = first, last do
      confidence = confidence + list[i].confidence
      right = right + (list[i].is_right and 1 or 0)
    end
    local size = last - first + 1
    parts[part] = { confidence = confidence / size, right = right / size }
    error = error + math.abs(confidence - right) / #list
  end
  return error, parts
end

local function close(group)
  local error, parts = calibration(group)
  local out = { choices = group.choices, error = error, parts = parts }
  for _, name in ipairs { "uncertain", "inherent", "avoidable", "stated", "loss", "least" } do
    out[name] = group[name] / group.choices
  end
  return out
end

-- ---- one run ----------------------------------------------------------------------------------

-- The launches after the first `training` ones.
local function halves_of(order, training)
  local halves = { {}, {} }
  for i = training + 1, #order do table.insert(halves[i % 2 + 1], order[i]) end
  return halves
end

local function key_of(recording, fusion, hidden_size, num_tokens)
  local any = recording.any
  return cell_records.key { world_size = recording.world_size, dtype = any.dtype, op = any.op,
    mode = any.mode, fusion = fusion, hidden_size = hidden_size, num_tokens = num_tokens }
end

-- Calls each(cell, fusion, hidden_size, num_tokens) for the choices of a table.
local function each_choice(canonical, each)
  for b, block in ipairs(canonical:blocks()) do
    for f, fusion in ipairs(block.fusions) do
      for h, hidden_size in ipairs(block.hidden_sizes) do
        for t, num_tokens in ipairs(block.num_tokens) do
          local cell = canonical:cell(b, f, h, t)
          if cell and cell.confidence then each(cell, fusion, hidden_size, num_tokens) end
        end
      end
    end
  end
end

local function judge_shapes(recording, canonical, halves, groups)
  each_choice(canonical, function(cell, fusion, hidden_size, num_tokens)
    local of = recording.of[key_of(recording, fusion, hidden_size, num_tokens)]
    local losses = of and losses_at(of, cell.strategy, halves)
    if losses then enter(groups[cell.derived and "interpolated" or "measured"], cell, losses) end
  end)
end

-- The recorded shapes that the lookup sends to each cell, by its key.
local function shapes_of_cells(recording, spec)
  local of_cell = {}
  for _, fusion in ipairs(spec.fusions) do
    for _, hidden_size in ipairs(recording.hidden_sizes) do
      for _, num_tokens in ipairs(recording.num_tokens) do
        local h = lookup.nearest(spec.hidden_sizes, hidden_size)
        local t = lookup.nearest(spec.num_tokens, num_tokens)
        local cell = key_of(recording, fusion, spec.hidden_sizes[h], spec.num_tokens[t])
        of_cell[cell] = of_cell[cell] or {}
        table.insert(of_cell[cell], recording.of[key_of(recording, fusion, hidden_size, num_tokens)])
      end
    end
  end
  return of_cell
end

-- `is_inherent`: of uncertain_bins.
local function judge_bins(recording, spec, canonical, halves, group, is_inherent)
  local of_cell = shapes_of_cells(recording, spec)
  each_choice(canonical, function(cell, fusion, hidden_size, num_tokens)
    local key = key_of(recording, fusion, hidden_size, num_tokens)
    local shapes = of_cell[key]
    local losses = shapes and losses_over(shapes, cell.strategy, halves)
    if not losses then return end
    enter(group, cell, losses)
    group.least = group.least + least_loss(shapes, halves)
    if is_inherent[key] then
      group.inherent = group.inherent + 1
    elseif cell.state == "uncertain" then
      group.avoidable = group.avoidable + 1
    end
  end)
end

-- The recorded shapes, as often as each other.
local function workload_of(recording)
  local out = {}
  for _, hidden_size in ipairs(recording.hidden_sizes) do
    for _, num_tokens in ipairs(recording.num_tokens) do
      out[#out + 1] = { hidden_size = hidden_size, num_tokens = num_tokens, weight = 1 }
    end
  end
  return out
end

-- The spec at all recorded shapes.
local function at_all_shapes(recording, spec)
  local all = {}
  for name, value in pairs(spec) do all[name] = value end
  all.hidden_sizes, all.num_tokens = recording.hidden_sizes, recording.num_tokens
  return all
end

-- The table of these records by shape or, `over_bins`, over the bins of the spec.
local function choose(recording, spec, records, no_time, over_bins)
  return lib.select(recording, spec, fail.unless(rows.of("recorded", records)), {
    lookup = over_bins and "nearest" or "exact", workload = over_bins and workload_of(recording) or nil,
    derived = derive.times(spec, recording.world_size, records, no_time or {}) })
end

-- The cells that have an uncertain choice by all launches at all recorded shapes, as a set of keys.
local function uncertain_bins(recording, spec)
  local launches, out = lib.shuffled(#recording.any.launches, 1), {}
  local _, records = lib.rows_on_grid(recording, at_all_shapes(recording, spec), launches)
  each_choice(choose(recording, spec, records, {}, true), function(cell, fusion, hidden_size, num_tokens)
    out[key_of(recording, fusion, hidden_size, num_tokens)] = cell.state == "uncertain"
  end)
  return out
end

-- Judges the tables of these records by shape and over bins.
local function judge(recording, spec, halves, groups, is_inherent, records, no_time)
  local by_shape = choose(recording, at_all_shapes(recording, spec), records, no_time, false)
  judge_shapes(recording, by_shape, halves, groups)
  local over_bins = choose(recording, spec, records, no_time, true)
  judge_bins(recording, spec, over_bins, halves, groups.bins, is_inherent)
end

-- The records of a sweep that the planner made, and of those without a time.
local function own_sweep(recording, spec, order)
  local records, found, _, no_time = {}, lib.play(recording, spec, order, false)
  for _, by_launch in pairs(found) do records[#records + 1] = pooling.row(by_launch) end
  table.sort(records, cell_records.before)
  return records, no_time
end

local calibrated = {}

local function new_groups()
  return { measured = new_group(), interpolated = new_group(), bins = new_group() }
end

-- The figures { choices, uncertain, inherent, avoidable, stated, loss, least, error, parts } of `measured`,
-- `interpolated` and `bins`, of `grid` and of `planned` sweeps from recordings { path, runs }. `inherent`,
-- `avoidable` and `least` are 0 except over bins. `tokens`: of the grid, default TOKENS.
function calibrated.figures(recordings, tokens)
  local kinds = { grid = new_groups(), planned = new_groups() }
  for _, entry in ipairs(recordings) do
    local recording = lib.read(entry.path)
    local spec = lib.spec(recording)
    spec.num_tokens = tokens or TOKENS
    local is_inherent = uncertain_bins(recording, spec)
    for seed = 1, entry.runs do
      local order = lib.shuffled(#recording.any.launches, seed)
      local _, records = lib.rows_on_grid(recording, spec, table.move(order, 1, TRAINING, 1, {}))
      judge(recording, spec, halves_of(order, TRAINING), kinds.grid, is_inherent, records)
      judge(recording, spec, halves_of(order, lib.LAUNCHES), kinds.planned, is_inherent,
        own_sweep(recording, spec, order))
    end
  end
  for _, groups in pairs(kinds) do
    for name, group in pairs(groups) do groups[name] = close(group) end
  end
  return kinds
end

-- A line about a group.
function calibrated.words(name, of)
  local words = ("%-12s %5d choices, %4.1f %% uncertain; loss %.2f %%, stated %.2f %%; "
    .. "calibration error %.3f"):format(name, of.choices, 100 * of.uncertain, 100 * of.loss, 100 * of.stated,
    of.error)
  if name ~= "bins" then return words end
  return words .. ("; least loss %.2f %%; inherent %.1f %%, avoidable %.1f %%"):format(100 * of.least,
    100 * of.inherent, 100 * of.avoidable)
end

if not arg[0]:find("calibration.lua", 1, true) then return calibrated end
local runs, recordings, last, tokens = tonumber(arg[1]), {}, #arg, nil
if arg[last - 1] == "--tokens" then last, tokens = last - 2, lib.numbers(arg[last]) end
assert(runs and last > 1, "usage: calibration.lua RUNS RECORDED.csv [RECORDED.csv...] [--tokens LIST]")
for i = 2, last do recordings[#recordings + 1] = { path = arg[i], runs = runs } end
local kinds = calibrated.figures(recordings, tokens)
for _, kind in ipairs { "grid", "planned" } do
  print(kind)
  for _, name in ipairs { "measured", "interpolated", "bins" } do
    print(calibrated.words(name, kinds[kind][name]))
    for _, part in ipairs(kinds[kind][name].parts) do
      print(("%24s %5.1f %%: %5.1f %% right"):format("confidence", 100 * part.confidence, 100 * part.right))
    end
  end
end
