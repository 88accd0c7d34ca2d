-- How well the confidence and the expected loss of choices agree with held-out launches, played on recorded
-- rows. tests/recorded/confidence_is_calibrated.lua asserts it.
--
--   gentables lua tests/perf/calibration.lua RECORDED.csv [RUNS]
--
-- For each run TRAINING of the recorded launches, at random, are a sweep of the grid, from which a table is
-- chosen; the others are its outcomes. The loss of a choice: the best strategy of one half of them, taken
-- from the other half, and the other way round, so that the best is not the luckiest. Prints for choices at
-- measured shapes, at shapes between them, and over bins: the share of uncertain ones, mean loss and stated
-- loss, the calibration error (the mean difference of confidence and share of losses up to 2 %, over groups
-- of GROUP outcomes in the order of confidence), and these groups.
local tests = arg[0]:match "^(.*/)perf/[^/]*$"
if tests then package.path = package.path .. ";" .. tests .. "?.lua" end
local cell_records = require "rows.cell_records"
local choices = require "core.choose"
local derive = require "choose.derive"
local lib = require "recorded.lib"
local lookup = require "core.lookup_rule"

local TRAINING, GROUP = 3, 400
local RIGHT = choices.rule.right

local function log2(number) return math.log(number, 2) end

-- ---- outcomes ---------------------------------------------------------------------------------

-- name -> mean level over these launches, relative to the launch's mean, of the strategies at a shape that
-- have a time in all of them.
local function levels(of, launches)
  local sums, found = {}, 0
  for _, launch in ipairs(launches) do
    local here, sum, count = {}, 0, 0
    for name, recorded in pairs(of) do
      local time = recorded.launches[launch]
      if time then here[name], sum, count = log2(time), sum + log2(time), count + 1 end
    end
    if count > 1 then
      found = found + 1
      for name, level in pairs(here) do
        sums[name] = sums[name] or { sum = 0, count = 0 }
        sums[name].sum, sums[name].count = sums[name].sum + level - sum / count, sums[name].count + 1
      end
    end
  end
  local out = {}
  for name, entry in pairs(sums) do
    if entry.count == found then out[name] = entry.sum / found end
  end
  return out
end

-- The losses of a strategy at a shape: by the best of either half. Nil if it has no time in one.
local function losses_at(of, name, halves)
  local out = {}
  for i, half in ipairs(halves) do
    local best, least
    for other, level in pairs(levels(of, half)) do
      if not least or level < least or level == least and other < best then best, least = other, level end
    end
    local outcome = levels(of, halves[3 - i])
    if not (outcome[name] and outcome[best]) then return nil end
    out[i] = 2 ^ (outcome[name] - outcome[best]) - 1
  end
  return out
end

-- ---- the figures ------------------------------------------------------------------------------

local function new_group() return { choices = 0, uncertain = 0, stated = 0, loss = 0, outcomes = {} } end

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
  return { choices = group.choices, uncertain = group.uncertain / group.choices,
    stated = group.stated / group.choices, loss = group.loss / group.choices, error = error, parts = parts }
end

-- ---- one run ----------------------------------------------------------------------------------

local function halves_of(order)
  local halves = { {}, {} }
  for i = TRAINING + 1, #order do table.insert(halves[i % 2 + 1], order[i]) end
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

-- Over a bin the losses are means over all recorded shapes that the lookup sends to the cell.
local function judge_bins(recording, spec, canonical, halves, group)
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
  each_choice(canonical, function(cell, fusion, hidden_size, num_tokens)
    local sums, count = { 0, 0 }, 0
    for _, of in ipairs(of_cell[key_of(recording, fusion, hidden_size, num_tokens)] or {}) do
      local losses = losses_at(of, cell.strategy, halves)
      if losses then sums, count = { sums[1] + losses[1], sums[2] + losses[2] }, count + 1 end
    end
    if count > 0 then enter(group, cell, { sums[1] / count, sums[2] / count }) end
  end)
end

local calibrated = {}

-- The figures { choices, uncertain, stated, loss, error, parts } of `measured`, `interpolated` and `bins`, of
-- the rows at `path`, in so many runs, with these token counts in the grid (nil: all recorded).
function calibrated.figures(path, runs, num_tokens)
  local recording = lib.read(path)
  local groups = { measured = new_group(), interpolated = new_group(), bins = new_group() }
  local spec = lib.spec(recording)
  spec.num_tokens = num_tokens or spec.num_tokens
  local all = {}
  for name, value in pairs(spec) do all[name] = value end -- the same at all recorded shapes
  all.hidden_sizes, all.num_tokens = recording.hidden_sizes, recording.num_tokens
  for seed = 1, runs do
    local order = lib.shuffled(#recording.any.launches, seed)
    local halves = halves_of(order)
    local read, records = lib.rows_on_grid(recording, spec, table.move(order, 1, TRAINING, 1, {}))
    judge_shapes(recording, lib.select(recording, all, read, { lookup = "exact",
      derived = derive.times(all, recording.world_size, records, {}) }), halves, groups)
    judge_bins(recording, spec, lib.select(recording, spec, read, { lookup = "nearest" }), halves,
      groups.bins)
  end
  for name, group in pairs(groups) do groups[name] = close(group) end
  return groups
end

if not arg[0]:find("calibration.lua", 1, true) then return calibrated end
local path = arg[1]
assert(path, "usage: gentables lua tests/perf/calibration.lua RECORDED.csv [RUNS]")
local groups = calibrated.figures(path, tonumber(arg[2] or 4), { 1, 4, 16, 64, 256 })
for _, name in ipairs { "measured", "interpolated", "bins" } do
  local of = groups[name]
  local words = "%-12s %5d choices, %4.1f %% uncertain; loss %.2f %%, stated %.2f %%; calibration error %.3f"
  print(words:format(name, of.choices, 100 * of.uncertain, 100 * of.loss, 100 * of.stated, of.error))
  for _, part in ipairs(of.parts) do
    print(("%24s %5.1f %%: %5.1f %% right"):format("confidence", 100 * part.confidence, 100 * part.right))
  end
end
