-- Distributions beside each other: panels of boxes or violins over categories, and lines with bars, laid
-- out for templates/plots/boxes.gp.tmpl.
--
--   boxes.model({ subtitle = }, { title =, y_label =, is_log =, legend =, notes =, panels = {
--     { label =, names = { categories }, groups = { { values }... }, shape = "box" or "violin" },
--     { label =, names =, lines = {
--       { colour =, point =, points = { { category, y, low, high }... } }... } } } })
local distributions = require "pages.distributions"
local frames = require "pages.frames"
local geometry = require "pages.geometry"

local boxes = {}

local CATEGORY, NARROWEST, NARROWEST_OF_SEVERAL, WIDEST, HEIGHT = 0.62, 4.9, 2.6, 14, 4.0
local DENSITY_POINTS, VIOLIN_HALF_WIDTH, BOX_HALF_WIDTH, THIN_BOX_HALF_WIDTH = 80, 0.42, 0.28, 0.05

-- The closed outline of a violin around x, widest at the highest density; nil if all values are the same.
local function outline(values, x, is_log)
  local list = {}
  for i, value in ipairs(values) do list[i] = is_log and math.log(value) or value end
  local density = distributions.density(list, DENSITY_POINTS)
  if not density then return nil end
  local most, out = 0, {}
  for _, point in ipairs(density) do most = math.max(most, point[2]) end
  local function add(point, side)
    local y = is_log and math.exp(point[1]) or point[1]
    out[#out + 1] = { x + side * VIOLIN_HALF_WIDTH * point[2] / most, y }
  end
  for i = 1, #density do add(density[i], 1) end
  for i = #density, 1, -1 do add(density[i], -1) end
  out[#out + 1] = out[1]
  return out
end

-- The shapes of one category for the template.
local function shapes_of(panel, out, values, x, is_log)
  local box = distributions.box(values)
  local half = panel.shape == "violin" and THIN_BOX_HALF_WIDTH or BOX_HALF_WIDTH
  if panel.shape == "violin" then
    local line = outline(values, x, is_log)
    if line then
      table.insert(out.outlines, line)
      table.insert(out.points, { x, box.median })
    else
      half = VIOLIN_HALF_WIDTH / 2 -- a line, because all values are the same
    end
  end
  table.insert(out.boxes, { x, box.median, x - half, x + half, box.q1, box.q3 })
  table.insert(out.medians, { x - half, box.median, 2 * half, 0 })
  table.insert(out.whiskers, { x, box.q1, 0, box.low - box.q1 })
  table.insert(out.whiskers, { x, box.q3, 0, box.high - box.q3 })
  if panel.shape == "box" then
    for _, value in ipairs(box.outliers) do table.insert(out.points, { x, value }) end
  end
end

local function content_of(panel, is_log)
  local out = { outlines = {}, boxes = {}, medians = {}, whiskers = {}, points = {},
    lines = panel.lines or {}, shape = panel.shape }
  for x, values in ipairs(panel.groups or {}) do
    if #values > 0 then shapes_of(panel, out, values, x, is_log) end
  end
  return out
end

local function range_of(panels, is_log)
  local low, high = math.huge, -math.huge
  local function take(value) low, high = math.min(low, value), math.max(high, value) end
  for _, panel in ipairs(panels) do
    for _, values in ipairs(panel.groups or {}) do
      for _, value in ipairs(values) do take(value) end
    end
    for _, line in ipairs(panel.lines or {}) do
      for _, point in ipairs(line.points) do
        take(point[3])
        take(point[4])
      end
    end
  end
  if is_log then return low / 1.2, high * 1.2 end
  if high == low then
    local margin = math.max(1, math.abs(low)) * 0.1
    return low - margin, low + margin
  end
  local margin = 0.06 * (high - low)
  return (low >= 0 and low - margin < 0.25 * high) and 0 or low - margin, high + margin
end

-- The categories that have room for their names.
local function ticks_of(names, width)
  local longest, ticks = 0, {}
  for _, name in ipairs(names) do
    longest = math.max(longest, geometry.width_of(name, geometry.font.tick) + 0.1)
  end
  local every = math.max(1, math.ceil(longest * #names / width))
  for i = 1, #names, every do ticks[#ticks + 1] = { at = i, text = geometry.legible(names[i]) } end
  return ticks
end

function boxes.model(of, spec)
  local widths, total, gap, left = {}, 0, 0.35, 0.95
  for i, panel in ipairs(spec.panels) do
    widths[i] = math.max(#spec.panels > 1 and NARROWEST_OF_SEVERAL or NARROWEST,
      math.min(WIDEST / #spec.panels, CATEGORY * #panel.names))
    total = total + widths[i] + (i > 1 and gap or 0)
  end
  local frame = frames.new(of, spec.title, 2 * frames.edge + left + total + 0.1, spec.legend, spec.notes)
  local model = frame:close(HEIGHT + 0.15 + 0.6)
  model.template, model.panels, model.is_log = "boxes", {}, spec.is_log
  local x, top = frames.edge + left, model.top - 0.15
  for i, panel in ipairs(spec.panels) do
    local made = content_of(panel, spec.is_log)
    made.left, made.right, made.top, made.bottom = x, x + widths[i], top, top - HEIGHT
    made.label, made.ticks, made.x_high = panel.label, ticks_of(panel.names, widths[i]), #panel.names + 0.6
    made.has_y_ticks = i == 1
    model.panels[i] = made
    x = x + widths[i] + gap
  end
  model.y_low, model.y_high = range_of(spec.panels, spec.is_log)
  model.y_ticks = spec.is_log and geometry.log_ticks(model.y_low, model.y_high, 12) or nil
  model.y_label = spec.y_label
  return model
end

return boxes
