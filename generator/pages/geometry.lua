-- The geometry of pictures, in inches: sizes of text, lines of notes, ticks, panels, legends. Pictures are
-- laid out here and not by gnuplot, which cuts off texts that need more room than it reserves.
local quantities = require "base.quantities"

local geometry = {}

-- Points per inch, and the average width of a letter, as a share of the font's size: of DejaVu Sans, which is
-- wide; narrower fonts leave some room.
local POINTS, LETTER = 72, 0.62

geometry.font = { title = 12.5, subtitle = 8.5, panel = 9.5, axis = 9, tick = 8, cell = 6.5, legend = 8.5,
  note = 8 }

-- The distance of lines, in font sizes.
geometry.line = 1.45

function geometry.height_of(points) return points * geometry.line / POINTS end

-- A text that a picture can show: one line of valid UTF-8.
function geometry.legible(text)
  text = text:gsub("%c", "?")
  if not utf8.len(text) then text = text:gsub("[\128-\255]", "?") end
  return text
end

-- The greatest width of a text, in inches.
function geometry.width_of(text, points)
  return utf8.len(geometry.legible(text)) * points * LETTER / POINTS
end

-- The text, shortened to `width` inches.
function geometry.shorten(text, points, width)
  text = geometry.legible(text)
  local room = math.max(2, math.floor(width / (points * LETTER / POINTS)))
  if utf8.len(text) <= room then return text end
  return text:sub(1, utf8.offset(text, room) - 1) .. "…"
end

-- The text in lines of at most `width` inches, broken at spaces; words that are too long are shortened.
function geometry.wrap(text, points, width)
  local lines, line = {}, nil
  for word in geometry.legible(text):gmatch("%S+") do
    word = geometry.shorten(word, points, width)
    local longer = line and line .. " " .. word or word
    if line and geometry.width_of(longer, points) > width then
      lines[#lines + 1] = line
      longer = word
    end
    line = longer
  end
  lines[#lines + 1] = line
  return lines
end

-- ---- ticks ------------------------------------------------------------------------------------

-- At most `most` of a list, at equal distances, the first among them.
function geometry.thin(list, most)
  local step, out = math.ceil(#list / most), {}
  for i = 1, #list, step do out[#out + 1] = list[i] end
  return out
end

local function ticks_at(steps, low, high)
  local ticks = {}
  for decade = math.floor(math.log(low, 10)) - 1, math.ceil(math.log(high, 10)) do
    for _, step in ipairs(steps) do
      local value = step * 10.0 ^ decade
      if value >= low * 0.9999 and value <= high * 1.0001 then
        ticks[#ticks + 1] = { value = value, text = ("%.6g"):format(value) }
      end
    end
  end
  return ticks
end

-- Ticks of a logarithmic axis, { { value, text }... }: 1, 2, 5 of every decade within it; fewer if they are
-- more than `most`; the ends if hardly any lies within it.
function geometry.log_ticks(low, high, most)
  local ticks = ticks_at({ 1, 2, 5 }, low, high)
  if #ticks < 2 then
    ticks = { { value = low, text = ("%.3g"):format(low) } }
    if high > low then ticks[2] = { value = high, text = ("%.3g"):format(high) } end
    return ticks
  end
  if #ticks > most then ticks = ticks_at({ 1, 3 }, low, high) end
  if #ticks > most then ticks = ticks_at({ 1 }, low, high) end
  return geometry.thin(ticks, most)
end

-- Ticks of a logarithmic axis of message sizes, in bytes: powers of two.
function geometry.byte_ticks(low, high, most)
  local ticks = {}
  for exponent = math.ceil(math.log(low, 2) - 1e-9), math.floor(math.log(high, 2) + 1e-9) do
    ticks[#ticks + 1] = { value = 2.0 ^ exponent, text = quantities.bytes(2.0 ^ exponent) }
  end
  if #ticks == 0 then return { { value = low, text = quantities.bytes(low) } } end
  return geometry.thin(ticks, most)
end

-- ---- panels -----------------------------------------------------------------------------------

-- The number of columns with which `count` panels of this size (with the gaps around each) fit a screen best.
function geometry.columns(count, width, height)
  local WIDE, best, least = 1.65, 1, math.huge
  for columns = 1, count do
    local rows = math.ceil(count / columns)
    local badness = math.abs(math.log(columns * width / (rows * height) / WIDE))
      + 0.15 * (rows * columns - count) -- empty places
    if badness < least - 1e-9 then best, least = columns, badness end
  end
  return best
end

local SAMPLE, LEGEND_GAP = 0.32, 0.3

-- Places the entries of a legend within `width` inches, in one line or in columns: sets x and y (from the
-- upper left corner) of each; returns the height of all.
function geometry.place_legend(entries, width)
  local font, longest, all = geometry.font.legend, 0, 0
  local height = geometry.height_of(font) * 1.1
  for _, entry in ipairs(entries) do
    entry.text = geometry.shorten(entry.text, font, width - SAMPLE)
    entry.width = SAMPLE + geometry.width_of(entry.text, font) + LEGEND_GAP
    longest, all = math.max(longest, entry.width), all + entry.width
  end
  local columns = math.max(1, math.floor((width + LEGEND_GAP) / longest))
  local x = 0
  for i, entry in ipairs(entries) do
    if all - LEGEND_GAP <= width then
      entry.x, entry.y = x, height / 2
      x = x + entry.width
    else
      entry.x, entry.y = (i - 1) % columns * longest, ((i - 1) // columns + 0.5) * height
    end
  end
  return #entries > 0 and entries[#entries].y + height / 2 or 0
end

return geometry
