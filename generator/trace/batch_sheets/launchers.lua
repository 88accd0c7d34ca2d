-- The sheet kernel_launchers: the ops that launched GPU events other than communication, over all ranks.
local grouping = require "trace.ops.grouping"
local pooled = require "trace.ops.pooled_statistics"
local sequences = require "base.sequences"

return {
  field = "launchers",

  collect = function(rank)
    local selection, combos = rank:select("launchers")
    local map, count, firsts = grouping.by(#combos.name, function(combo)
      return combos.name[combo] .. "\0" .. rank:category(combos, combo)
    end)
    local groups, out = selection:group(map, count, { { "time" } }), {}
    for group = 1, count do
      local time = groups[1]
      out[group] = { name = combos.name[firsts[group]], category = rank:category(combos, firsts[group]),
        count = groups.count[group], sum = time.sum[group], mean = grouping.cell(time.mean[group]),
        deviation = grouping.cell(time.deviation[group]), rounding = time.rounding[group],
        min = time.min[group], max = time.max[group] }
    end
    return out
  end,

  make = function(ranks)
    local total, up_to = 0.0, 0.0
    local rows = pooled.joined(sequences.field(ranks, "launchers"), function(row)
      return row.name .. "\0" .. row.category
    end)
    for _, row in ipairs(rows) do total = total + row.sum end
    local sheet = { name = "kernel_launchers", rows = {}, columns = { "name", "op category", "Count",
      "total_direct_kernel_time_sum", "total_direct_kernel_time_mean", "total_direct_kernel_time_std",
      "total_direct_kernel_time_ms", "Percentage (%)", "Cumulative Percentage (%)" } }
    for i, row in ipairs(pooled.ranked(rows)) do
      up_to = up_to + row.sum
      sheet.rows[i] = { row.first.name, row.first.category, row.count, row.sum, row.mean, row.deviation,
        row.sum / 1e3, grouping.percent(row.sum, total), grouping.percent(up_to, total) }
    end
    return { sheet }
  end,
}
