-- The grid of rows without a recorded one, such as rows of other tools: per placement, dtype, op, mode and
-- splits, all fusions, sizes and strategies that the rows have.
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local implied_grid = {}

local MAX_STEPS = 1e7 -- rows x cells of a grid: about two seconds of interpolation

local function block_of(row)
  return table.concat({ row.dtype, row.op, row.mode, row.splits or "" }, " ")
end

-- The slices of a placement, { tp, nodes }, by their block: { [key] = { slices = { slice... }, rows = their
-- number of rows }... }.
local function slices_by_block(all, placement)
  local blocks = {}
  for _, slice in ipairs(all:slices()) do
    local is_of_it = slice.world_size == placement.tp and slice.nodes == placement.nodes
    if is_of_it and not slice.sizes_only then
      local block = sequences.at(blocks, block_of(slice))
      local slices = sequences.at(block, "slices")
      slices[#slices + 1] = slice
      block.rows = (block.rows or 0) + slice.count
    end
  end
  return blocks
end

-- Whether a fusion of a block lacks a row of a cell of the block's grid. A grid that is too large for
-- interpolation has no holes; the first slice shows most of such grids, which saves reading the others.
local function block_has_holes(all, block)
  local hidden_sizes, num_tokens, cells, least = {}, {}, 0, math.huge
  for _, slice in ipairs(block.slices) do
    local columns, shapes = all:slice(slice, { "hidden_size", "num_tokens" }), {}
    for i = 1, columns.count do
      local hidden, tokens = columns.hidden_size[i], columns.num_tokens[i]
      hidden_sizes[hidden], num_tokens[tokens], shapes[hidden << 32 | tokens] = true, true, true
    end
    cells = sequences.count(hidden_sizes) * sequences.count(num_tokens)
    if cells * block.rows > MAX_STEPS then return false end
    least = math.min(least, sequences.count(shapes))
  end
  return least < cells
end

-- Whether rows (core.rows) of a placement, { tp, nodes }, leave a cell of their grid without a row, in grids
-- that are small enough for interpolation.
function implied_grid.has_holes(all, placement)
  for _, block in pairs(slices_by_block(all, placement)) do
    if block_has_holes(all, block) then return true end
  end
  return false
end

-- A spec of the rows of one block.
local function spec_of(block)
  local first, spec = block[1], { limits = { message_bytes = math.huge } }
  local keys = { fusions = "fusion", hidden_sizes = "hidden_size", num_tokens = "num_tokens",
    strategies = "strategy" }
  for key, field in pairs(keys) do
    spec[key] = ordering.sorted_keys(sequences.set(sequences.field(block, field)))
  end
  spec.dtypes, spec.splits, spec.table = { first.dtype }, first.splits, { op = first.op, mode = first.mode }
  return spec
end

-- The grids of records (of rows.records) of one placement that are small enough for interpolation: { { spec =
-- what derive.times takes, records }... }.
function implied_grid.of(records)
  local blocks = ordering.groups(records, block_of)
  table.sort(blocks, ordering.by "key")
  return sequences.map(blocks, function(block)
    local spec = spec_of(block)
    local is_small = #spec.hidden_sizes * #spec.num_tokens * #block <= MAX_STEPS
    return is_small and { spec = spec, records = block } or nil
  end)
end

return implied_grid
