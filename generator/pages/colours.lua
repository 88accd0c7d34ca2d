-- Colours of pictures: scales from a share to a colour, and the colour of text on a colour. lists/lists.lua
-- has the strategies' colours.
local colours = {}

-- Each scale is a list of colours at equal distances, interpolated linearly. `time` is perceptually even and
-- legible to colour-blind people (viridis, by S. van der Walt and N. Smith, public domain).
colours.time = { "#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58",
  "#b5de2b", "#fde725" }
colours.loss = { "#ffffff", "#fee0d2", "#fcbba1", "#fc9272", "#fb6a4a", "#ef3b2c", "#cb181d", "#99000d" }
colours.certainty = { "#b35806", "#f1a340", "#fee0b6", "#f7f7f7" } -- from uncertain to certain
colours.sequence = { "#a9cfe8", "#7ab6da", "#4b98c9", "#1764ab", "#08306b" } -- of lines, by a number
colours.missing = "#e6e6e6"
colours.missing_lines = "#9a9a9a"

local function channels(colour)
  return tonumber(colour:sub(2, 3), 16), tonumber(colour:sub(4, 5), 16), tonumber(colour:sub(6, 7), 16)
end

-- The colour of `share` on a scale; shares below 0 and above 1 have the colours of the ends.
function colours.at(scale, share)
  local position = math.max(0, math.min(1, share)) * (#scale - 1)
  local first = math.min(math.floor(position), #scale - 2)
  local part = position - first
  local r1, g1, b1 = channels(scale[first + 1])
  local r2, g2, b2 = channels(scale[first + 2])
  local function mix(a, b) return math.floor(a + (b - a) * part + 0.5) end
  return ("#%02x%02x%02x"):format(mix(r1, r2), mix(g1, g2), mix(b1, b2))
end

-- The colour mixed with a share of white.
function colours.pale(colour, share) return colours.at({ colour, "#ffffff" }, share) end

-- Relative luminance, 0 to 1, as WCAG 2 has it.
function colours.luminance(colour)
  local function linear(value)
    value = value / 255
    return value <= 0.03928 and value / 12.92 or ((value + 0.055) / 1.055) ^ 2.4
  end
  local r, g, b = channels(colour)
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
end

local texts = {} -- colour -> the colour of text on it

-- Black or white, with the higher contrast to a colour: at a luminance of 0.179 both are equal.
function colours.text_on(colour)
  texts[colour] = texts[colour] or (colours.luminance(colour) > 0.179 and "#000000" or "#ffffff")
  return texts[colour]
end

-- The number that gnuplot's `rgb variable` takes.
function colours.number(colour) return tonumber(colour:sub(2), 16) end

return colours
