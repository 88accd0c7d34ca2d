-- The sheet gpu_timelines: the time of each rank's GPU by use, and average and std over ranks.
local pooled = require "trace.ops.pooled_statistics"
local sequences = require "base.sequences"
local timeline = require "trace.sheets.timeline"

-- The statistics of one number of each rank.
local function over_ranks(values)
  return pooled.together(sequences.map(values, function(value)
    return { count = 1, sum = value, mean = value, min = value, max = value }
  end))
end

local units = { "time ms", "percent" }

local function columns_of(ranks)
  local columns = { "type" }
  for _, rank in ipairs(ranks) do
    for _, unit in ipairs(units) do columns[#columns + 1] = ("rank_%d %s"):format(rank.rank, unit) end
  end
  for _, unit in ipairs(units) do
    columns[#columns + 1] = "average " .. unit
    columns[#columns + 1] = "std " .. unit
  end
  return columns
end

return {
  field = "timeline",

  collect = function(rank) return timeline.make(rank, {}, {})[1].rows end,

  make = function(ranks)
    local sheet = { name = "gpu_timelines", columns = columns_of(ranks), rows = {} }
    for index, first in ipairs(ranks[1].timeline) do
      local row, values = { first[1] }, { {}, {} }
      for _, rank in ipairs(ranks) do
        for unit = 1, #units do
          local value = (rank.timeline[index] or {})[unit + 1] or 0 -- other traces have one row less
          row[#row + 1] = value
          table.insert(values[unit], value)
        end
      end
      for unit = 1, #units do
        local all = over_ranks(values[unit])
        row[2 * #ranks + 2 * unit], row[2 * #ranks + 2 * unit + 1] = all.mean, all.deviation
      end
      sheet.rows[index] = row
    end
    return { sheet }
  end,
}
