-- The numbers of a comparison of sweeps: the first is the base, with which each other is compared, cell by
-- cell.
--
--   sweep_comparison.of(sources) -> { sweeps = { { source, canonical, blocks }... }, groups }; a group is one
--   placement, data type, operation, mode and fusion:
--     { tp (of rank_placement.size), words, fusion, sizes_only, hidden_sizes, num_tokens,
--       missing = { sweep -> true }, cells[h][t][sweep] = cell or false, against = { [sweep] = tally } }
local lists = require "lists.lists"
local lookup_rule = require "core.lookup_rule"
local model = require "formats.model"
local rank_placement = require "lists.rank_placement"
local formats = require "formats.list"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local summary = require "formats.summary"

local sweep_comparison = {}

local words_of = summary.words_of

-- ---- one sweep --------------------------------------------------------------------------------

local function sweep_of(source)
  local canonical = model.for_format(source, formats.find "table").canonical
  return { source = source, canonical = canonical, blocks = summary.blocks(canonical), times = {} }
end

local function cell_number(hidden_size, num_tokens) return hidden_size << 32 | num_tokens end

-- strategy -> cell -> row of `columns`, of one fusion of one block; made by the first call.
local function times_of(sweep, key)
  local name = ("%s %s %s"):format(rank_placement.size_of(key), words_of(key), key.fusion)
  if not sweep.times[name] then
    local columns, rows = sweep.source.rows:slice(key), {}
    for i = 1, columns.count do
      local of = sequences.at(rows, columns.strategy[i])
      of[cell_number(columns.hidden_size[i], columns.num_tokens[i])] = i
    end
    sweep.times[name] = { columns = columns, rows = rows }
  end
  return sweep.times[name]
end

-- The rows of the cell of `key`: their columns, and strategy -> row.
local function rows_at(sweep, key)
  local times, cell, rows = times_of(sweep, key), cell_number(key.hidden_size, key.num_tokens), {}
  for strategy, of in pairs(times.rows) do rows[strategy] = of[cell] end
  return times.columns, rows
end

-- The fastest measured strategy that may win at the shape of `key`, the first in the list if several are
-- equal: { strategy, time_us, low_us, high_us }. nil: none was measured.
local function best_at(sweep, key)
  local columns, rows = rows_at(sweep, key)
  local best
  for _, strategy in ipairs(lists.strategies) do
    local i = rows[strategy.name]
    local competes = i and lists.may_win(strategy.name)
      and (sweep.source.loopback or columns.placement[i] ~= "loopback")
    if competes and (not best or columns.time_us[i] < best.time_us) then
      best = { strategy = strategy.name, time_us = columns.time_us[i], low_us = columns.low_us[i] or nil,
        high_us = columns.high_us[i] or nil }
    end
  end
  return best
end

-- ---- groups -----------------------------------------------------------------------------------

-- Every group that any sweep has, in the order of placement, data type and fusion.
local function groups_of(sweeps)
  local groups, by_name = {}, {}
  for s, sweep in ipairs(sweeps) do
    for _, block in ipairs(sweep.blocks) do
      for _, fusion in ipairs(block.fusions) do
        local size = rank_placement.size_of(block)
        local name = ("%s %s %s"):format(size, words_of(block), fusion)
        local group = sequences.entry(groups, by_name, name, function()
          return { tp = size, words = words_of(block), fusion = fusion,
            sizes_only = block.sizes_only, has = {}, blocks = {}, hidden = {}, tokens = {},
            key = { world_size = block.world_size, nodes = block.nodes, dtype = block.dtype, op = block.op,
              mode = block.mode, fusion = fusion, splits = block.splits or "",
              sizes_only = block.sizes_only } }
        end)
        group.has[s], group.blocks[s] = true, block
        sequences.append(group.hidden, block.hidden_sizes)
        sequences.append(group.tokens, block.num_tokens)
      end
    end
  end
  return groups
end

local function in_order(groups)
  local index_of = sequences.indices(lists.names("fusions"))
  table.sort(groups, function(a, b)
    if a.tp ~= b.tp then return rank_placement.before(a.key, b.key) end
    if a.words ~= b.words then return a.words < b.words end
    return index_of[a.fusion] < index_of[b.fusion]
  end)
  return groups
end

local function enter_cells(group, sweeps)
  group.hidden_sizes = sorted_keys(sequences.set(group.hidden))
  group.num_tokens = sorted_keys(sequences.set(group.tokens))
  group.cells, group.missing = {}, {}
  local key = group.key
  for s in ipairs(sweeps) do group.missing[s] = true end
  for h, hidden_size in ipairs(group.hidden_sizes) do
    group.cells[h] = {}
    for t, num_tokens in ipairs(group.num_tokens) do
      key.hidden_size, key.num_tokens = hidden_size, num_tokens
      local of = {}
      for s, sweep in ipairs(sweeps) do
        of[s] = sweep.canonical:find(key) or false
        if of[s] then group.missing[s] = nil end
      end
      group.cells[h][t] = of
    end
  end
end

-- ---- one against the base ---------------------------------------------------------------------

-- Whether two times differ by more than their intervals, or, without intervals, by more than the least
-- margin.
local function is_clear(a, b)
  if a.low_us and b.low_us then return b.low_us > a.high_us or b.high_us < a.low_us end
  return math.abs(b.time_us / a.time_us - 1) > summary.least_margin
end

-- The comparison of a shape that both sweeps measured: the ratio of the best times, and the loss here of the
-- base's choice (nil: it has none, or no time here).
local function compare_shape(base, other, key, choice)
  local a, b = best_at(base, key), best_at(other, key)
  if not (a and b) then return nil, a, b end
  local columns, rows = rows_at(other, key)
  local kept = choice and rows[choice.strategy]
  return { ratio = b.time_us / a.time_us, changed = a.strategy ~= b.strategy, is_clear = is_clear(a, b),
    loss = kept and columns.time_us[kept] / b.time_us - 1 or nil }, a, b
end

local function add_shape(tally, cell)
  tally.cells = tally.cells + 1
  tally.log_sum = tally.log_sum + math.log(cell.ratio)
  if cell.is_clear and cell.ratio < 1 then tally.faster = tally.faster + 1 end
  if cell.is_clear and cell.ratio > 1 then tally.slower = tally.slower + 1 end
  if cell.changed then tally.changed = tally.changed + 1 end
  if cell.loss then
    tally.losses, tally.loss = tally.losses + 1, tally.loss + cell.loss
    tally.most_loss = math.max(tally.most_loss or 0, cell.loss)
  end
end

-- The shapes of a group at which either sweep has a row, as numbers of cells, in order.
local function shapes_of(group, base, other)
  local seen = {}
  for _, sweep in ipairs { base, other } do
    for _, cells in pairs(times_of(sweep, group.key).rows) do
      for cell in pairs(cells) do seen[cell] = true end
    end
  end
  return sorted_keys(seen)
end

-- The choice of a sweep's table for the shape of `key`; nil without one.
local function choice_at(group, s, sweep, key)
  local block = group.blocks[s]
  if not block then return nil end
  local cell = setmetatable({
    hidden_size = block.hidden_sizes[lookup_rule.nearest(block.hidden_sizes, key.hidden_size)],
    num_tokens = block.num_tokens[lookup_rule.nearest(block.num_tokens, key.num_tokens)] }, { __index = key })
  return sweep.canonical:find(cell)
end

-- The tally of one sweep against the base, over all shapes of a group; at[h][t]: those of the grid. The best
-- strategy is the fastest one measured at the shape itself, independent of the tables' choices for bins.
local function tally_of(group, sweeps, s)
  local tally = { cells = 0, only_base = 0, only_other = 0, faster = 0, slower = 0, changed = 0, log_sum = 0,
    losses = 0, loss = 0, at = {} }
  local key, t_of = group.key, sequences.indices(group.num_tokens)
  local h_of = sequences.indices(group.hidden_sizes)
  for _, h in pairs(h_of) do tally.at[h] = {} end
  for _, shape in ipairs(shapes_of(group, sweeps[1], sweeps[s])) do
    key.hidden_size, key.num_tokens = shape >> 32, shape & 0xffffffff
    local cell, a, b = compare_shape(sweeps[1], sweeps[s], key, choice_at(group, 1, sweeps[1], key))
    local h, t = h_of[key.hidden_size], t_of[key.num_tokens]
    if h and t then tally.at[h][t] = cell end
    if a and not b then tally.only_base = tally.only_base + 1 end
    if b and not a then tally.only_other = tally.only_other + 1 end
    if cell then add_shape(tally, cell) end
  end
  tally.ratio = tally.cells > 0 and math.exp(tally.log_sum / tally.cells) or nil
  tally.mean_loss = tally.losses > 0 and tally.loss / tally.losses or nil
  return tally
end

-- The geometric mean of the ratios of a strategy's times over all cells that both have, and their number.
function sweep_comparison.strategy_ratio(comparison, s, strategy)
  local base, other, sum, count = comparison.sweeps[1], comparison.sweeps[s], 0, 0
  for _, group in ipairs(comparison.groups) do
    if group.has[1] and group.has[s] then
      local a, b = times_of(base, group.key), times_of(other, group.key)
      for cell, i in pairs(a.rows[strategy] or {}) do
        local j = b.rows[strategy] and b.rows[strategy][cell]
        if j then
          sum, count = sum + math.log(b.columns.time_us[j] / a.columns.time_us[i]), count + 1
        end
      end
    end
  end
  return count > 0 and math.exp(sum / count) or nil, count
end

-- The strategies of the rows of any sweep, in the list's order.
function sweep_comparison.strategies(comparison)
  local seen = {}
  for _, sweep in ipairs(comparison.sweeps) do
    for _, slice in ipairs(sweep.source.rows:slices()) do
      for name in pairs(times_of(sweep, slice).rows) do seen[name] = true end
    end
  end
  return sequences.filter(lists.strategies, function(strategy) return seen[strategy.name] end)
end

function sweep_comparison.of(sources)
  local comparison = { sweeps = sequences.map(sources, sweep_of) }
  comparison.groups = in_order(groups_of(comparison.sweeps))
  for _, group in ipairs(comparison.groups) do
    enter_cells(group, comparison.sweeps)
    group.against = {}
    for s = 2, #sources do group.against[s] = tally_of(group, comparison.sweeps, s) end
  end
  return comparison
end

return sweep_comparison
