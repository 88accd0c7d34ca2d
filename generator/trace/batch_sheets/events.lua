-- The sheet cuda_events_summary: kernels, copies and calls of the runtime and the driver by name, over all
-- ranks.
local grouping = require "trace.ops.grouping"
local pooled = require "trace.ops.pooled_statistics"
local sequences = require "base.sequences"

local columns = { "category", "name", "count", "duration (µs)_sum", "duration (µs)_mean",
  "duration (µs)_std", "duration (µs)_min", "duration (µs)_max", "percent of category" }

return {
  field = "events",

  collect = function(rank) return rank.analysis:event_rows() end,

  make = function(ranks)
    local totals = {}
    local rows = pooled.joined(sequences.field(ranks, "events"), function(row)
      return row.category .. "\0" .. row.name
    end)
    for _, row in ipairs(rows) do
      totals[row.first.category] = (totals[row.first.category] or 0) + row.sum
    end
    local sheet = { name = "cuda_events_summary", columns = columns, rows = {} }
    for i, row in ipairs(pooled.ranked(rows)) do
      sheet.rows[i] = { row.first.category, row.first.name, row.count, row.sum, row.mean, row.deviation,
        row.min, row.max, grouping.percent(row.sum, totals[row.first.category]) }
    end
    return { sheet }
  end,
}
