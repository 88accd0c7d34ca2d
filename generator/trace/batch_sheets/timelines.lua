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

local PARTS = 400 -- SELECTs that SQLite joins in one statement: at most 500
local MOST = 999 -- ranks with both columns in a table of SQLite: at most 2000 columns

-- The view of each rank's exposed communication.
local function view_of(ranks)
  local parts, groups = {}, {}
  for i = 1, math.min(#ranks, MOST) do
    local rank = ranks[i].rank
    parts[i] = ([[SELECT %d AS rank, exposed."rank_%d time ms" AS exposed_ms,
  exposed."rank_%d percent" AS percent_of_total, "all"."rank_%d time ms" AS communication_ms
FROM gpu_timelines exposed JOIN gpu_timelines "all" ON "all".type = 'total_comm_time'
WHERE exposed.type = 'exposed_comm_time']]):format(rank, rank, rank, rank)
  end
  for first = 1, #parts, PARTS do
    local last = math.min(first + PARTS - 1, #parts)
    groups[#groups + 1] = ("SELECT * FROM (%s)"):format(table.concat(parts, "\nUNION ALL ", first, last))
  end
  return { name = "exposed_communication", sql = table.concat(groups, "\nUNION ALL ") }
end

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
    local sheet = { name = "gpu_timelines", columns = columns_of(ranks), rows = {},
      views = { view_of(ranks) } }
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
