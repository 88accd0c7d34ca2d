-- Where the best strategy changes: tokens and hidden sizes on logarithmic axes, a border between neighbours
-- with different best strategies, a name in every region, and lines of equal message size.
local best_strategy = require "plots.best_strategy"
local colours = require "pages.colours"
local geometry = require "pages.geometry"
local lists = require "lists.lists"
local maps = require "pages.maps"
local quantities = require "base.quantities"
local sequences = require "base.sequences"

local PALE = 0.35 -- the part of white in a region's colour
local MANY_BORDERS = 400 -- from here on thin ones are drawn
local MARGIN = 0.03 -- around names, in inches

local function winner(slice, h, t)
  local cell = slice.best[h] and slice.best[h][t]
  return cell and cell.strategy or nil
end

-- The edges between cells with different winners; none next to an unmeasured cell.
local function borders_of(slice, x_edges, y_edges)
  local borders = {}
  for h = 1, #slice.hidden_sizes do
    for t = 1, #slice.num_tokens do
      local here, right, above = winner(slice, h, t), winner(slice, h, t + 1), winner(slice, h + 1, t)
      if here and right and here ~= right then
        borders[#borders + 1] = { x_edges[t + 1], y_edges[h], x_edges[t + 1], y_edges[h + 1] }
      end
      if here and above and here ~= above then
        borders[#borders + 1] = { x_edges[t], y_edges[h + 1], x_edges[t + 1], y_edges[h + 1] }
      end
    end
  end
  return borders
end

-- The cells of the region around (h, t), as { h, t } each; enters them into `seen`.
local function region_of(slice, h, t, seen)
  local name, region, at = winner(slice, h, t), { { h, t } }, 1
  seen[h][t] = true
  while at <= #region do
    local cell = region[at]
    at = at + 1
    for _, step in ipairs { { 0, 1 }, { 1, 0 }, { 0, -1 }, { -1, 0 } } do
      local next_h, next_t = cell[1] + step[1], cell[2] + step[2]
      if seen[next_h] and not seen[next_h][next_t] and winner(slice, next_h, next_t) == name then
        seen[next_h][next_t] = true
        region[#region + 1] = { next_h, next_t }
      end
    end
  end
  return region, name
end

-- The cell of a region that is nearest its middle.
local function middle_of(region)
  local h_sum, t_sum = 0, 0
  for _, cell in ipairs(region) do h_sum, t_sum = h_sum + cell[1], t_sum + cell[2] end
  local best, least
  for _, cell in ipairs(region) do
    local distance = (cell[1] - h_sum / #region) ^ 2 + (cell[2] - t_sum / #region) ^ 2
    if not least or distance < least - 1e-9 then best, least = cell, distance end
  end
  return best[1], best[2]
end

-- Whether the cell at (h, t) has room for a mark.
local function has_room(h, t, x_edges, y_edges)
  local width = (x_edges[t + 1] - x_edges[t]) / (x_edges[#x_edges] - x_edges[1])
  local height = (y_edges[h + 1] - y_edges[h]) / (y_edges[#y_edges] - y_edges[1])
  return width > 0.025 and height > 0.035
end

-- A mark for each region with room for it in the middle.
local function names_of(slice, x_at, y_at, x_edges, y_edges)
  local regions, seen, names = {}, {}, {}
  for h = 1, #slice.hidden_sizes do seen[h] = {} end
  for h = 1, #slice.hidden_sizes do
    for t = 1, #slice.num_tokens do
      if winner(slice, h, t) and not seen[h][t] then
        local region, name = region_of(slice, h, t, seen)
        regions[#regions + 1] = { region = region, name = name }
      end
    end
  end
  for _, entry in ipairs(regions) do
    local h, t = middle_of(entry.region)
    if has_room(h, t, x_edges, y_edges) then
      local strategy = lists.find("strategies", entry.name)
      names[#names + 1] = { x = x_at[t], y = y_at[h], text = strategy.mark, points = geometry.font.panel,
        bold = true, colour = colours.text_on(colours.pale(strategy.colour, PALE)) }
    end
  end
  return names
end

-- The box of a name in inches, from the left and from below, with a margin.
local function box_of(name, grid)
  local width = geometry.width_of(name.text, name.points) / 2 + MARGIN
  local height = geometry.height_of(name.points) / 2 + MARGIN
  local x, y = (name.x - grid.x_low) * grid.x_inch, (name.y - grid.y_low) * grid.y_inch
  return { x - width, y - height, x + width, y + height }
end

local function overlap(a, b) return a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4] end

-- Whether a name lies within the axes, and on none of the others.
local function is_free(name, names, grid)
  local box = box_of(name, grid)
  if box[1] < 0 or box[2] < 0 or box[3] > maps.log_panel.width or box[4] > maps.log_panel.height then
    return false
  end
  return not sequences.any(names, function(other) return overlap(box, box_of(other, grid)) end)
end

-- Adds the size of a line to `names`, at the first free place from its upper end on; none: the line has no
-- name.
local function name_line(line, text, names, grid)
  for share = 0.07, 0.93, 0.02 do
    local name = { x = line[1] + share * (line[3] - line[1]), y = line[2] + share * (line[4] - line[2]),
      boxed = true, text = text, points = 7, colour = "#333333" }
    if is_free(name, names, grid) then
      names[#names + 1] = name
      return
    end
  end
end

-- Lines of equal message size within the axes, each with its size near the upper end.
local function size_lines(slice, x_edges, y_edges, lines, names)
  local bytes = math.log(lists.find("dtypes", slice.dtype).bytes, 2)
  local x_low, x_high, y_low, y_high = x_edges[1], x_edges[#x_edges], y_edges[1], y_edges[#y_edges]
  local grid = { x_low = x_low, y_low = y_low, x_inch = maps.log_panel.width / (x_high - x_low),
    y_inch = maps.log_panel.height / (y_high - y_low) }
  local step = math.max(2, math.ceil((x_high + y_high - x_low - y_low) / 8))
  local first = math.ceil((x_low + y_low + bytes) / step) * step
  for exponent = first, math.floor(x_high + y_high + bytes), step do
    local sum = exponent - bytes -- of log2 tokens and log2 hidden size
    local x1, x2 = math.max(x_low, sum - y_high), math.min(x_high, sum - y_low)
    if x2 - x1 > 2 then
      lines[#lines + 1] = { x1, sum - x1, x2, sum - x2 }
      name_line(lines[#lines], quantities.bytes(2.0 ^ exponent), names, grid)
    end
  end
end

local function model(slice)
  local x_at, x_edges = maps.axis(slice.num_tokens, "log")
  local y_at, y_edges = maps.axis(slice.hidden_sizes, "log")
  local borders, lines = borders_of(slice, x_edges, y_edges), {}
  local names = names_of(slice, x_at, y_at, x_edges, y_edges)
  size_lines(slice, x_edges, y_edges, lines, names)
  local legend = best_strategy.legend(slice)
  for _, entry in ipairs(legend) do entry.colour = colours.pale(entry.colour, PALE) end
  return maps.model(slice, {
    title = ("Where the best strategy changes, %s, %s"):format(slice.placement, slice.fusion),
    scale = "log", legend = legend, missing_is = "unmeasured",
    notes = { "Borders: between measured points whose best strategies differ." ..
      (#lines > 0 and " Dashed: equal message size." or "") },
    panels = { { cell = function(h, t)
      local cell = best_strategy.cell(slice, h, t)
      return cell and { colour = colours.pale(cell.colour, PALE), hatched = cell.hatched }
    end } },
    borders = borders, border_width = #borders > MANY_BORDERS and 0.5 or 2, lines = lines, names = names,
  })
end

return { model = model, needs_best = true }
