-- gentables metric plot: a serving metric over max-num-seqs and over max-num-batched-tokens, a line for each
-- implementation, from a folder of runs' folders. It sorts runs into lines and lays the picture out.
-- run_finder.lua finds the runs, result.lua reads them, templates/plots/ draws.
local fail = require "base.fail"
local file = require "core.file"
local gnuplot = require "pages.gnuplot"
local json = require "codec.json"
local ordering = require "base.ordering"
local quantities = require "base.quantities"
local run_finder = require "serving.run_finder"
local result = require "serving.result"
local sequences = require "base.sequences"
local template = require "codec.template"

local series_plot = {}

-- The panels: `varies` over the runs, where `fixed` is `at`.
local panels = {
  { varies = "max-num-seqs", fixed = "max-num-batched-tokens", at = 8192 },
  { varies = "max-num-batched-tokens", fixed = "max-num-seqs", at = 32 },
}

-- The implementations with the same colours in every picture; then the colours of all others in turn.
local fixed_styles = {
  Baseline = { colour = "#0072b2", point = 7 },
  DefaultAll2All = { colour = "#d55e00", point = 5 },
}
local other_colours = { "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000" }
local other_points = { 9, 13, 11, 6, 4, 8, 12 }

local output_names = { output_throughput = "throughput" } -- others: the metric's name

-- ---- from runs to lines -----------------------------------------------------------------------

local function is_shown(run)
  return sequences.any(panels, function(panel) return run[panel.fixed] == panel.at end)
end

-- The runs that a panel shows, each with its value. Prints the runs at other settings on stderr.
local function read_values(runs, row)
  local shown, others = {}, {}
  for _, run in ipairs(runs) do
    if is_shown(run) then
      run.value = result.read(run.dir, row).mean
      shown[#shown + 1] = run
    else
      others[#others + 1] = run.dir:match("[^/]*$")
    end
  end
  if #others > 0 and #shown > 0 then run_finder.print_left_out("at settings of no panel", others) end
  run_finder.name_lines(shown)
  return shown
end

-- The lines: Baseline and DefaultAll2All first, then by name.
local function lines_of(runs)
  local lines = ordering.groups(runs, function(run) return run.line end)
  for _, line in ipairs(lines) do line.label, line.turn = line.key, fixed_styles[line.key] and 1 or 2 end
  table.sort(lines, ordering.by("turn", "label"))
  local others = 0
  for _, line in ipairs(lines) do
    local style = fixed_styles[line.label] or { colour = other_colours[others % #other_colours + 1],
      point = other_points[others % #other_points + 1] }
    if not fixed_styles[line.label] then others = others + 1 end
    line.colour, line.point = style.colour, style.point
  end
  return lines
end

local function check_twice(points)
  for i = 2, #points do
    local one, other = points[i - 1], points[i]
    if one.x == other.x then
      fail.work("%s and %s: both are %s at max-num-seqs %d and max-num-batched-tokens %d; give one of them",
        one.run.dir, other.run.dir, one.run.line, one.run["max-num-seqs"],
        one.run["max-num-batched-tokens"])
    end
  end
end

-- The points of one line in one panel, over the setting that varies.
local function points_of(line, panel)
  local points = {}
  for _, run in ipairs(line) do
    if run[panel.fixed] == panel.at then
      points[#points + 1] = { x = run[panel.varies], y = run.value, run = run, dir = run.dir }
    end
  end
  table.sort(points, ordering.by("x", "dir"))
  check_twice(points)
  return points
end

-- ---- the picture ------------------------------------------------------------------------------

-- Inches.
local size = { width = 12, panel_height = 3.6, head = 0.85, foot = 0.7, left = 1.05, long_ticks = 0.35,
  right = 0.25, value_label = 0.15, box = 0.28, -- above the panel
  legend_line = 0.22, legend_sample = 0.36, legend_text = 0.5, legend_gap = 0.35, legend_edge = 0.1,
  letter = 0.076 }
local LONGEST_LABEL = 110 -- letters in one line of the legend

-- A name as the picture can show it: in one line of limited length.
local function legible(text)
  text = text:gsub("%c", "?")
  if not utf8.len(text) then text = text:gsub("[\128-\255]", "?") end
  if utf8.len(text) <= LONGEST_LABEL then return text end
  return text:sub(1, utf8.offset(text, LONGEST_LABEL) - 1) .. "…"
end

-- The range of the values, for both panels: from 0, unless they differ by little.
local function value_range(model)
  local points = sequences.join(sequences.join(sequences.field(model.panels, "points")))
  local values = sequences.field(points, "y")
  local low, high = math.min(table.unpack(values)), math.max(table.unpack(values))
  local margin = 0.08 * (high - low)
  if margin == 0 then margin = high == 0 and 1 or 0.08 * math.abs(high) end
  local bottom = low - margin
  if low >= 0 and low <= high / 2 then bottom = 0 end
  return bottom, high + margin
end

local function panel_of(lines, row, panel)
  local lists = sequences.map(lines, function(line) return points_of(line, panel) end)
  local values = ordering.sorted_keys(sequences.set(sequences.field(sequences.join(lists), "x")))
  return {
    points = lists, values = values, axis = panel.varies, at = panel.at,
    title = ("%s vs. %s"):format(row.label, panel.varies),
    fixed = ("%s = %d"):format(panel.fixed, panel.at),
    nothing = ("no run has %s %d"):format(panel.fixed, panel.at),
    low = (values[1] or 1) / 1.3, high = (values[#values] or 2) * 1.3,
  }
end

-- Places the legend below the panels, in as many columns as fit: x and y of each line, in inches from the
-- lower left. Returns its height.
local function place_legend(lines)
  local longest = 1
  for _, line in ipairs(lines) do longest = math.max(longest, utf8.len(line.legend)) end
  local column = size.legend_text + longest * size.letter + size.legend_gap
  local columns = math.max(1, math.min(#lines, math.floor(size.width / column)))
  local first = math.max(size.legend_edge, (size.width - columns * column + size.legend_gap) / 2)
  local rows = math.ceil(#lines / columns)
  for i, line in ipairs(lines) do
    line.x = first + (i - 1) % columns * column
    line.y = (rows - (i - 1) // columns) * size.legend_line
  end
  return rows * size.legend_line + size.legend_edge
end

-- Whether gnuplot writes such values with an exponent.
local function has_long_ticks(value) return math.abs(value) >= 1e8 or math.abs(value) < 1e-4 end

-- Sets the positions that the template uses, as shares of the picture.
local function lay_out(model)
  local width = size.width / #model.panels
  local left = size.left + (has_long_ticks(model.high) and size.long_ticks or 0)
  for i, panel in ipairs(model.panels) do
    local start = (i - 1) * width
    panel.label = (start + size.value_label) / size.width
    panel.left, panel.right = (start + left) / size.width, (start + width - size.right) / size.width
  end
  local foot = size.foot + place_legend(model.all_series)
  local height = size.head + size.panel_height + foot
  model.bottom, model.top = foot / height, (foot + size.panel_height) / height
  model.box = (foot + size.panel_height + size.box) / height
  for _, line in ipairs(model.all_series) do
    line.left, line.right = line.x / size.width, (line.x + size.legend_sample) / size.width
    line.text, line.level = (line.x + size.legend_text) / size.width, line.y / height
  end
  model.terminal = gnuplot.png(size.width, height)
end

local better_in_words = { less = ", less is better", more = ", more is better" }

-- The model for the template.
local function model_of(row, runs)
  local lines = lines_of(runs)
  local model = { all_series = lines,
    panels = sequences.map(panels, function(panel) return panel_of(lines, row, panel) end),
    value_label = ("%s (%s)%s"):format(row.label, row.unit, better_in_words[row.better] or "") }
  for _, line in ipairs(lines) do line.legend = legible(line.label) end
  model.low, model.high = value_range(model)
  lay_out(model)
  return model
end

-- ---- the verb ---------------------------------------------------------------------------------

local function output_name(row) return (output_names[row.name] or row.name:lower()) .. "_vs_config.png" end

-- The settings of the found runs, for the message that none is shown.
local function settings_in_words(runs)
  local words = {}
  for _, run in ipairs(runs) do
    ordering.add_new(words, { ("%d/%d"):format(run["max-num-seqs"], run["max-num-batched-tokens"]) })
  end
  return table.concat(words, ", ", 1, math.min(#words, 8))
end

local function check_data(traces, runs, shown)
  if #runs == 0 then
    fail.work("%s: no folder of a serving run in it; names like NAME[baseline_32_8192], or cards with " ..
      "max-num-seqs and max-num-batched-tokens beside results_json, are required", traces)
  end
  if #shown == 0 then
    local left, right = panels[1], panels[2]
    fail.work("%s: none of its %d runs has %s %d or %s %d; they have %s (%s/%s)", traces, #runs, left.fixed,
      left.at, right.fixed, right.at, settings_in_words(runs), left.varies, right.varies)
  end
end

local function print_json(row, path, model)
  local out = { metric = row.name, unit = row.unit, picture = path, panels = json.array {} }
  for i, panel in ipairs(model.panels) do
    local series = json.array {}
    for s, points in ipairs(panel.points) do
      local list = json.array {}
      for p, point in ipairs(points) do
        list[p] = { [panels[i].varies] = point.x, value = point.y, folder = point.run.dir }
      end
      series[s] = { label = model.all_series[s].label, points = list }
    end
    out.panels[i] = { fixed = { [panels[i].fixed] = panel.at }, series = series }
  end
  io.stdout:write(json.encode(out), "\n")
end

local function check_use(row)
  if row.module ~= "metric.serving" then
    fail.input("%s has no plot over configurations; the serving metrics of metric --list have one", row.name)
  end
end

local function draw(model, folder, path)
  fail.unless_done(file.make_folder(folder))
  local script = template.load(gentables.home .. "/templates/plots/vs_config.gp.tmpl")(model)
  fail.unless_done(gnuplot.draw(script, path))
end

local function without_slash(path) return (path:gsub("(.)/+$", "%1")) end

function series_plot.run(args, row)
  check_use(row)
  local traces, folder = without_slash(args.traces), without_slash(args.out)
  local runs = run_finder.find(traces)
  local shown = read_values(runs, row)
  check_data(traces, runs, shown)
  local model = model_of(row, shown)
  local path = folder .. "/" .. output_name(row)
  draw(model, folder, path)
  if args.json then return print_json(row, path, model) end
  io.stdout:write(("%s: %s of %s\n"):format(path, quantities.counted(#shown, "run"),
    quantities.counted(#model.all_series, "implementation")))
end

return series_plot
