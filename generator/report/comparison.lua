-- The numbers of a comparison of sweeps: the first is the base, with which each other is compared, cell by
-- cell.
--
--   comparing.of(sources) -> { sweeps = { { source, canonical, blocks }... }, groups }, where a group is one
--   TP size, data type, operation, mode and fusion:
--     { tp, words, fusion, sizes_only, hidden_sizes, num_tokens, missing = { sweep -> true },
--       cells[h][t][sweep] = cell or false, against = { [sweep] = tally } }
local lists = require "lists.lists"
local model = require "formats.model"
local formats = require "formats.list"
local sorted_keys = require "base.sorted_keys"
local summary = require "formats.summary"

local comparing = {}

local words_of = summary.words_of

-- ---- one sweep --------------------------------------------------------------------------------

local function sweep_of(source)
  local canonical = model.for_format(source, formats.find "table").canonical
  return { source = source, canonical = canonical, blocks = summary.blocks(canonical), times = {} }
end

local function cell_number(hidden_size, num_tokens) return hidden_size << 32 | num_tokens end

-- strategy -> cell -> row of `columns`, of one fusion of one block; made by the first call.
local function times_of(sweep, key)
  local name = ("%d %s %s"):format(key.world_size, words_of(key), key.fusion)
  if not sweep.times[name] then
    local columns, rows = sweep.source.rows:slice(key), {}
    for i = 1, columns.count do
      local of = rows[columns.strategy[i]] or {}
      rows[columns.strategy[i]] = of
      of[cell_number(columns.hidden_size[i], columns.num_tokens[i])] = i
    end
    sweep.times[name] = { columns = columns, rows = rows }
  end
  return sweep.times[name]
end

-- The time, low and high of a strategy in the cell of `key`; nil if it is unmeasured.
local function time_of(sweep, key, strategy)
  local times = times_of(sweep, key)
  local i = times.rows[strategy] and times.rows[strategy][cell_number(key.hidden_size, key.num_tokens)]
  if not i then return nil end
  local columns = times.columns
  return columns.time_us[i], columns.low_us[i] or nil, columns.high_us[i] or nil
end

-- ---- groups -----------------------------------------------------------------------------------

local function add_values(set, values)
  for _, value in ipairs(values) do set[value] = true end
end

-- Every group that any sweep has, in the order of TP size, data type and fusion.
local function groups_of(sweeps)
  local groups, by_name = {}, {}
  for s, sweep in ipairs(sweeps) do
    for _, block in ipairs(sweep.blocks) do
      for _, fusion in ipairs(block.fusions) do
        local name = ("%d %s %s"):format(block.world_size, words_of(block), fusion)
        local group = by_name[name]
        if not group then
          group = { tp = block.world_size, words = words_of(block), fusion = fusion,
            sizes_only = block.sizes_only, has = {}, hidden = {}, tokens = {},
            key = { world_size = block.world_size, dtype = block.dtype, op = block.op, mode = block.mode,
              fusion = fusion, splits = block.splits or "", sizes_only = block.sizes_only } }
          by_name[name] = group
          groups[#groups + 1] = group
        end
        group.has[s] = true
        add_values(group.hidden, block.hidden_sizes)
        add_values(group.tokens, block.num_tokens)
      end
    end
  end
  return groups
end

local function in_order(groups)
  local index_of = {}
  for i, fusion in ipairs(lists.fusions) do index_of[fusion.name] = i end
  table.sort(groups, function(a, b)
    if a.tp ~= b.tp then return a.tp < b.tp end
    if a.words ~= b.words then return a.words < b.words end
    return index_of[a.fusion] < index_of[b.fusion]
  end)
  return groups
end

local function enter_cells(group, sweeps)
  group.hidden_sizes, group.num_tokens = sorted_keys(group.hidden), sorted_keys(group.tokens)
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
local function is_clear(base, base_low, base_high, time, low, high)
  if base_low and low then return low > base_high or high < base_low end
  return math.abs(time / base - 1) > summary.least_margin
end

-- The comparison of a cell that both have: the ratio of the best times, and the loss of the base's choice
-- here.
local function compare_cell(base, other, key, a, b)
  local _, a_low, a_high = time_of(base, key, a.strategy)
  local _, b_low, b_high = time_of(other, key, b.strategy)
  local kept = time_of(other, key, a.strategy)
  return { ratio = b.time_us / a.time_us, changed = a.strategy ~= b.strategy,
    is_clear = is_clear(a.time_us, a_low, a_high, b.time_us, b_low, b_high),
    loss = kept and kept / b.time_us - 1 or nil }
end

-- The tally of one sweep against the base, over the cells of a group.
local function tally_of(group, sweeps, s)
  local tally = { cells = 0, only_base = 0, only_other = 0, faster = 0, slower = 0, changed = 0, log_sum = 0,
    losses = 0, loss = 0, at = {} }
  local key = group.key
  for h, row in ipairs(group.cells) do
    tally.at[h] = {}
    for t, of in ipairs(row) do
      local a, b = of[1], of[s]
      if a and not b then tally.only_base = tally.only_base + 1 end
      if b and not a then tally.only_other = tally.only_other + 1 end
      if a and b then
        key.hidden_size, key.num_tokens = group.hidden_sizes[h], group.num_tokens[t]
        local cell = compare_cell(sweeps[1], sweeps[s], key, a, b)
        tally.at[h][t] = cell
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
    end
  end
  tally.ratio = tally.cells > 0 and math.exp(tally.log_sum / tally.cells) or nil
  tally.mean_loss = tally.losses > 0 and tally.loss / tally.losses or nil
  return tally
end

-- The geometric mean of the ratios of a strategy's times over all cells that both have, and their number.
function comparing.strategy_ratio(comparison, s, strategy)
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
function comparing.strategies(comparison)
  local seen, out = {}, {}
  for _, sweep in ipairs(comparison.sweeps) do
    for _, slice in ipairs(sweep.source.rows:slices()) do
      for name in pairs(times_of(sweep, slice).rows) do seen[name] = true end
    end
  end
  for _, strategy in ipairs(lists.strategies) do
    if seen[strategy.name] then out[#out + 1] = strategy end
  end
  return out
end

function comparing.of(sources)
  local comparison = { sweeps = {} }
  for s, source in ipairs(sources) do comparison.sweeps[s] = sweep_of(source) end
  comparison.groups = in_order(groups_of(comparison.sweeps))
  for _, group in ipairs(comparison.groups) do
    enter_cells(group, comparison.sweeps)
    group.against = {}
    for s = 2, #sources do group.against[s] = tally_of(group, comparison.sweeps, s) end
  end
  return comparison
end

return comparing
