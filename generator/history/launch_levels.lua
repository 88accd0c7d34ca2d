-- The levels of rows: for each record the log2 of its time in microseconds, without what slowed a whole
-- launch of its cell (estimate/contrasts.h). A row without launches has the log2 of its time.
local cell_records = require "rows.cell_records"
local core = require "core.history"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local launch_levels = {}

local function add_cell(times, index, cell, place_of)
  local last = 0
  for _, record in ipairs(cell) do last = math.max(last, record.launches and #record.launches or 1) end
  for launch = 1, last do
    for _, record in ipairs(cell) do
      local of_launch = record.launches or { record.time_us }
      if of_launch[launch] then
        local at = #times
        times[at + 1], times[at + 2] = index, launch
        times[at + 3], times[at + 4] = place_of[record.strategy], math.log(of_launch[launch], 2)
      end
    end
  end
end

-- records (of core.rows, each cell and strategy once) -> { [record] = level }
function launch_levels.of(records)
  local cells = ordering.groups(records, function(record)
    return cell_records.key(cell_records.record(record))
  end)
  local names, place_of, times = sequences.distinct(sequences.field(records, "strategy")), {}, {}
  for i, name in ipairs(names) do place_of[name] = i - 1 end
  for index, cell in ipairs(cells) do add_cell(times, index, cell, place_of) end
  local levels, out = core.levels(times), {}
  local level_of = {}
  for i = 1, #levels, 3 do
    sequences.at(level_of, math.tointeger(levels[i]))[names[levels[i + 1] + 1]] = levels[i + 2]
  end
  for index, cell in ipairs(cells) do
    for _, record in ipairs(cell) do
      out[record] = level_of[index] and level_of[index][record.strategy] or math.log(record.time_us, 2)
    end
  end
  return out
end

return launch_levels
