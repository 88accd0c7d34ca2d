-- The sheets linked_short_kernels and unlinked_short_kernels (those with and without an External id) and
-- short_cpu_op_counts: the ops that launch kernels shorter than 10 µs.
local grouping = require "trace.ops.grouping"
local ordering = require "base.ordering"
local pooled = require "trace.ops.pooled_statistics"
local sequences = require "base.sequences"

local LIMIT = 10 -- µs

local columns = { "Parent cpu_op", "Kernel name", "Short Kernel count", "Short Kernel duration (µs) sum",
  "Short Kernel duration (µs) mean", "Short Kernel duration (µs) std", "Short Kernel duration (µs) min",
  "Short Kernel duration (µs) max", "Short Kernel duration (µs) percent of total time" }

local function key_of(row) return row.parent .. "\0" .. row.kernel end

local function kernel_sheet(name, lists, total_us)
  local sheet = { name = name, columns = columns, rows = {} }
  for i, row in ipairs(pooled.ranked(pooled.joined(lists, key_of))) do
    local parent = row.first.parent ~= "" and row.first.parent or nil
    sheet.rows[i] = { parent, row.first.kernel, row.count, row.sum, row.mean, row.deviation, row.min, row.max,
      grouping.percent(row.sum, total_us) }
  end
  return sheet
end

local function count_sheet(lists)
  local rows = {}
  for i, group in ipairs(pooled.by_key(lists, function(row) return row.parent end)) do
    rows[i] = { group.key, 0 }
    for _, row in ipairs(group) do rows[i][2] = rows[i][2] + row.count end
  end
  return { name = "short_cpu_op_counts", columns = { "Parent cpu_op", "Short Kernel count" },
    rows = ordering.falling(rows, function(row) return row[2] end) }
end

return {
  field = "short",

  collect = function(rank)
    return { linked = rank.analysis:short_rows(LIMIT, true),
      unlinked = rank.analysis:short_rows(LIMIT, false), total_us = rank.analysis:timeline(true, 0).total }
  end,

  make = function(ranks)
    local shorts = sequences.field(ranks, "short")
    local linked = sequences.field(shorts, "linked")
    local total_us = grouping.total(sequences.field(shorts, "total_us"))
    local launched = sequences.map(linked, function(rows)
      return sequences.filter(rows, function(row) return row.parent ~= "" end)
    end)
    return { kernel_sheet("linked_short_kernels", linked, total_us),
      kernel_sheet("unlinked_short_kernels", sequences.field(shorts, "unlinked"), total_us),
      count_sheet(launched) }
  end,
}
