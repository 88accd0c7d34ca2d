-- The frame around the panels of every picture: title, subtitle with data and machine, legend, notes. Texts
-- and swatches of the legend have positions in inches; the templates only write them down.
--
--   local frame = frames.new(slice, "Best strategy", width, legend_entries, notes)
--   frame:close(height_of_panels)   -> the model: texts, swatches, hatches, width, height; top: the
--                                      upper edge of the panels
local geometry = require "pages.geometry"
local colours = require "pages.colours"

local frames = {}
local methods = {}
methods.__index = methods

local EDGE = 0.15
frames.edge = EDGE

-- Writes a line at x inches, and moves down.
function methods:line(text, x, points, colour, bold)
  local height = geometry.height_of(points)
  self.texts[#self.texts + 1] = { x = x, down = self.down + height / 2, text = geometry.legible(text),
    points = points, colour = colour or "#000000", bold = bold }
  self.down = self.down + height
end

function methods:lines(text, points, colour)
  for _, line in ipairs(geometry.wrap(text, points, self.width - 2 * EDGE)) do
    self:line(line, EDGE, points, colour)
  end
end

-- The axes of a slice on one line: "sm90, bfloat16, allreduce, eager".
function frames.axes_in_words(slice)
  local words = { slice.arch, slice.dtype, slice.op }
  if slice.mode ~= "unknown" then words[#words + 1] = slice.mode end
  return table.concat(words, ", ")
end

local function head(frame, slice, title)
  local font = geometry.font.title
  frame:line(geometry.shorten(title, font, frame.width - 2 * EDGE), EDGE, font, nil, true)
  local words = slice.subtitle or frames.axes_in_words(slice)
  if slice.machine then words = words .. "; measured on " .. slice.machine end
  if slice.oversubscribed then words = words .. "; more ranks than cores" end
  frame:lines(words, geometry.font.subtitle, "#555555")
end

-- A frame with title and subtitle. `slice` is one of pictures/picture_slices.lua, or { subtitle = }; `width`
-- in inches; the frame is wider if its title is.
function frames.new(slice, title, width, legend, notes)
  width = math.max(width, 6.2, geometry.width_of(title, geometry.font.title) * 1.08 + 2 * EDGE)
  local frame = setmetatable({ width = width, down = EDGE, texts = {}, swatches = {}, hatches = {},
    legend = legend or {}, notes = notes or {} }, methods)
  head(frame, slice, title)
  frame.top = frame.down
  return frame
end

-- The reasons for hatched cells, as a note.
function frames.reasons(slice)
  local words = {}
  for i, reason in ipairs(slice.reasons) do words[i] = ("%s (%d)"):format(reason.reason, reason.count) end
  if #words == 0 then return nil end
  return "Without a time, in cells × strategies: " .. table.concat(words, "; ") .. "."
end

frames.missing_entry = { text = "no time", missing = true }

local SWATCH_WIDTH, SWATCH_HEIGHT = 0.22, 0.13

-- Diagonals through a box, as x1, y1, x2, y2: the one between its corners and count - 1 on each side of it.
-- The diagonals of neighbouring boxes meet.
function frames.diagonals(x, y, width, height, count)
  local lines = {}
  for i = 1 - count, count - 1 do
    local shift = i / count -- of the line's left end, upwards
    local x1, x2 = math.max(0, -shift), math.min(1, 1 - shift)
    lines[#lines + 1] = { x + x1 * width, y + (x1 + shift) * height, x + x2 * width,
      y + (x2 + shift) * height }
  end
  return lines
end

local function add_swatch(frame, entry)
  local x, down = EDGE + entry.x, frame.down + entry.y
  local box = { x = x, down = down, width = SWATCH_WIDTH, height = SWATCH_HEIGHT,
    colour = entry.missing and colours.missing or entry.colour, dash = entry.dash, point = entry.point }
  frame.swatches[#frame.swatches + 1] = box
  if not entry.dash and (entry.hatched or entry.missing) then
    box.hatch = entry.missing and colours.missing_lines or "#ffffff"
  end
  frame.texts[#frame.texts + 1] = { x = x + SWATCH_WIDTH + 0.08, down = down,
    text = geometry.legible(entry.text), points = geometry.font.legend, colour = "#000000" }
end

-- Ends the picture below the panels; returns its model.
function methods:close(panels_height)
  self.down = self.down + panels_height
  if #self.legend > 0 then
    self.down = self.down + 0.06
    local height = geometry.place_legend(self.legend, self.width - 2 * EDGE)
    for _, entry in ipairs(self.legend) do add_swatch(self, entry) end
    self.down = self.down + height + 0.04
  end
  for _, note in ipairs(self.notes) do self:lines(note, geometry.font.note, "#555555") end
  local height = self.down + EDGE
  for _, list in ipairs { self.texts, self.swatches } do
    for _, item in ipairs(list) do item.y = height - item.down end
  end
  for _, box in ipairs(self.swatches) do
    if box.hatch then
      local y = box.y - box.height / 2
      for _, line in ipairs(frames.diagonals(box.x, y, box.width, box.height, 2)) do
        line.colour = box.hatch
        table.insert(self.hatches, line)
      end
    end
  end
  return { texts = self.texts, swatches = self.swatches, hatches = self.hatches, width = self.width,
    height = height, top = height - self.top }
end

return frames
