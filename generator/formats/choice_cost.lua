-- The cost of a restriction of choices: of stable numerics, or to the strategies that a format can name.
-- Compares the choices of a table of a source (of model.load) with those without the restriction, by expected
-- losses over the bin among all strategies.
--
-- Each function gives { { slice = block of core.table, fusion, cells = that have a choice, other = of these,
-- with another choice than without the restriction, without = cells that have no choice for its sake,
-- unknown = of `other`, those with a choice that has no time there (a lookup by powers of two took it from
-- another shape of the bin), cost = mean over all but these, as a share of time, most_us, most = the same
-- share, place = { hidden_size, num_tokens ... } where the most time is lost (nil: nowhere) }... }, an entry
-- for each fusion of a block with shapes; and the same sums over all.
local choices = require "core.choose"
local fail = require "base.fail"
local judge = require "formats.judge"
local model = require "formats.model"
local provenance = require "rows.provenance"

local choice_cost = {}

local function new_sums(block, fusion)
  return { slice = block, fusion = fusion, cells = 0, other = 0, without = 0, unknown = 0, cost = 0,
    most_us = 0 }
end

-- Enters a cell with different choices; `free`, `judged`: of table:find.
local function enter(sums, place, free, judged)
  sums.other = sums.other + 1
  if not judged.new_loss then
    sums.unknown = sums.unknown + 1
    return
  end
  local share = (1 + judged.new_loss) / (1 + judged.old_loss) - 1
  sums.cost = sums.cost + share
  if share * free.time_us > sums.most_us then
    sums.most_us, sums.most, sums.place = share * free.time_us, share, place
  end
end

local function place_of(block, fusion, hidden_size, num_tokens)
  return { world_size = block.world_size, nodes = block.nodes, dtype = block.dtype, op = block.op,
    mode = block.mode, splits = block.splits, fusion = fusion, hidden_size = hidden_size,
    num_tokens = num_tokens }
end

-- Calls each(hidden size, tokens) for the cells of a fusion with two different choices, and adds the numbers
-- of cells to both sums. The tables have the same blocks (check_same_blocks).
local function each_difference(free, restricted, index, fusion, block, both_sums, each)
  for h, hidden_size in ipairs(block.hidden_sizes) do
    local were, are = free:winners(index, fusion, h), restricted:winners(index, fusion, h)
    for t, num_tokens in ipairs(block.num_tokens) do
      local had, has = were[t] ~= 0, are[t] ~= 0
      for _, sums in ipairs(had and both_sums or {}) do
        sums.without, sums.cells = sums.without + (has and 0 or 1), sums.cells + (has and 1 or 0)
      end
      if had and has and were[t] ~= are[t] then each(hidden_size, num_tokens) end
    end
  end
end

-- Raises if two tables have not the same blocks, fusions and shapes in the same order: cells are compared by
-- their index.
local function check_same_blocks(free, restricted)
  assert(provenance.same(free:blocks(), restricted:blocks()), "choice_cost: tables of other cells")
end

-- The canonical table, chosen as if numerics were not stable.
local function free_table(source)
  local options = model.options_of(source, "nearest")
  options.incumbent = options.lookup == "nearest" and source.stays or nil
  return fail.unless(choices.select(source.rows, options))
end

-- Compares two tables, which have the same blocks; `counts`: by index of a block, whether it counts.
local function compare(source, free, restricted, lookup, counts)
  check_same_blocks(free, restricted)
  local judged, out, total = judge(source, free, restricted, lookup), {}, new_sums()
  for index, block in ipairs(restricted:blocks()) do
    for f, fusion in ipairs(counts(index) and not block.sizes_only and block.fusions or {}) do
      local both = { new_sums(block, fusion), total }
      out[#out + 1] = both[1]
      each_difference(free, restricted, index, f, block, both, function(hidden_size, num_tokens)
        local place = place_of(block, fusion, hidden_size, num_tokens)
        for _, sums in ipairs(both) do
          enter(sums, place, free:find(place), judged:find(place))
        end
      end)
    end
  end
  for _, sums in ipairs { total, table.unpack(out) } do
    sums.cost = sums.cost / math.max(sums.cells - sums.unknown, 1)
  end
  return out, total
end

-- The cost of stable numerics in the canonical table.
function choice_cost.of_stable(source)
  return compare(source, free_table(source), model.canonical(source), nil, function() return true end)
end

-- The cost of the strategies that the format of a view (of model.for_format) cannot name, in the blocks that
-- it has.
function choice_cost.of_names(view)
  local has_block, lookup = {}, view.format.lookup
  local free = model.canonical(view.source, lookup)
  if free == view.canonical then return {}, new_sums() end -- it can name all that have times
  for _, tp_table in ipairs(view.tp_tables) do has_block[tp_table.block] = true end
  return compare(view.source, free, view.canonical, lookup, function(index) return has_block[index] end)
end

return choice_cost
