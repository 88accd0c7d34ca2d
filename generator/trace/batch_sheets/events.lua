-- The sheet cuda_events_summary: kernels, copies and calls of the runtime and the driver by name, over all
-- ranks.
local grouping = require "trace.ops.grouping"
local pooled = require "trace.ops.pooled_statistics"
local sequences = require "base.sequences"

local columns = { "category", "name", "count", "duration (µs)_sum", "duration (µs)_mean",
  "duration (µs)_std", "duration (µs)_min", "duration (µs)_max", "percent of category" }

-- Kernels by their time over all ranks.
local top_kernels = { name = "top_kernels", sql = [[
SELECT name AS kernel, "duration (µs)_sum" AS time_us, count AS calls, "duration (µs)_max" AS longest_us,
  "percent of category" AS percent_of_kernels
FROM cuda_events_summary WHERE category = 'kernel' ORDER BY time_us DESC]] }

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
    local sheet = { name = "cuda_events_summary", columns = columns, rows = {},
      views = { top_kernels } }
    for i, row in ipairs(pooled.ranked(rows)) do
      sheet.rows[i] = { row.first.category, row.first.name, row.count, row.sum, row.mean, row.deviation,
        row.min, row.max, grouping.percent(row.sum, totals[row.first.category]) }
    end
    return { sheet }
  end,
}
