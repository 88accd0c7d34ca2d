-- The sheet cuda_events_summary: kernels, copies and calls of the runtime and the driver by name, over all
-- ranks.
local grouping = require "trace.ops.grouping"
local pooled = require "trace.ops.pooled_statistics"

local columns = { "category", "name", "count", "duration (µs)_sum", "duration (µs)_mean",
  "duration (µs)_std", "duration (µs)_min", "duration (µs)_max", "percent of category" }

return {
  field = "events",

  collect = function(rank) return rank.analysis:event_rows() end,

  make = function(ranks)
    local rows, totals = {}, {}
    for i, entry in ipairs(pooled.by_key(pooled.lists(ranks, "events"), function(row)
      return row.category .. "\0" .. row.name
    end)) do
      local row = pooled.together(entry.rows)
      row.category, row.name = entry.rows[1].category, entry.rows[1].name
      totals[row.category] = (totals[row.category] or 0) + row.sum
      rows[i] = row
    end
    local sheet = { name = "cuda_events_summary", columns = columns, rows = {} }
    for i, row in ipairs(pooled.sort(rows, function(one) return one.sum end)) do
      sheet.rows[i] = { row.category, row.name, row.count, row.sum, row.mean, row.deviation, row.min, row.max,
        grouping.percent(row.sum, totals[row.category]) }
    end
    return { sheet }
  end,
}
