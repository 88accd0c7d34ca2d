-- The sheets kernel_summary, short_kernel_histogram and short_kernels_summary: GPU kernels by their launches,
-- and the kernels that are shorter than a launch takes.
local families = require "trace.ops.families"
local ordering = require "base.ordering"
local grouping = require "trace.ops.grouping"

-- The category of a row: of the op that launched it, or of the launch; nil: it has no launch.
local function category_of(row)
  if row.parent == "" then return nil end
  if row.is_of_op then return families.category(row.parent, row.first_kernel) end
  local lower = row.parent:lower()
  local is_graph = lower:find("graphlaunch", 1, true) or lower:find("cudagraph", 1, true)
  return is_graph and "graph" or "runtime"
end

-- Sums rows with the same key_of(row); by descending sum.
local function joined(rows, key_of)
  local result = {}
  for i, group in ipairs(ordering.groups(rows, key_of)) do
    local first = group[1]
    for k = 2, #group do
      local row = group[k]
      first.count, first.sum = first.count + row.count, first.sum + row.sum
      first.min, first.max = math.min(first.min, row.min), math.max(first.max, row.max)
      first.uid = math.min(first.uid, row.uid)
    end
    result[i] = first
  end
  return ordering.sort(result, ordering.by("-sum", "uid"))
end

-- Kernels by their time over all ops and streams.
local top_kernels = { name = "top_kernels", sql = [[
SELECT "Kernel name" AS kernel, sum("Kernel duration (µs)_sum") AS time_us,
  sum("Kernel duration (µs)_count") AS calls, max("Kernel duration (µs)_max") AS longest_us,
  sum("Percent of kernels time (%)") AS percent_of_kernels
FROM kernel_summary GROUP BY "Kernel name" ORDER BY time_us DESC]] }

local function summary(rank, total_us)
  local rows = joined(rank.analysis:kernel_rows(), function(row)
    row.category = category_of(row)
    return table.concat({ row.category or "", row.parent, row.kernel, row.stream }, "\0")
  end)
  local all = 0
  for _, row in ipairs(rows) do all = all + row.sum end
  local sheet = { name = "kernel_summary", rows = {}, views = { top_kernels },
    columns = { "Parent op category", "Parent cpu_op", "Kernel name", "Kernel stream",
      "Kernel duration (µs)_sum", "Kernel duration (µs)_count", "Kernel duration (µs)_mean",
      "Kernel duration (µs)_min", "Kernel duration (µs)_max", "Percent of kernels time (%)",
      "Percent of total time (%)" } }
  for i, row in ipairs(rows) do
    sheet.rows[i] = { row.category, row.parent ~= "" and row.parent or nil, row.kernel, row.stream, row.sum,
      row.count, row.sum / row.count, row.min, row.max, grouping.percent(row.sum, all),
      grouping.percent(row.sum, total_us) }
  end
  return sheet
end

local function histogram(rank, limit, bins)
  local sheet = { name = "short_kernel_histogram", columns = { "bin_start", "bin_end", "count" }, rows = {} }
  local first, last, counts = rank.analysis:short_kernel_histogram(limit, bins)
  if not first then return sheet end
  local width = (last - first) / bins
  for i, count in ipairs(counts) do
    sheet.rows[i] = { first + width * (i - 1), i == bins and last or first + width * i, count }
  end
  return sheet
end

local function short_summary(rank, limit, top, total_us)
  local rows = joined(rank.analysis:short_kernel_rows(limit), function(row)
    row.dims, row.types, row.strides, row.concrete = rank:arguments(row.arguments or -1)
    return table.concat({ row.parent, row.dims or "", row.strides or "", row.concrete or "", row.kernel },
      "\0")
  end)
  local sheet = { name = "short_kernels_summary", rows = {},
    columns = { "Parent cpu_op", "Input dims", "Input strides", "Concrete Inputs", "Kernel name",
      "Short Kernel duration (µs) sum", "Short Kernel count", "Short Kernel duration (µs) mean",
      "Short Kernel duration (µs) percent of total time" } }
  for i = 1, math.min(#rows, top or #rows) do
    local row = rows[i]
    sheet.rows[i] = { row.parent, row.dims, row.strides, row.concrete, row.kernel, row.sum, row.count,
      row.sum / row.count, grouping.percent(row.sum, total_us) }
  end
  return sheet
end

return {
  -- options: short_limit (µs), bins, top_short (nil: all), kernel_summary (false: without that sheet), and
  -- those of the time line: shares are of its total time.
  make = function(rank, options)
    local list, total_us = {}, rank:times(options).total
    if options.kernel_summary ~= false then list[1] = summary(rank, total_us) end
    list[#list + 1] = histogram(rank, options.short_limit, options.bins)
    list[#list + 1] = short_summary(rank, options.short_limit, options.top_short, total_us)
    return list
  end,
}
