-- Pictures of the variation of GEMMs' kernel time, over threads, channels and ranks, from the CSV that trace
-- variance writes.
--
--   variance_plots.draw({ { threads = 256, channel = 28, rank = 0, time_diff_us = 3.5 }... }, "plots")
local boxes = require "pages.boxes"
local csv = require "codec.csv"
local distributions = require "pages.distributions"
local fail = require "base.fail"
local file = require "core.file"
local gnuplot = require "pages.gnuplot"
local quantities = require "base.quantities"
local template = require "codec.template"
local workers = require "system.workers"

local variance_plots = {}

local Y_LABEL = "time_diff_us: longest − shortest kernel time (µs)"
local LOG_FROM = 100 -- largest / smallest value from which on the axis is logarithmic
local MOST_NAMED = 12 -- threads, channels or ranks in the subtitle; else the first and the last

-- The keys of rows; `columns`: their names in files.
local factors = {
  threads = { columns = { "threads" }, label = "threads", words = "thread count" },
  channel = { columns = { "channel", "channels" }, label = "channels", words = "channel count" },
  rank = { columns = { "rank" }, label = "rank", words = "rank" },
}

local line_colours = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000" }
local line_points = { 7, 5, 9, 11, 13, 6, 4 }

-- ---- reading ----------------------------------------------------------------------------------

local function find_column(table_of, names, path)
  for _, name in ipairs(names) do
    for _, column in ipairs(table_of.columns) do
      if column == name then return column end
    end
  end
  fail.input("%s: has no column %s; give the CSV of trace variance", path, names[1])
end

local function number_in(table_of, i, column, path)
  local text = table_of.rows[i][column]
  local value = tonumber(text)
  if not value or value ~= value or math.abs(value) == math.huge then
    fail.input("%s:%d: %s is %q; a number is required", path, table_of.line[i], column, text)
  end
  return math.tointeger(value) or value
end

-- The rows of these CSVs, each { threads, channel, rank, time_diff_us }; raises for invalid rows.
function variance_plots.read(paths)
  local rows = {}
  for _, path in ipairs(paths) do
    local table_of = fail.unless(csv.read(path))
    local columns = { time_diff_us = find_column(table_of, { "time_diff_us" }, path) }
    for name, factor in pairs(factors) do columns[name] = find_column(table_of, factor.columns, path) end
    for i = 1, #table_of.rows do
      local row = {}
      for name, column in pairs(columns) do row[name] = number_in(table_of, i, column, path) end
      rows[#rows + 1] = row
    end
  end
  if #rows == 0 then
    fail.input("%s: has no row to draw", table.concat(paths, ", "))
  end
  return rows
end

-- ---- the pictures -----------------------------------------------------------------------------

-- The values of a factor, ascending, and the times of each.
local function groups_of(rows, name)
  local values, groups = {}, {}
  for _, row in ipairs(rows) do
    if not groups[row[name]] then
      groups[row[name]] = {}
      values[#values + 1] = row[name]
    end
    table.insert(groups[row[name]], row.time_diff_us)
  end
  table.sort(values)
  local lists, names = {}, {}
  for i, value in ipairs(values) do lists[i], names[i] = groups[value], tostring(value) end
  return lists, names, values
end

local function wants_log(rows)
  local low, high = math.huge, 0
  for _, row in ipairs(rows) do
    low, high = math.min(low, row.time_diff_us), math.max(high, row.time_diff_us)
  end
  return low > 0 and high / low > LOG_FROM
end

local function subtitle(rows)
  local words = { ("%d %s"):format(#rows, #rows == 1 and "row" or "rows") }
  for _, name in ipairs { "threads", "channel", "rank" } do
    local _, names = groups_of(rows, name)
    local shown = #names <= MOST_NAMED and table.concat(names, ", ")
      or ("%s to %s (%d)"):format(names[1], names[#names], #names)
    words[#words + 1] = factors[name].label .. " " .. shown
  end
  return { subtitle = table.concat(words, "; ") }
end

local function panel_of(rows, name, shape)
  local groups, names = groups_of(rows, name)
  return { label = factors[name].label, names = names, groups = groups, shape = shape }
end

local box_note = "Box: quartiles and median. Whiskers: the last values within 1.5 times the quartiles' " ..
  "distance."
local violin_note = "Width: density (Gaussian kernels, Scott's width), cut at the least and the largest " ..
  "value. Within: quartiles, median and whiskers. A line: all values are the same."
local line_note = "Points: medians; bars: quartiles."

local function boxplot(rows, name)
  return boxes.model(subtitle(rows), { title = "GEMM kernel time variance by " .. factors[name].words,
    panels = { panel_of(rows, name, "box") }, y_label = Y_LABEL, is_log = wants_log(rows),
    notes = { box_note } })
end

local function violins(rows)
  local panels = {}
  for i, name in ipairs { "threads", "channel", "rank" } do panels[i] = panel_of(rows, name, "violin") end
  return boxes.model(subtitle(rows), { title = "GEMM kernel time variance, distributions", panels = panels,
    y_label = Y_LABEL, is_log = wants_log(rows), notes = { violin_note } })
end

-- Lines are drawn side by side, so that their bars do not cover each other.
local function interaction(rows)
  local _, channel_names, channels = groups_of(rows, "channel")
  local _, _, threads = groups_of(rows, "threads")
  local index_of, lines, legend = {}, {}, {}
  for i, channel in ipairs(channels) do index_of[channel] = i end
  for i, count in ipairs(threads) do
    local of_these = {}
    for _, row in ipairs(rows) do
      if row.threads == count then of_these[#of_these + 1] = row end
    end
    local line = { colour = line_colours[(i - 1) % #line_colours + 1], points = {}, dash = "line",
      point = line_points[(i - 1) % #line_points + 1], text = quantities.counted(count, "thread") }
    local groups, _, values = groups_of(of_these, "channel")
    for g, list in ipairs(groups) do
      local box = distributions.box(list)
      line.points[g] = { index_of[values[g]] + 0.06 * (i - (#threads + 1) / 2), box.median, box.q1, box.q3 }
    end
    lines[i], legend[i] = line, line
  end
  return boxes.model(subtitle(rows), { title = "GEMM kernel time variance, threads × channels",
    panels = { { label = factors.channel.label, names = channel_names, lines = lines } }, y_label = Y_LABEL,
    is_log = wants_log(rows), legend = legend, notes = { line_note } })
end

-- The five pictures: file name and function(rows) -> model. The documentation uses these file names.
variance_plots.list = {
  { name = "variance_violin_combined", model = violins },
  { name = "variance_by_threads_boxplot", model = function(rows) return boxplot(rows, "threads") end },
  { name = "variance_by_channels_boxplot", model = function(rows) return boxplot(rows, "channel") end },
  { name = "variance_by_ranks_boxplot", model = function(rows) return boxplot(rows, "rank") end },
  { name = "variance_thread_channel_interaction", model = interaction },
}

local function draw_one(rows, picture, out)
  local model = picture.model(rows)
  model.terminal = gnuplot.png(model.width, model.height)
  local script = template.load(gentables.home .. "/templates/plots/boxes.gp.tmpl")(model)
  local drawn, message = gnuplot.draw(script, ("%s/%s.png"):format(out, picture.name))
  if not drawn then fail.work("%s", message) end
  return ""
end

-- Draws the five pictures of rows, as read returns them, into a folder, which is made. Raises if one cannot
-- be drawn. Returns their paths.
function variance_plots.draw(rows, out)
  local ready, message = gnuplot.is_here()
  if ready then ready, message = gnuplot.has_font() end
  if not ready then fail.work("%s", message) end
  local made, problem = file.make_folder(out)
  if not made then fail.work("%s", problem) end
  local paths = {}
  local results = workers.map(variance_plots.list, function(picture) return draw_one(rows, picture, out) end)
  for i, result in ipairs(results) do
    if not result.ok then fail.with(result.code, "%s", result.value) end
    paths[i] = ("%s/%s.png"):format(out, variance_plots.list[i].name)
  end
  return paths
end

return variance_plots
