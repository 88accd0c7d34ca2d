-- The table of a placement of ranks from the rows so far, by the rule of all tables (core.choose). The
-- planner uses its uncertain choices.
local cell_records = require "rows.cell_records"
local choices = require "core.choose"
local derive = require "choose.derive"
local fail = require "base.fail"
local rows = require "core.rows"
local sequences = require "base.sequences"

local provisional_table = {}

-- The blocks of the spec's grid, one for each data type.
local function blocks_of(spec, world_size, nodes)
  return sequences.map(spec.dtypes, function(dtype)
    return { world_size = world_size, nodes = nodes, dtype = dtype, op = spec.table.op,
      mode = spec.table.mode, fusions = spec.fusions, hidden_sizes = spec.hidden_sizes,
      num_tokens = spec.num_tokens }
  end)
end

local function in_order(by_key)
  local out = {}
  for _, record in pairs(by_key) do out[#out + 1] = record end
  table.sort(out, cell_records.before)
  return out
end

-- The keys of the cells (rows/cell_records.lua) of these records, as a set.
local function cells_of(list)
  return sequences.set(sequences.map(list, function(record)
    return cell_records.key(cell_records.record(record))
  end))
end

-- The expected loss of each uncertain choice, by the key of its cell. A choice where a strategy is untried
-- counts as uncertain, too: the bench may have refused the strategy beside the cell, and measure it in the
-- cell. `with` has rows with a time, `without` records with a reason, by any key; both may be of shapes
-- between those of the spec.
-- `choice`: how choices are made, as choose.settings sets it in a source; nil: by the rule alone. `nodes`: of
-- the ranks, by default 1.
function provisional_table.uncertain(spec, world_size, with, without, choice, nodes)
  choice = choice or {}
  local out, records, no_time = {}, in_order(with), in_order(without)
  if #records == 0 then return out end
  local blocks = blocks_of(spec, world_size, nodes)
  local derived = derive.times(spec, world_size, records, no_time, nodes)
  local untried = derive.untried(spec, world_size, records, no_time, derived, nodes)
  local is_untried = cells_of(untried)
  local canonical = fail.unless(choices.select(fail.unless(rows.of("the sweep", records)), {
    lookup = choice.corner and "exact" or "nearest", only_cells = true, cells = blocks, loopback = true,
    derived = derived, untried = untried, same_bits_as = choice.same_bits_as,
    stable = choice.stable and (choice.stays or true), workload = choice.workload, regret = choice.regret,
    incumbent = not choice.corner and choice.stays or nil }))
  for b, block in ipairs(canonical:blocks()) do
    for f, fusion in ipairs(block.fusions) do
      for h, hidden_size in ipairs(block.hidden_sizes) do
        for t, num_tokens in ipairs(block.num_tokens) do
          local cell = canonical:cell(b, f, h, t)
          local shape = { world_size = world_size, nodes = nodes, dtype = block.dtype, op = block.op,
            mode = block.mode, fusion = fusion, hidden_size = hidden_size, num_tokens = num_tokens }
          local key = cell_records.key(shape)
          if cell and cell.state == "uncertain" then
            out[key] = cell.expected_loss
          elseif cell and is_untried[key] then
            out[key] = choices.rule.expected_loss
          end
        end
      end
    end
  end
  return out
end

return provisional_table
