-- The grid of rows without a recorded one, such as rows of other tools: per placement, dtype, op, mode and
-- splits, all fusions, sizes and strategies that the rows have.
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local implied_grid = {}

local MAX_STEPS = 1e7 -- rows x cells of a grid: about two seconds of interpolation

local function block_of(row)
  return table.concat({ row.dtype, row.op, row.mode, row.splits or "" }, " ")
end

-- Whether rows (core.rows) of a placement, { tp, nodes }, leave a cell of their grid without a row, in grids
-- that are small enough for interpolation. Only this reads all rows of a large file.
function implied_grid.has_holes(all, placement)
  local blocks = {}
  for _, slice in ipairs(all:slices()) do
    local is_of_it = slice.world_size == placement.tp and slice.nodes == placement.nodes
    if is_of_it and not slice.sizes_only then
      local columns = all:slice(slice, { "hidden_size", "num_tokens" })
      local block, shapes = sequences.at(blocks, block_of(slice)), {}
      for i = 1, columns.count do
        local hidden_size, num_tokens = columns.hidden_size[i], columns.num_tokens[i]
        sequences.at(block, "hidden_sizes")[hidden_size] = true
        sequences.at(block, "num_tokens")[num_tokens] = true
        shapes[hidden_size << 32 | num_tokens] = true
      end
      block.rows = (block.rows or 0) + columns.count
      block.least = math.min(block.least or math.huge, sequences.count(shapes))
    end
  end
  for _, block in pairs(blocks) do
    local cells = sequences.count(block.hidden_sizes) * sequences.count(block.num_tokens)
    if block.least < cells and cells * block.rows <= MAX_STEPS then return true end
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
