-- The table of a TP size from the rows so far, by the rule of all tables (core.choose). The planner uses its
-- uncertain choices.
local cell_records = require "rows.cell_records"
local choices = require "core.choose"
local derive = require "choose.derive"
local fail = require "base.fail"
local lists = require "lists.lists"
local rows = require "core.rows"

local provisional_table = {}

-- The blocks of the spec's grid, one for each data type.
local function blocks_of(spec, world_size)
  local out = {}
  for i, dtype in ipairs(spec.dtypes) do
    out[i] = { world_size = world_size, dtype = dtype, op = spec.table.op, mode = spec.table.mode,
      fusions = spec.fusions, hidden_sizes = spec.hidden_sizes, num_tokens = spec.num_tokens }
  end
  return out
end

-- For cells that no visit has reached: the strategies that may win, are measured elsewhere in the plane, and
-- have no time there, not even an interpolated one. The bench may have refused one of them beside the cell,
-- and measure it in the cell. Returns a function of a cell: whether it has any.
local function untried(world_size, records, no_time, derived)
  local is_reached, in_plane, is_known = {}, {}, {}
  local function plane_of(record) return record.dtype .. " " .. record.fusion end
  local function key_of(record, strategy)
    return cell_records.key(cell_records.record(record, strategy, { world_size = world_size }))
  end
  for _, record in ipairs(records) do
    is_reached[key_of(record)] = true
    local plane = plane_of(record)
    in_plane[plane] = in_plane[plane] or {}
    in_plane[plane][record.strategy] = lists.may_win(record.strategy) or nil
  end
  for _, list in ipairs { no_time, derived } do
    for _, record in ipairs(list) do is_known[key_of(record, record.strategy)] = true end
  end
  return function(cell)
    if is_reached[key_of(cell)] then return false end
    for strategy in pairs(in_plane[plane_of(cell)] or {}) do
      if not is_known[key_of(cell, strategy)] then return true end
    end
    return false
  end
end

local function in_order(by_key)
  local out = {}
  for _, record in pairs(by_key) do out[#out + 1] = record end
  table.sort(out, cell_records.before)
  return out
end

-- The expected loss of each uncertain choice, by the key of its cell (rows/cell_records.lua). A choice among
-- fewer strategies than may do the cell counts as uncertain, too. `with` has rows with a time, `without`
-- records with a reason, by any key; both may be of shapes between those of the spec.
-- `choice`: how choices are made, as choose.settings sets it in a source; nil: by the rule alone.
function provisional_table.uncertain(spec, world_size, with, without, choice)
  choice = choice or {}
  local out, records, no_time = {}, in_order(with), in_order(without)
  if #records == 0 then return out end
  local blocks, derived = blocks_of(spec, world_size), derive.times(spec, world_size, records, no_time)
  local is_untried = untried(world_size, records, no_time, derived)
  local canonical = fail.unless(choices.select(fail.unless(rows.of("the sweep", records)), {
    lookup = choice.corner and "exact" or "nearest", only_cells = true, cells = blocks, loopback = true,
    derived = derived, same_bits_as = choice.same_bits_as,
    stable = choice.stable and (choice.stays or true), workload = choice.workload, regret = choice.regret,
    incumbent = not choice.corner and choice.stays or nil }))
  for b, block in ipairs(canonical:blocks()) do
    for f, fusion in ipairs(block.fusions) do
      for h, hidden_size in ipairs(block.hidden_sizes) do
        for t, num_tokens in ipairs(block.num_tokens) do
          local cell = canonical:cell(b, f, h, t)
          local shape = { world_size = world_size, dtype = block.dtype, op = block.op, mode = block.mode,
            fusion = fusion, hidden_size = hidden_size, num_tokens = num_tokens }
          if cell and cell.state == "uncertain" then
            out[cell_records.key(shape)] = cell.expected_loss
          elseif cell and is_untried(shape) then
            out[cell_records.key(shape)] = choices.rule.expected_loss
          end
        end
      end
    end
  end
  return out
end

return provisional_table
