-- Where times changed in a history of runs of one arch and TP size: by which factor, since which run, and
-- whether all strategies did, one strategy, a part of it, or a cell. Pure.
--
-- change_points.find({ runs = number, series = { series... }, levels = { [run] = { index of a series, level,
-- index, level... } } }, options) -> { findings, machine, strategies }
--   A series is a cell and strategy: { strategy, dtype, op, mode, fusion, splits, hidden_size, num_tokens,
--   size }; the series of a cell are neighbours in the list. Levels are those of launch_levels.
--   options: alpha, the probability of any false alarm; threshold, the share below which a change does not
--   matter.
--   A finding: { kind = "machine", "strategy", "fusion", "sizes" or "cell", series = one of its series (nil
--   for the machine), cells = number of its series, least, most = their sizes in bytes, is_part = whether
--   only these sizes changed, at = its first run, before = the last run before it, last = the last run of its
--   level, shift = log2 of the factor, p, values = { level of each run, or false } }, in the order of `at`.
--   machine: { level of each run, or false }; strategies: { { strategy, values }... }, relative to the
--   machine.
--
-- Levels of groups are means over cells, so they are far less noisy than cells: see effects.h. The machine's
-- is the median of the strategies'; only the part of its changes that all of these share is the machine's,
-- and all else is relative to it. A change of a group is narrowed to the sizes that changed. segments.h has
-- the test; Holm's method corrects for the number of series. Three families of tests share alpha: the
-- machine, strategies with their fusions, and sizes with cells.
local core = require "core.history"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local statistics = require "base.statistics"

local change_points = {}

change_points.FEWEST_RUNS = 6
change_points.defaults = { alpha = 0.002, threshold = 0.02 }

-- The fewest runs of a level. A single disturbed run is no change of a strategy. A cell's level often is one
-- of two or three values, so that a few runs have the same one by chance.
local SHORTEST = { machine = 1, group = 3, cell = 5 }
local FAMILIES = 3
local NEAR = 2              -- runs between two changes that may be one
local SIMILAR = 2             -- the largest factor between shifts that may be one
local WHOLE = 0.75          -- of the smallest groups: a change of so many is one of the whole group
local KINDS = { "strategy", "fusion", "sizes" }

-- ---- groups -----------------------------------------------------------------------------------

-- The names of a series' groups: its strategy, that with its fusion and types, that with sizes within a
-- factor of 4; and of its cell.
local function names_of(series)
  local types = table.concat({ series.fusion, series.dtype, series.op, series.mode, series.splits }, " ")
  local fusion = series.strategy .. " " .. types
  local sizes = ("%s %d"):format(fusion, math.floor(math.log(series.size, 2) / 2))
  return { series.strategy, fusion, sizes, ("%s %d %d"):format(types, series.hidden_size, series.num_tokens) }
end

-- The groups of each level, { kind, members, parent, children, series, least, most }, and what core.effects
-- takes.
local function group(list)
  local levels, indices, seen = { {}, {}, {} }, {}, {}
  for i, series in ipairs(list) do
    local names, parent = names_of(series), nil
    indices[i] = {}
    for level, groups in ipairs(levels) do
      local key = level .. names[level]
      local found = seen[key]
      if not found then
        found = { kind = KINDS[level], index = #groups + 1, level = level, parent = parent, children = {},
          cells = 0, series = series, least = series.size, most = series.size }
        groups[#groups + 1], seen[key] = found, found
        if parent then table.insert(parent.children, found) end
      end
      found.cells = found.cells + 1
      found.least, found.most = math.min(found.least, series.size), math.max(found.most, series.size)
      indices[i][level], parent = found.index, found
    end
    seen[names[4]] = seen[names[4]] or i
    indices[i][4] = seen[names[4]]
  end
  return levels, indices
end

-- ---- levels before and after -------------------------------------------------------------------

local function median_between(values, from, to)
  local found = {}
  for run = from, to do
    if values[run] then found[#found + 1] = values[run] end
  end
  return statistics.median(found)
end

-- The shift of `values` at a change, between the runs of its levels before and after; nil: unmeasured.
local function shift_at(values, change)
  local before = median_between(values, change.first, change.at - 1)
  local after = median_between(values, change.at, change.last)
  return before and after and after - before
end

local function is_similar(a, b)
  return a and b and a * b > 0 and math.abs(a) <= SIMILAR * math.abs(b)
    and math.abs(b) <= SIMILAR * math.abs(a)
end

local function is_near(a, b) return math.abs(a.at - b.at) <= NEAR end

-- Completes the changes of one series, in the order of runs, by the levels on their sides.
local function measure(values, found)
  table.sort(found, function(a, b) return a.at < b.at end)
  for i, change in ipairs(found) do
    change.first = i > 1 and found[i - 1].at or 1
    change.last = found[i + 1] and found[i + 1].at - 1 or #values
    change.before = change.at - 1
    while change.before > 1 and not values[change.before] do change.before = change.before - 1 end
    change.shift, change.values = shift_at(values, change), values
  end
  return found
end

-- The changes with levels that differ by the threshold at least; those of the others are joined.
local function large_ones(values, found, options)
  local large = sequences.filter(found, function(change)
    return math.abs(change.shift) >= math.log(1 + options.threshold, 2)
  end)
  return #large == #found and found or measure(values, large)
end

-- ---- tests ------------------------------------------------------------------------------------

local function search(values, options, what)
  return core.changes(values, { shortest = SHORTEST[what], clips = what ~= "machine",
    threshold = math.log(1 + options.threshold, 2), p = options.alpha / FAMILIES })
end

-- Keeps in each entry of `family`, { values, changes, ... }, the changes that are significant by Holm's
-- method, if all changes that split off their parts of the series are, too.
local function correct(family, options)
  local all, tests = {}, #family
  for _, entry in ipairs(family) do
    for _, change in ipairs(entry.changes) do
      all[#all + 1] = change
      if change.parent then tests = tests + 1 end
    end
  end
  for _, change in ipairs(statistics.holm(all, options.alpha / FAMILIES, tests)) do change.is_kept = true end
  for _, entry in ipairs(family) do
    local kept = {}
    for _, change in ipairs(entry.changes) do
      change.is_kept = change.is_kept and (not change.parent or entry.changes[change.parent].is_kept)
      if change.is_kept then kept[#kept + 1] = change end
    end
    entry.changes = large_ones(entry.values, measure(entry.values, kept), options)
  end
end

-- ---- the machine ------------------------------------------------------------------------------

-- The part of a change that all strategies share: its shift, if theirs are similar; else the smallest of
-- theirs, or none if they differ in sign.
local function common_shift(strategies, change)
  local least
  for _, values in ipairs(strategies) do
    local shift = shift_at(values, change)
    if shift and shift * change.shift <= 0 then return 0 end
    if shift and (not least or math.abs(shift) < math.abs(least)) then least = shift end
  end
  return is_similar(least, change.shift) and change.shift or least or 0
end

-- The values of the machine for each run, and its findings. Subtracts the machine's values from the effects.
local function machine_of(effects, strategies, runs, options)
  local of_strategies, values, findings, others = {}, {}, {}, 0
  for i in ipairs(strategies) do of_strategies[i] = effects:of(1, i) end
  for run = 1, runs do
    local present = sequences.map(of_strategies, function(of) return of[run] or nil end)
    values[run] = statistics.median(present) or false
  end
  local found = measure(values, search(values, options, "machine"))
  for _, change in ipairs(found) do
    local common = common_shift(of_strategies, change)
    others = others + change.shift - common
    change.others = others
    change.shift, change.kind, change.cells = common, "machine", 0
    if math.abs(common) >= math.log(1 + options.threshold, 2) then findings[#findings + 1] = change end
  end
  local machine, at = {}, 0
  for run = 1, runs do
    if found[at + 1] and found[at + 1].at == run then at = at + 1 end
    machine[run] = values[run] and values[run] - (at > 0 and found[at].others or 0)
  end
  for _, change in ipairs(findings) do change.values = machine end
  effects:subtract(machine)
  return machine, findings
end

-- ---- findings ---------------------------------------------------------------------------------

-- The smallest groups within a group that have a level before and after a change, and the shift of each.
local function smallest_within(entry, change, found)
  for _, child in ipairs(entry.children) do
    local shift = #child.children == 0 and shift_at(child.values, change)
    if shift then found[#found + 1] = { entry = child, shift = shift } end
    smallest_within(child, change, found)
  end
  return found
end

-- Those with a shift of at least `least` in the direction of the change, and the median of their shifts.
local function moved_of(all, change, least)
  local moved, shifts = {}, {}
  for _, part in ipairs(all) do
    if part.shift * change.shift > 0 and math.abs(part.shift) >= least then
      moved[#moved + 1], shifts[#shifts + 1] = part.entry, part.shift
    end
  end
  return moved, statistics.median(shifts)
end

-- The only group within a group that changed, if there is one; else the group itself.
local function only_one(entry, change, threshold)
  local found
  for _, child in ipairs(entry.children) do
    local shift = shift_at(child.values, change)
    if shift and shift * change.shift > 0 and math.abs(shift) >= threshold then
      if found then return entry end
      found = child
    end
  end
  return #entry.children > 1 and found or entry
end

-- Narrows a change of a group to the group or the sizes that changed, if these are few.
local function narrow(entry, change, threshold)
  entry = only_one(entry, change, threshold)
  change.shift = shift_at(entry.values, change)
  local all = smallest_within(entry, change, {})
  local moved, shift = moved_of(all, change, threshold)
  if shift then moved, shift = moved_of(all, change, math.max(threshold, math.abs(shift) / SIMILAR)) end
  for _, name in ipairs { "kind", "series", "cells", "least", "most" } do change[name] = entry[name] end
  if #moved == 0 or #moved >= WHOLE * #all then return end
  change.shift, change.cells, change.least, change.most = shift, 0, math.huge, 0
  local parent = moved[1].parent
  for _, part in ipairs(moved) do
    change.cells = change.cells + part.cells
    change.least, change.most = math.min(change.least, part.least), math.max(change.most, part.most)
    parent = part.parent == parent and parent or nil
  end
  if parent then change.kind, change.series = parent.kind, parent.series end
  change.is_part = not parent or #moved < WHOLE * #smallest_within(parent, change, {})
end

-- Whether the difference of two series of values changes near a change of one of them.
local function differs_near(change, values, others, options)
  local differences = {}
  for run, value in ipairs(values) do differences[run] = value and others[run] and value - others[run] end
  return sequences.any(search(differences, options, "group"), function(other)
    return is_near(change, other)
  end)
end

-- Whether a change is that of one of the groups around it, `reported`.
local function is_explained(change, values, reported, options)
  return sequences.any(reported, function(other)
    return is_near(change, other) and is_similar(change.shift, other.shift)
      or not differs_near(change, values, other.values, options)
  end)
end

-- Adds the changes of a group that those of the groups around it, `reported`, do not explain.
local function report_group(entry, reported, findings, options)
  local mine = table.move(reported, 1, #reported, 1, {})
  for _, change in ipairs(entry.changes) do
    if not is_explained(change, entry.values, reported, options) then
      narrow(entry, change, math.log(1 + options.threshold, 2))
      mine[#mine + 1], findings[#findings + 1] = change, change
    end
  end
  for _, child in ipairs(entry.children) do report_group(child, mine, findings, options) end
end

-- Adds the changes of cells. The reference of a series is the mean of its cell's others, so a change of one
-- shifts the others to the opposite side: these are left out.
local function report_cells(cells, findings)
  local all, of_cell = {}, {}
  for _, entry in ipairs(cells) do
    for _, change in ipairs(entry.changes) do
      change.kind, change.series, change.cells, change.cell = "cell", entry.series, 1, entry.cell
      change.least, change.most = entry.series.size, entry.series.size
      all[#all + 1] = change
    end
  end
  table.sort(all, function(a, b)
    if math.abs(a.shift) ~= math.abs(b.shift) then return math.abs(a.shift) > math.abs(b.shift) end
    return a.p < b.p
  end)
  for _, change in ipairs(all) do
    local others = of_cell[change.cell] or {}
    local is_echo = sequences.any(others, function(other)
      return is_near(change, other) and change.shift * other.shift < 0
    end)
    of_cell[change.cell] = others
    if not is_echo then others[#others + 1], findings[#findings + 1] = change, change end
  end
end

-- ---- all --------------------------------------------------------------------------------------

local function cells_of(effects, list, indices, options)
  return sequences.map(list, function(series, i)
    local values = effects:rest(i)
    return { values = values, changes = search(values, options, "cell"), series = series,
      cell = indices[i][4] }
  end)
end

-- See the head of this file.
function change_points.find(model, options)
  options = setmetatable(options or {}, { __index = change_points.defaults })
  local levels, indices = group(model.series)
  local effects = core.effects(model.runs, indices)
  for run, values in pairs(model.levels) do effects:set(run, values) end
  effects:solve()
  local cells = cells_of(effects, model.series, indices, options)
  local machine, findings = machine_of(effects, levels[1], model.runs, options)
  local families = { {}, table.move(cells, 1, #cells, 1, {}) }
  for level, groups in ipairs(levels) do
    for _, entry in ipairs(groups) do
      entry.values = effects:of(level, entry.index)
      entry.changes = search(entry.values, options, "group")
      table.insert(families[level < #levels and 1 or 2], entry)
    end
  end
  for _, family in ipairs(families) do correct(family, options) end
  for _, entry in ipairs(levels[1]) do report_group(entry, {}, findings, options) end
  local strategies = sequences.map(levels[1], function(entry)
    return { strategy = entry.series.strategy, values = entry.values }
  end)
  report_cells(cells, findings)
  for i, finding in ipairs(findings) do finding.order = i end
  table.sort(findings, ordering.by("at", "order"))
  return { findings = findings, machine = machine, strategies = strategies }
end

return change_points
