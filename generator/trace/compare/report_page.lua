-- The page of a comparison: the time line and the ops of reports side by side; of sweeps also the variance of
-- their GEMMs, and the five pictures. Only shows: differences.lua and trace pipeline have the numbers.
local differences = require "trace.compare.differences"
local configurations = require "trace.runs.configurations"
local csv = require "codec.csv"
local file = require "core.file"
local ordering = require "base.ordering"
local page = require "pages.page"
local quantities = require "base.quantities"
local sequences = require "base.sequences"
local side_by_side = require "pages.side_by_side"
local statistics = require "base.statistics"

local report_page = {}

-- The pictures of trace plots, with their titles.
local pictures = {
  { name = "variance_by_threads_boxplot", title = "Variance by thread count" },
  { name = "variance_by_channels_boxplot", title = "Variance by channel count" },
  { name = "variance_by_ranks_boxplot", title = "Variance by rank" },
  { name = "variance_violin_combined", title = "Distributions of the variance" },
  { name = "variance_thread_channel_interaction", title = "Interaction of threads and channels" },
}

local time_rows = { "computation_time", "exposed_comm_time", "exposed_memcpy_time", "busy_time", "idle_time",
  "total_time", "total_comm_time" }

-- ---- tables ------------------------------------------------------------------------------------

local NOISE = 0.01 -- a smaller change is neither better nor worse

-- The cells of one row: each value, then the difference of each from the base, and percent.
local function comparison_row(head, values, count)
  local base = values[1]
  return side_by_side.row(head, count, function(i) return values[i] or nil end, function(i)
    return base and values[i] and values[i] - base or nil, side_by_side.change(base, values[i], NOISE)
  end)
end

local function comparison_columns(heads, labels)
  return side_by_side.row(heads, #labels, function(i) return { title = labels[i], format = "%.3f" } end,
    function(i)
      return { title = labels[i] .. " − " .. labels[1], format = "%+.3f" }, labels[i] .. " (%)"
    end)
end

-- The rows in which at least one report has a value.
local function add_table(to, heads, labels, rows)
  local kept = {}
  for _, row in ipairs(rows) do
    local has_value = false
    for i = #heads + 1, #heads + #labels do has_value = has_value or row[i] ~= nil end
    if has_value then kept[#kept + 1] = row end
  end
  if #kept == 0 then return to:missing("numbers: none of the reports has them") end
  return to:table { columns = comparison_columns(heads, labels), rows = kept }
end

-- ---- reports -----------------------------------------------------------------------------------

-- One number of each report.
local function row_of(reports, sheet, name, column)
  local values = sequences.map(reports, function(report)
    return differences.number(report, sheet, name, column) or false
  end)
  return comparison_row({ name }, values, #reports)
end

local function time_line_rows(reports)
  return sequences.map(time_rows, function(name) return row_of(reports, "gpu_timeline", name, "time ms") end)
end

local function category_rows(reports)
  local names = {}
  for _, report in ipairs(reports) do
    local sheet = report.sheets.ops_summary_by_category
    for _, row in ipairs(sheet and sheet.rows or {}) do ordering.add_new(names, { row["op category"] }) end
  end
  return sequences.map(names, function(name)
    return row_of(reports, "ops_summary_by_category", name, "total_direct_kernel_time_ms")
  end)
end

-- The answer: the whole time of each report against the first.
local function lead_of(reports)
  local function total(report) return differences.number(report, "gpu_timeline", "total_time", "time ms") end
  local base, out = total(reports[1]), {}
  for i = 2, #reports do
    local time = total(reports[i])
    if base and time and base > 0 then
      out[#out + 1] = ("%s: %.3f ms in all, %+.1f %% against %s (%.3f ms)."):format(reports[i].label, time,
        100 * (time / base - 1), reports[1].label, base)
    end
  end
  out[#out + 1] = ("Against %s; a positive difference is more time."):format(reports[1].label)
  return table.concat(out, "\n")
end

local MOST_CHANGES, MOST_TEXT = 20, 80

-- A cell of a text: a long one is cut, and whole in its tooltip.
local function brief(value)
  if type(value) ~= "string" or utf8.len(value) == nil or utf8.len(value) <= MOST_TEXT then return value end
  return { text = value:sub(1, utf8.offset(value, MOST_TEXT) - 1) .. "…", title = value }
end

-- The changes with the largest differences of time of a sheet of tree_diff.lua.
local function add_changes(to, sheet)
  local formats, columns, rows = { [6] = "%.1f", [7] = "%.1f", [8] = "%+.1f", [9] = "%+.1f" }, {}, {}
  for i, title in ipairs(sheet.columns) do columns[i] = { title = title, format = formats[i] } end
  for i = 1, math.min(#sheet.rows, MOST_CHANGES) do
    rows[i] = {}
    for k = 1, #sheet.columns do rows[i][k] = brief(sheet.rows[i][k]) end
  end
  to:section("What changed in the tree of ops", { note = ("%d of %d changes at the lowest common ancestor, by"
    .. " their time; all are in the sheet %s"):format(#rows, #sheet.rows, sheet.name) })
  to:table { columns = columns, rows = rows }
end

-- The page of reports (as differences.lua takes them) and of the sheets of tree_diff.lua.
function report_page.of_reports(reports, changes)
  local labels = sequences.field(reports, "label")
  local out = page.new("Comparison of reports: " .. table.concat(labels, ", "), { lead = lead_of(reports) })
  out:section("GPU time line", { note = "ms" })
  add_table(out, { "time" }, labels, time_line_rows(reports))
  out:section("Kernel time by category of op", { note = "ms" })
  add_table(out, { "category" }, labels, category_rows(reports))
  for _, sheet in ipairs(changes) do add_changes(out, sheet) end
  return out
end

-- ---- sweeps ------------------------------------------------------------------------------------

-- The mean over ranks of a row of the time line: { [configuration] = { [row] = ms } }, and their order.
local function times_of(sweep)
  local out = {}
  for _, entry in ipairs(sweep.reports) do
    local key = configurations.key(entry)
    out[key] = out[key] or { ranks = 0 }
    local found, mine = csv.read(entry.path .. "/gpu_timeline.csv"), out[key]
    if found then
      mine.ranks = mine.ranks + 1
      for _, row in ipairs(found.rows) do
        mine[row.type] = (mine[row.type] or 0) + (tonumber(row["time ms"]) or 0)
      end
    end
  end
  return out
end

-- The configurations of any sweep, in order.
local function configurations_of(sweeps)
  return configurations.of(sequences.field(sweeps, "reports"))
end

-- The answer: the whole time of each sweep against the first, over the configurations of both. `times`: of
-- times_of.
local function lead_of_sweeps(times, labels)
  local out = {}
  for i = 2, #times do
    local log_sum, count = 0, 0
    for _, key in ipairs(ordering.sorted_keys(times[1])) do
      local base, mine = times[1][key], times[i][key]
      if mine and (base.total_time or 0) > 0 and (mine.total_time or 0) > 0 then
        log_sum = log_sum + math.log((mine.total_time / mine.ranks) / (base.total_time / base.ranks))
        count = count + 1
      end
    end
    if count > 0 then
      out[#out + 1] = ("%s: %+.1f %% of time against %s (geometric mean over %s)."):format(labels[i],
        100 * (math.exp(log_sum / count) - 1), labels[1], quantities.counted(count, "configuration"))
    end
  end
  out[#out + 1] = ("Against %s; a positive difference is more time."):format(labels[1])
  return table.concat(out, "\n")
end

local function add_time_lines(out, sweeps, labels, times)
  out:section("GPU time line by configuration", { note = "ms, mean over the ranks of each sweep" })
  local rows = {}
  for _, one in ipairs(configurations_of(sweeps)) do
    for _, name in ipairs(time_rows) do
      local values = {}
      for i = 1, #sweeps do
        local mine = times[i][one.key]
        values[i] = mine and mine[name] and mine[name] / mine.ranks or false
      end
      rows[#rows + 1] = comparison_row({ one.threads, one.channels, name }, values, #sweeps)
    end
  end
  add_table(out, { "threads", "channels", "time" }, labels, rows)
end

-- The variance of each configuration: { [configuration] = list of time_diff_us }; nil: there is no such CSV.
local function variances_of(sweep)
  for _, name in ipairs(file.list(sweep.analysis) or {}) do
    if name:find("^top%d+_gemm_kernels_time_variance%.csv$") then
      local found, out = csv.read(sweep.analysis .. "/" .. name), {}
      for _, row in ipairs(found and found.rows or {}) do
        local key = configurations.key { threads = row.threads, channels = row.channel }
        table.insert(sequences.at(out, key), tonumber(row.time_diff_us))
      end
      return out
    end
  end
end

local measures = {
  { "mean", function(list) return statistics.summarise(list).mean end },
  { "median", function(list) return statistics.summarise(list).median end },
  { "max", function(list) return statistics.summarise(list).max end },
}

local function add_variances(out, sweeps, labels)
  out:section("Variance of GEMMs", { note = "time_diff_us: longest − shortest kernel time of a GEMM, µs" })
  local variances, rows = {}, {}
  for i, sweep in ipairs(sweeps) do
    variances[i] = variances_of(sweep) or {}
    if not next(variances[i]) then out:missing(labels[i] .. ": top{k}_gemm_kernels_time_variance.csv") end
  end
  for _, one in ipairs(configurations_of(sweeps)) do
    for _, measure in ipairs(measures) do
      local values = {}
      for i = 1, #sweeps do
        local list = variances[i][one.key]
        values[i] = list and #list > 0 and measure[2](list) or false
      end
      rows[#rows + 1] = comparison_row({ one.threads, one.channels, measure[1] }, values, #sweeps)
    end
  end
  add_table(out, { "threads", "channels", "time_diff_us" }, labels, rows)
end

local function add_pictures(out, sweeps, labels)
  for _, picture in ipairs(pictures) do
    out:section(picture.title)
    out:figures(sequences.map(sweeps, function(sweep, i)
      local path = ("plots/%s.png"):format(picture.name)
      local png = file.read(sweep.analysis .. "/" .. path)
      local alt = picture.title .. " of " .. labels[i]
      return { title = labels[i], alt = alt, png = png, missing = not png and path or nil }
    end))
  end
end

-- Adds the reports that one of the sweeps lacks.
local function add_missing(out, sweeps, labels)
  local has, all = {}, {}
  for i, sweep in ipairs(sweeps) do
    has[i] = {}
    for _, entry in ipairs(sweep.reports) do
      local name = ("%d threads, %d channels, rank %d"):format(entry.threads, entry.channels, entry.rank)
      if not all[name] then all[#all + 1] = name end
      all[name], has[i][name] = true, true
    end
  end
  for i = 1, #sweeps do
    local absent = sequences.filter(all, function(name) return not has[i][name] end)
    if #absent > 0 then
      out:missing(("%s: %d reports: %s"):format(labels[i], #absent, table.concat(absent, "; ", 1,
        math.min(#absent, 8)) .. (#absent > 8 and "; ..." or "")))
    end
  end
end

-- The page of sweeps (of sources.lua) under these labels. `before`, if given, adds the first part of the
-- page.
function report_page.of_sweeps(sweeps, labels, before)
  local times = sequences.map(sweeps, times_of)
  local out = page.new("Comparison of sweeps: " .. table.concat(labels, ", "),
    { lead = lead_of_sweeps(times, labels) })
  if before then before(out) end
  add_missing(out, sweeps, labels)
  add_pictures(out, sweeps, labels)
  add_variances(out, sweeps, labels)
  add_time_lines(out, sweeps, labels, times)
  return out
end

return report_page
