-- The cost of a restriction of choices: of stable numerics, or to the strategies that a format can name.
-- Compares the choices of a table of a source (of model.load) with those without the restriction, by expected
-- losses over the bin among all strategies.
--
-- Each function gives { { slice = block of core.table, fusion, cells = that have a choice, other = of these,
-- with another choice than without the restriction, without = cells that have no choice for its sake, cost =
-- mean over cells, as a share of time, most_us, most = the same share, place = { hidden_size, num_tokens ...
-- } where the most time is lost (nil: nowhere) }... }, an entry for each fusion of a block with shapes; and
-- the same sums over all.
local choices = require "core.choose"
local fail = require "base.fail"
local judge = require "formats.judge"
local model = require "formats.model"

local choice_cost = {}

local function new_sums(block, fusion)
  return { slice = block, fusion = fusion, cells = 0, other = 0, without = 0, cost = 0, most_us = 0 }
end

-- Enters one cell; its choices are those of table:find.
local function enter(sums, place, free, restricted, judged)
  if free and not restricted then sums.without = sums.without + 1 end
  if not (free and restricted) then return end
  sums.cells = sums.cells + 1
  if free.strategy == restricted.strategy then return end
  local share = (1 + judged.new_loss) / (1 + judged.old_loss) - 1
  sums.other, sums.cost = sums.other + 1, sums.cost + share
  if share * free.time_us > sums.most_us then
    sums.most_us, sums.most, sums.place = share * free.time_us, share, place
  end
end

local function each_cell(block, fusion, each)
  for _, hidden_size in ipairs(block.hidden_sizes) do
    for _, num_tokens in ipairs(block.num_tokens) do
      each { world_size = block.world_size, nodes = block.nodes, dtype = block.dtype, op = block.op,
        mode = block.mode, splits = block.splits, fusion = fusion, hidden_size = hidden_size,
        num_tokens = num_tokens }
    end
  end
end

-- The canonical table, chosen as if numerics were not stable.
local function free_table(source)
  local options = model.options_of(source, "nearest")
  options.incumbent = options.lookup == "nearest" and source.stays or nil
  return fail.unless(choices.select(source.rows, options))
end

-- Compares two tables, which have the same blocks; `counts`: by index of a block, whether it counts.
local function compare(source, free, restricted, lookup, counts)
  local judged, out, total = judge(source, free, restricted, lookup), {}, new_sums()
  for index, block in ipairs(restricted:blocks()) do
    for _, fusion in ipairs(counts(index) and not block.sizes_only and block.fusions or {}) do
      local sums = new_sums(block, fusion)
      out[#out + 1] = sums
      each_cell(block, fusion, function(place)
        for _, of in ipairs { sums, total } do
          enter(of, place, free:find(place), restricted:find(place), judged:find(place))
        end
      end)
    end
  end
  for _, sums in ipairs { total, table.unpack(out) } do
    sums.cost = sums.cells > 0 and sums.cost / sums.cells or 0
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
  for _, tp_table in ipairs(view.tp_tables) do has_block[tp_table.block] = true end
  return compare(view.source, model.canonical(view.source, lookup), view.canonical, lookup,
    function(index) return has_block[index] end)
end

return choice_cost
