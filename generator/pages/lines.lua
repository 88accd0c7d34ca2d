-- Lines over logarithmic axes: panels of series with points, bands and plain lines, laid out for
-- templates/plots/lines.gp.tmpl. Each kind of picture (plots/time_vs_size.lua ...) supplies their meaning.
--
--   lines.model(slice, { title =, x = axis, y = axis, legend =, notes =, panels = {
--     { title =, series = { { colour =, hatched =, point =, band =, plain =, text_points =,
--       points = { { x, y, low, high, text = }... } }... } }... } })
--
-- An axis is { label =, ticks = function(low, high, most) -> { { value, text }... }, values = { ... } }:
-- with `values` these alone are ticks. A series that is `plain` is a line without points; `hatched` ones
-- are dashed.
local frames = require "pages.frames"
local geometry = require "pages.geometry"
local sequences = require "base.sequences"

local lines = {}

local PANEL = { width = 7.2, height = 4.1 }
local SMALL_PANEL = { width = 3.1, height = 2.3 }
local MARGIN = 1.15 -- around the values, as a factor

-- Shapes of points, in turn; filled, so that a colour is seen.
local points = { 7, 5, 9, 11, 13, 6, 4, 8, 10, 12 }

-- The shape of the i-th strategy of a picture.
function lines.point(i) return points[(i - 1) % #points + 1] end

local function range_of(panels, first, more)
  local low, high = math.huge, 0
  for _, panel in ipairs(panels) do
    for _, series in ipairs(panel.series) do
      for _, point in ipairs(series.points) do
        for _, index in ipairs { first, more[1], more[2] } do
          if point[index] then low, high = math.min(low, point[index]), math.max(high, point[index]) end
        end
      end
    end
  end
  return low / MARGIN, high * MARGIN
end

local function ticks_of(axis, low, high, room, needed)
  if axis.values then
    return sequences.map(axis.values, function(value) return { value = value, text = tostring(value) } end)
  end
  return axis.ticks(low, high, math.max(2, math.floor(room / needed)))
end

local function legend_of(spec)
  return sequences.map(spec.legend, function(entry)
    local dash = entry.plain and "plain" or entry.hatched and "dashed" or "line"
    return { text = entry.text, colour = entry.colour, point = entry.point, box = entry.box,
      dash = not entry.box and dash or nil }
  end)
end

function lines.model(slice, spec)
  local size = #spec.panels == 1 and PANEL or SMALL_PANEL
  local columns = geometry.columns(#spec.panels, size.width, size.height)
  local rows = math.ceil(#spec.panels / columns)
  local left, between, right = 0.95, 0.25, 0.25
  local title, below, foot = geometry.height_of(geometry.font.panel) + 0.08, 0.08, 0.55
  local frame = frames.new(slice, spec.title, 2 * frames.edge + left + columns * size.width +
    (columns - 1) * between + right, legend_of(spec), spec.notes)
  local model = frame:close(rows * (size.height + title + below) + foot)
  model.template, model.panels = "lines", {}
  for i, panel in ipairs(spec.panels) do
    local column, row = (i - 1) % columns, (i - 1) // columns
    local x = frames.edge + left + column * (size.width + between)
    local top = model.top - title - row * (size.height + title + below)
    local name = panel.title and geometry.shorten(panel.title, geometry.font.panel, size.width)
    model.panels[i] = { title = name,
      series = panel.series, left = x, right = x + size.width, top = top, bottom = top - size.height,
      has_x_ticks = i + columns > #spec.panels, has_y_ticks = column == 0 }
  end
  model.x_low, model.x_high = range_of(spec.panels, 1, {})
  model.y_low, model.y_high = range_of(spec.panels, 2, { 3, 4 })
  model.x_ticks = ticks_of(spec.x, model.x_low, model.x_high, size.width, 0.62)
  model.y_ticks = ticks_of(spec.y, model.y_low, model.y_high, size.height, 0.25)
  model.x_label, model.y_label = spec.x.label, spec.y.label
  return model
end

return lines
