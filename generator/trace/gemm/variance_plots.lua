-- Pictures of the longest minus the shortest kernel time of GEMMs, over threads, channels and ranks, from the
-- CSV that trace variance writes. Runs outside of a sweep have no threads and channels: their pictures are
-- those over ranks.
--
--   variance_plots.draw({ { threads = 256, channel = 28, rank = 0, time_diff_us = 3.5 }... }, "plots")
local boxes = require "pages.boxes"
local csv = require "codec.csv"
local distributions = require "pages.distributions"
local fail = require "base.fail"
local file = require "core.file"
local ordering = require "base.ordering"
local gnuplot = require "pages.gnuplot"
local quantities = require "base.quantities"
local sequences = require "base.sequences"
local template = require "codec.template"
local workers = require "system.workers"

local variance_plots = {}

local TITLE = "Longest − shortest kernel time of GEMMs"
local Y_LABEL = "time_diff_us: longest − shortest kernel time (µs)"
local LOG_FROM = 100 -- largest / smallest value from which on the axis is logarithmic
local MOST_NAMED = 12 -- threads, channels or ranks in the subtitle; else the first and the last

-- The keys of rows, and their order; `columns`: their names in files.
local order = { "threads", "channel", "rank" }
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

-- The number in a row; nil if the column may be empty and is.
local function number_in(table_of, i, column, path, may_be_empty)
  local text = table_of.rows[i][column]
  if may_be_empty and text == "" then return nil end
  local value = tonumber(text)
  if not value or value ~= value or math.abs(value) == math.huge then
    fail.input("%s:%d: %s is %q; a number is required", path, table_of.line[i], column, text)
  end
  return math.tointeger(value) or value
end

-- The rows of these CSVs, each { threads, channel, rank, time_diff_us }, of which the first three may be nil;
-- raises for invalid rows.
function variance_plots.read(paths)
  local rows = {}
  for _, path in ipairs(paths) do
    local table_of = fail.unless(csv.read(path))
    local columns = { time_diff_us = find_column(table_of, { "time_diff_us" }, path) }
    for name, factor in pairs(factors) do columns[name] = find_column(table_of, factor.columns, path) end
    for i = 1, #table_of.rows do
      local row = {}
      for name, column in pairs(columns) do
        row[name] = number_in(table_of, i, column, path, factors[name] ~= nil)
      end
      rows[#rows + 1] = row
    end
  end
  if #rows == 0 then
    fail.input("%s: has no row to draw", table.concat(paths, ", "))
  end
  return rows
end

-- ---- the pictures -----------------------------------------------------------------------------

-- The rows with a value of all these factors.
local function rows_with(rows, names)
  return sequences.filter(rows, function(row)
    return sequences.all(names, function(name) return row[name] ~= nil end)
  end)
end

-- The factors that any row has.
local function factors_of(rows)
  return sequences.filter(order, function(name) return #rows_with(rows, { name }) > 0 end)
end

-- The values of a factor, ascending, and the times of each.
local function groups_of(rows, name)
  local lists, names, values = ordering.groups(rows, function(row) return row[name] end), {}, {}
  table.sort(lists, ordering.by("key"))
  for i, list in ipairs(lists) do
    names[i], values[i] = tostring(list.key), list.key
    for k, row in ipairs(list) do list[k] = row.time_diff_us end
  end
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
  for _, name in ipairs(factors_of(rows)) do
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
  return boxes.model(subtitle(rows), { title = TITLE .. " by " .. factors[name].words,
    panels = { panel_of(rows, name, "box") }, y_label = Y_LABEL, is_log = wants_log(rows),
    notes = { box_note } })
end

local function violins(rows)
  local panels = sequences.map(factors_of(rows), function(name) return panel_of(rows, name, "violin") end)
  return boxes.model(subtitle(rows), { title = TITLE .. ", distributions", panels = panels,
    y_label = Y_LABEL, is_log = wants_log(rows), notes = { violin_note } })
end

-- Lines are drawn side by side, so that their bars do not cover each other.
local function interaction(rows)
  local _, channel_names, channels = groups_of(rows, "channel")
  local by_threads = ordering.groups(rows, function(row) return row.threads end)
  table.sort(by_threads, ordering.by("key"))
  local index_of, lines, legend = sequences.indices(channels), {}, {}
  for i, of_these in ipairs(by_threads) do
    local line = { colour = line_colours[(i - 1) % #line_colours + 1], points = {}, dash = "line",
      point = line_points[(i - 1) % #line_points + 1], text = quantities.counted(of_these.key, "thread") }
    local groups, _, values = groups_of(of_these, "channel")
    for g, list in ipairs(groups) do
      local box = distributions.box(list)
      local x = index_of[values[g]] + 0.06 * (i - (#by_threads + 1) / 2)
      line.points[g] = { x, box.median, box.q1, box.q3 }
    end
    lines[i], legend[i] = line, line
  end
  return boxes.model(subtitle(rows), { title = TITLE .. ", threads × channels",
    panels = { { label = factors.channel.label, names = channel_names, lines = lines } }, y_label = Y_LABEL,
    is_log = wants_log(rows), legend = legend, notes = { line_note } })
end

-- The five pictures: file name, the factors that its rows need, and function(rows) -> model. Other programs
-- know these file names.
variance_plots.list = {
  { name = "variance_violin_combined", factors = {}, model = violins },
  { name = "variance_by_threads_boxplot", factors = { "threads" },
    model = function(rows) return boxplot(rows, "threads") end },
  { name = "variance_by_channels_boxplot", factors = { "channel" },
    model = function(rows) return boxplot(rows, "channel") end },
  { name = "variance_by_ranks_boxplot", factors = { "rank" },
    model = function(rows) return boxplot(rows, "rank") end },
  { name = "variance_thread_channel_interaction", factors = { "threads", "channel" }, model = interaction },
}

-- The pictures that these rows have, and a note for each factor that rows lack.
local function possible(rows)
  local pictures, notes = {}, {}
  for _, name in ipairs(order) do
    local count, label = #rows - #rows_with(rows, { name }), factors[name].label
    if count == #rows then
      notes[#notes + 1] = ("no row has %s: pictures over %s are not drawn"):format(label, label)
    elseif count > 0 then
      notes[#notes + 1] = ("%d of %d rows have no %s: pictures over %s leave them out"):format(count, #rows,
        label, label)
    end
  end
  for _, picture in ipairs(variance_plots.list) do
    local has_rows = #rows_with(rows, picture.factors) > 0
    if has_rows and #factors_of(rows) > 0 then pictures[#pictures + 1] = picture end
  end
  return pictures, notes
end

local function draw_one(rows, picture, out)
  local model = picture.model(rows_with(rows, picture.factors))
  model.terminal = gnuplot.png(model.width, model.height)
  local script = template.load(gentables.home .. "/templates/plots/boxes.gp.tmpl")(model)
  fail.unless_done(gnuplot.draw(script, ("%s/%s.png"):format(out, picture.name)))
  return ""
end

-- Draws the pictures of rows, as read returns them, into a folder, which is made. Raises if one cannot be
-- drawn, or if the rows have none. Returns their paths, and notes for the user.
function variance_plots.draw(rows, out)
  local pictures, notes = possible(rows)
  if #pictures == 0 then fail.input("no row has threads, channel or rank: there is nothing to draw over") end
  fail.unless_done(gnuplot.is_here())
  fail.unless_done(gnuplot.has_font())
  fail.unless_done(file.make_folder(out))
  local paths = {}
  local results = workers.map(pictures, function(picture) return draw_one(rows, picture, out) end)
  for i, result in ipairs(results) do
    if not result.ok then fail.with(result.code, "%s", result.value) end
    paths[i] = ("%s/%s.png"):format(out, pictures[i].name)
  end
  return paths, notes
end

return variance_plots
