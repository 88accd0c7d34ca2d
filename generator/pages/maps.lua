-- Maps over tokens x hidden sizes: panels of coloured cells, laid out for templates/plots/maps.gp.tmpl. Each
-- kind of picture (plots/heatmap.lua ...) supplies the meaning of the colours.
--
--   maps.model(slice, { title =, bar =, legend =, notes =, text_is =, text_note =, missing_is =,
--     scale = "log", borders =, border_width =, lines =, names =, panels = { { title =, bar =,
--       cell = function(h, t) -> { colour =, text =, hatched = }, or nil: missing }... } })
--
-- A bar is { label =, scale = a scale of colours, low =, high =, log =, ticks = { { value, text }... } };
-- with `bar` all panels share one. `scale = "log"` places cells by value, not in rows of equal cells;
-- `borders`, `lines` and `names` then lie over them, in the same coordinates: see maps.axis.
local colours = require "pages.colours"
local frames = require "pages.frames"
local geometry = require "pages.geometry"
local sequences = require "base.sequences"

local maps = {}

maps.log_panel = { width = 8.5, height = 4.6 } -- of a map with scale = "log", in inches

local LARGEST_CELL, USUAL_CELL, WIDEST_PANEL, HIGHEST_PANEL = 0.56, 0.40, 12, 7
local NARROWEST_PANEL, LOWEST_PANEL = 2.3, 0.9
local MANY = { panels = 12, cell = 0.2 } -- more panels have cells of this size at most
local ROOMY = { cell = 0.6, width = 5.2, height = 1.4 } -- where a picture has a single panel
local BAR_WIDTH, BAR_GAP, BAR_LABELS, LOWEST_BAR = 0.16, 0.18, 0.75, 1.6
local HATCH = 0.14 -- between the lines of a hatch
local GAP, OVERLAP = 0.03, -0.004 -- of a cell, on each side

-- ---- cells ------------------------------------------------------------------------------------

-- The positions of an axis's values, and the edges between them: 1, 2 ... or log2 of the value.
function maps.axis(values, scale)
  local at = sequences.map(values, function(value, i) return scale == "log" and math.log(value, 2) or i end)
  local edges = {}
  for i = 1, #at + 1 do
    local before = at[i - 1] or at[i] - (at[i + 1] and at[i + 1] - at[i] or 1)
    local after = at[i] or at[i - 1] + (at[i - 2] and at[i - 1] - at[i - 2] or 1)
    edges[i] = (before + after) / 2
  end
  return at, edges
end

-- Adds the lines that hatch a cell to `list`.
local function hatch(list, grid, x, y, width, height)
  local count = math.max(1, math.floor(math.max(width * grid.x_inch, height * grid.y_inch) / HATCH + 0.5))
  for _, line in ipairs(frames.diagonals(x, y, width, height, count)) do list[#list + 1] = line end
end

-- The patch below a text, so that the lines of a hatch do not cross it.
local function patch(grid, t, h, text, colour)
  local width = geometry.width_of(text, grid.font) / grid.x_inch
  local height = geometry.height_of(grid.font) / grid.y_inch
  local x, y = grid.x_at[t] - width / 2, grid.y_at[h] - height / 2
  return { x, x + width, y, y + height, colours.number(colour) }
end

-- The cells of a panel, in the axes' coordinates: { fills, hatches, missing_hatches, patches, texts }.
local function cells_of(slice, panel, grid, with_text)
  local out = { fills = {}, hatches = {}, missing_hatches = {}, patches = {}, texts = {},
    count_missing = 0 }
  for h = 1, #slice.hidden_sizes do
    for t = 1, #slice.num_tokens do
      local cell = panel.cell(h, t)
      local width, height = grid.x_edges[t + 1] - grid.x_edges[t], grid.y_edges[h + 1] - grid.y_edges[h]
      local x, y = grid.x_edges[t] + grid.gap * width, grid.y_edges[h] + grid.gap * height
      width, height = (1 - 2 * grid.gap) * width, (1 - 2 * grid.gap) * height
      local colour = cell and cell.colour or colours.missing
      out.fills[#out.fills + 1] = { x, x + width, y, y + height, colours.number(colour) }
      if not cell then
        out.count_missing = out.count_missing + 1
        hatch(out.missing_hatches, grid, x, y, width, height)
      elseif cell.hatched then
        hatch(out.hatches, grid, x, y, width, height)
      end
      if with_text and cell and cell.text then
        out.texts[#out.texts + 1] = { grid.x_at[t], grid.y_at[h], cell.text,
          colours.number(colours.text_on(colour)) }
        if cell.hatched then out.patches[#out.patches + 1] = patch(grid, t, h, cell.text, colour) end
      end
    end
  end
  return out
end

local function longest_text(slice, panels)
  local longest = 0
  for _, panel in ipairs(panels) do
    for h = 1, #slice.hidden_sizes do
      for t = 1, #slice.num_tokens do
        local cell = panel.cell(h, t)
        if cell and cell.text then longest = math.max(longest, utf8.len(cell.text)) end
      end
    end
  end
  return longest
end

-- ---- sizes ------------------------------------------------------------------------------------

local function text_width(letters, points) return letters * geometry.width_of("0", points) + 0.05 end

local function cell_font(spec) return #spec.panels == 1 and geometry.font.legend or geometry.font.cell end

-- The size of a panel, and whether its cells have room for their texts.
local function size_of(slice, spec)
  if spec.scale == "log" then return maps.log_panel.width, maps.log_panel.height, false end
  local columns, rows, alone = #slice.num_tokens, #slice.hidden_sizes, #spec.panels == 1
  local needed = text_width(longest_text(slice, spec.panels), cell_font(spec))
  local cell = math.max(alone and ROOMY.cell or USUAL_CELL, math.min(needed, LARGEST_CELL))
  local shrunk = math.min(cell, WIDEST_PANEL / columns, HIGHEST_PANEL / rows,
    #spec.panels > MANY.panels and MANY.cell or math.huge)
  local with_text = shrunk >= needed and shrunk >= geometry.height_of(cell_font(spec))
  return math.max(alone and ROOMY.width or NARROWEST_PANEL, shrunk * columns),
    math.max(alone and ROOMY.height or LOWEST_PANEL, shrunk * rows), with_text
end

local function ticks(values, at, room, spacing)
  local extent, last = #at > 1 and at[#at] - at[1] or 1, -math.huge
  return sequences.map(values, function(value, i)
    if (at[i] - last) / extent * room < spacing * 0.98 then return nil end
    last = at[i]
    return { at = at[i], text = ("%d"):format(value) }
  end)
end


-- The boxes of a colour bar, from low to high; they overlap, so that no seam shows.
local function bar_model(bar, x, bottom, top)
  local STEPS, boxes = 160, {}
  local function value_at(share)
    if bar.log then return bar.low * (bar.high / bar.low) ^ share end
    return bar.low + (bar.high - bar.low) * share
  end
  for i = 0, STEPS - 1 do
    boxes[#boxes + 1] = { value_at(i / STEPS), bar.high,
      colours.number(colours.at(bar.scale, (i + 0.5) / STEPS)) }
  end
  return { left = x, right = x + BAR_WIDTH, bottom = bottom, top = top, boxes = boxes, low = bar.low,
    high = bar.high, log = bar.log, ticks = bar.ticks, label = bar.label }
end

-- ---- the model --------------------------------------------------------------------------------

local function grid_of(slice, spec, sizes)
  local grid = { gap = spec.scale == "log" and OVERLAP or GAP, font = cell_font(spec) }
  grid.x_at, grid.x_edges = maps.axis(slice.num_tokens, spec.scale)
  grid.y_at, grid.y_edges = maps.axis(slice.hidden_sizes, spec.scale)
  grid.x_inch = sizes.width / (grid.x_edges[#grid.x_edges] - grid.x_edges[1])
  grid.y_inch = sizes.height / (grid.y_edges[#grid.y_edges] - grid.y_edges[1])
  return grid
end

local function digits(values)
  return math.max(0, table.unpack(sequences.map(values, function(value) return #tostring(value) end)))
end

-- The height of ticks at 45 degrees below an axis.
local function tick_depth(values)
  return (digits(values) + 1) * geometry.width_of("0", geometry.font.tick) * math.sqrt(0.5) + 0.08
end

-- Gaps around and between panels, in inches.
local function gaps_of(slice, spec)
  local tick = digits(slice.hidden_sizes) * geometry.width_of("0", geometry.font.tick)
  return { left = geometry.height_of(geometry.font.axis) + tick + 0.16,
    between = spec.bar and 0.3 or BAR_GAP + BAR_WIDTH + BAR_LABELS,
    right = (spec.bar or spec.panels[1].bar) and BAR_GAP + BAR_WIDTH + BAR_LABELS or 0.2,
    title = spec.panels[1].title and geometry.height_of(geometry.font.panel) + 0.08 or 0.1, below = 0.06,
    label = tick_depth(slice.num_tokens) + 0.12, foot = tick_depth(slice.num_tokens) + 0.26 }
end

-- Panel i for the template; `sizes`: columns, width, height, between, top, and the gaps around.
local function panel_model(spec, i, sizes, gaps)
  local panel, column, row = spec.panels[i], (i - 1) % sizes.columns, (i - 1) // sizes.columns
  local left = frames.edge + gaps.left + column * (sizes.width + sizes.between)
  local top = sizes.top - gaps.title - row * (sizes.height + gaps.title + gaps.below)
  local bottom = top - sizes.height
  return {
    title = panel.title and geometry.shorten(panel.title, geometry.font.panel, sizes.width + sizes.between),
    left = left, right = left + sizes.width, top = top, bottom = bottom, label = bottom - gaps.label,
    has_x_ticks = i + sizes.columns > #spec.panels, -- no panel below
    has_y_ticks = column == 0,
    bar = panel.bar and bar_model(panel.bar, left + sizes.width + BAR_GAP, bottom, top) }
end

-- The cells of all panels, and the number of missing ones.
local function contents_of(slice, spec, grid, with_text)
  local contents, missing = {}, 0
  for i, panel in ipairs(spec.panels) do
    contents[i] = cells_of(slice, panel, grid, with_text)
    missing = missing + contents[i].count_missing
  end
  return contents, missing
end

-- The legend and the notes, with entries for missing cells and absent texts.
local function foot_of(slice, spec, missing, with_text)
  local legend, notes = { table.unpack(spec.legend or {}) }, { table.unpack(spec.notes or {}) }
  local has_text = spec.text_is and longest_text(slice, spec.panels) > 0
  if with_text and has_text then notes[#notes + 1] = spec.text_note end
  if not with_text and has_text then
    notes[#notes + 1] = ("Too many cells to write %s into them."):format(spec.text_is)
  end
  if missing > 0 then
    legend[#legend + 1] = { text = spec.missing_is or "no time", missing = true }
    notes[#notes + 1] = frames.reasons(slice)
  end
  return legend, notes
end

local function sizes_of(slice, spec, gaps)
  local sizes = {}
  sizes.width, sizes.height, sizes.with_text = size_of(slice, spec)
  sizes.between = spec.panels[1].bar and gaps.right + 0.1 or gaps.between
  sizes.columns = geometry.columns(#spec.panels, sizes.width + sizes.between,
    sizes.height + gaps.title + gaps.below)
  sizes.rows = math.ceil(#spec.panels / sizes.columns)
  sizes.right = gaps.left + sizes.columns * sizes.width + (sizes.columns - 1) * sizes.between
  return sizes
end

local function add_panels(model, spec, contents, sizes, gaps)
  model.panels, model.bars = {}, {}
  for i in ipairs(spec.panels) do
    local panel = panel_model(spec, i, sizes, gaps)
    for name, value in pairs(contents[i]) do panel[name] = value end
    model.panels[i] = panel
    if panel.bar then table.insert(model.bars, panel.bar) end
  end
  if spec.bar then
    local top = model.panels[1].top
    table.insert(model.bars, bar_model(spec.bar, frames.edge + sizes.right + BAR_GAP,
      top - math.max(sizes.height, LOWEST_BAR), top))
  end
end

-- The model of the template; `slice`: of pictures/picture_slices.lua.
function maps.model(slice, spec)
  local gaps = gaps_of(slice, spec)
  local sizes = sizes_of(slice, spec, gaps)
  local grid = grid_of(slice, spec, sizes)
  local contents, missing = contents_of(slice, spec, grid, sizes.with_text)
  local frame = frames.new(slice, spec.title, 2 * frames.edge + sizes.right + gaps.right,
    foot_of(slice, spec, missing, sizes.with_text))
  local model = frame:close(math.max(spec.bar and LOWEST_BAR or 0,
    sizes.rows * (sizes.height + gaps.title + gaps.below)) + gaps.foot)
  sizes.top = model.top
  add_panels(model, spec, contents, sizes, gaps)
  model.x_low, model.x_high = grid.x_edges[1], grid.x_edges[#grid.x_edges]
  model.y_low, model.y_high = grid.y_edges[1], grid.y_edges[#grid.y_edges]
  model.x_ticks = ticks(slice.num_tokens, grid.x_at, sizes.width, 0.19)
  model.y_ticks = ticks(slice.hidden_sizes, grid.y_at, sizes.height, 0.13)
  model.cell_font, model.border_width = cell_font(spec), spec.border_width or 1
  model.borders, model.lines, model.names = spec.borders or {}, spec.lines or {}, spec.names or {}
  return model
end

return maps
