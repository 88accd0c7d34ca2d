-- The sheets ops_summary, ops_summary_by_category and ops_unique_args: the ops that launched kernels
-- themselves, by name, by category and by arguments.
local grouping = require "trace.ops.grouping"
local python_literals = require "codec.python_literals"

local statistics = { "mean", "median", "deviation", "min", "max", "sum" }

-- Rows of groups with their share of the time and the cumulative share: row_of(group, row) fills the cells
-- before those two.
local function ranked(groups, count, row_of)
  local sums = groups[1].sum
  local total, up_to, rows = grouping.total(sums), 0, {}
  for _, group in ipairs(grouping.order(sums, groups.uid, count)) do
    local row = grouping.row()
    row_of(group, row)
    up_to = up_to + sums[group]
    row:add(grouping.percent(sums[group], total), grouping.percent(up_to, total))
    rows[#rows + 1] = row
  end
  return rows
end

local function by_name(selection, combos, categories)
  local map, count, firsts = grouping.by(#combos.name, function(combo) return combos.name[combo] end)
  local groups = selection:group(map, count, { { "time" }, { "subtree" } })
  local seen, lists = {}, {}
  for combo, group in ipairs(map) do
    lists[group] = lists[group] or {}
    local key = group .. " " .. categories[combo]
    if not seen[key] then table.insert(lists[group], categories[combo]) end
    seen[key] = true
  end
  return { name = "ops_summary",
    columns = { "name", "total_direct_kernel_time_sum", "total_subtree_kernel_time_sum",
      "total_direct_kernel_time_ms", "total_subtree_kernel_time_ms", "Count", "Categories", "Percentage (%)",
      "Cumulative Percentage (%)" },
    rows = ranked(groups, count, function(group, row)
      local direct, subtree = groups[1].sum[group], groups[2].sum[group]
      row:add(combos.name[firsts[group]], direct, subtree, direct / 1e3, subtree / 1e3, groups.count[group],
        python_literals.write(lists[group], true))
    end) }
end

local function by_category(selection, combos, categories)
  local map, count, firsts = grouping.by(#combos.name, function(combo) return categories[combo] end)
  local groups = selection:group(map, count, { { "time" } })
  return { name = "ops_summary_by_category",
    columns = { "op category", "Count", "total_direct_kernel_time_ms", "Percentage (%)",
      "Cumulative Percentage (%)" },
    rows = ranked(groups, count, function(group, row)
      row:add(categories[firsts[group]], groups.count[group], groups[1].sum[group] / 1e3)
    end) }
end

local function unique_columns(by_kernel_count)
  local columns = { "name", "op category", "process_name", "process_label", "thread_name", "Input Dims",
    "Input type", "Input Strides", "Concrete Inputs" }
  if by_kernel_count then columns[#columns + 1] = "num_kernels" end
  columns[#columns + 1] = "operation_count"
  for _, statistic in ipairs(statistics) do
    local word = statistic == "deviation" and "std" or statistic
    columns[#columns + 1] = "total_direct_kernel_time_" .. word
    columns[#columns + 1] = "total_subtree_kernel_time_" .. word
  end
  for _, title in ipairs { "ex_UID", "kernel_details_summary", "trunc_kernel_details", "Percentage (%)",
    "Cumulative Percentage (%)" } do
    columns[#columns + 1] = title
  end
  return columns
end

local function by_arguments(rank, selection, combos, categories, by_kernel_count)
  local map, count, firsts = grouping.by(#combos.name, function(combo)
    return table.concat({ combos.name[combo], categories[combo], rank:track(combos.track[combo]).key,
      combos.arguments[combo], by_kernel_count and combos.kernels[combo] or "" }, "\0")
  end)
  local groups = selection:group(map, count, { { "time" }, { "subtree" } })
  local whole, brief = selection:details(map, count)
  return { name = "ops_unique_args", columns = unique_columns(by_kernel_count),
    rows = ranked(groups, count, function(group, row)
      local combo = firsts[group]
      row:add(combos.name[combo], categories[combo], table.unpack(rank:track(combos.track[combo]), 1, 3))
      row:add(rank:arguments(combos.arguments[combo]))
      if by_kernel_count then row:add(combos.kernels[combo]) end
      row:add(groups.count[group])
      for _, statistic in ipairs(statistics) do
        row:add(grouping.cell(groups[1][statistic][group]), grouping.cell(groups[2][statistic][group]))
      end
      row:add(groups.uid[group], whole[group], brief[group])
    end) }
end

return {
  -- options.by_kernel_count: ops with different numbers of kernels have separate rows in ops_unique_args, and
  -- a column for that number.
  make = function(rank, options)
    local selection, combos = rank:select("launchers")
    local categories = {}
    for combo = 1, #combos.name do categories[combo] = rank:category(combos, combo) end
    return { by_name(selection, combos, categories), by_category(selection, combos, categories),
      by_arguments(rank, selection, combos, categories, options.by_kernel_count) }
  end,
}
