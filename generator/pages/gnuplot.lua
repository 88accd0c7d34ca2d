-- Pictures by gnuplot: draw(script, path) runs a script and writes the picture to `path`, whole or not at
-- all. The script sets its terminal, by png(width, height) for 300 dpi or by svg(), and never its output;
-- quote() quotes any text for a script.
--
--   gnuplot.draw(gnuplot.png(6, 4) .. "plot " .. gnuplot.quote("a.dat") .. " with lines\n", "a.png")
local child_process = require "system.child_process"
local file = require "core.file"
local scratch = require "system.scratch"
local sequences = require "base.sequences"

local gnuplot = {}

gnuplot.deadline_s = 60 -- for one picture

local DPI = 300
local USUAL_DPI = 96 -- for which gnuplot's cairo terminals define fonts and line widths
local FONT_POINTS = 10
local POINTS = 72 -- per inch

-- A text as a string of gnuplot, for any text. In double quotes backticks run a command and a backslash
-- begins an escape; therefore every special character is an octal escape.
function gnuplot.quote(text)
  return '"' .. text:gsub("[^%w .,:;/()+=<>\128-\255-]", function(sign)
    return ("\\%03o"):format(sign:byte())
  end) .. '"'
end

-- The line that sets the terminal for a PNG of this size in inches: 300 dpi, fonts in points (default 10),
-- lines of width 1 as 1/96 inch. Labels show literally, without gnuplot's markup.
function gnuplot.png(width_inches, height_inches)
  local width, height = math.floor(width_inches * DPI + 0.5), math.floor(height_inches * DPI + 0.5)
  local scale = DPI / USUAL_DPI
  local words = 'set terminal pngcairo size %d,%d noenhanced font "Sans,%d" fontscale %.4f linewidth %.4f ' ..
    "pointscale %.4f\n"
  return words:format(width, height, FONT_POINTS, scale, scale, scale)
end

-- The same for an SVG: its units are 1/96 inch.
function gnuplot.svg(width_inches, height_inches)
  local words = 'set terminal svg size %d,%d dynamic noenhanced font "Sans,%d" fontscale %.4f ' ..
    'background "#ffffff"\n'
  return words:format(math.floor(width_inches * USUAL_DPI + 0.5), math.floor(height_inches * USUAL_DPI + 0.5),
    FONT_POINTS, USUAL_DPI / POINTS)
end

function gnuplot.number(value) return ("%.9g"):format(value) end

-- The ticks of an axis for a script: their texts (`is_blank`: none) at the values of their field `key`.
function gnuplot.tick_list(ticks, key, is_blank)
  return table.concat(sequences.map(ticks, function(tick)
    return gnuplot.quote(is_blank and "" or tick.text) .. " " .. gnuplot.number(tick[key])
  end), ", ")
end

-- For scripts of pictures of this size, in inches: `across` and `up` are positions as shares of it, `texts`
-- is the labels of a frame's texts, `margins` puts the next plot into a panel.
function gnuplot.places(width, height)
  local function across(x) return ("%.5f"):format(x / width) end
  local function up(y) return ("%.5f"):format(y / height) end
  local function texts(list)
    return table.concat(sequences.map(list, function(text, i)
      return ('set label %d %s at screen %s, screen %s left font "%s,%s" tc rgb "%s"'):format(i,
        gnuplot.quote(text.text), across(text.x), up(text.y), text.bold and "Sans:Bold" or "Sans",
        gnuplot.number(text.points), text.colour)
    end), "\n")
  end
  local function margins(panel)
    local words = "set lmargin at screen %s\nset rmargin at screen %s\nset bmargin at screen %s\n"
      .. "set tmargin at screen %s"
    return words:format(across(panel.left), across(panel.right), up(panel.bottom), up(panel.top))
  end
  return across, up, texts, margins
end

-- Runs gnuplot with `text` as its stdin. Returns true | nil, message: of stderr the last line, without the
-- script's name, which is of no use to a user.
local function run(words, text)
  local ran = child_process.run(words, { input = text, seconds = gnuplot.deadline_s,
    environment = { "LC_ALL=C.UTF-8" } })
  if ran.well then return true end
  if ran.problem == "start" then return nil, ran.reason .. "; pictures need gnuplot (Debian: gnuplot-nox)" end
  if ran.problem then return nil, "gnuplot " .. ran.reason end
  local last = child_process.last_line(ran.errors) or ""
  return nil, ("gnuplot failed (%s): %s"):format(ran.reason, last:gsub('^"/dev/stdin" ', ""):gsub("%s+", " "))
end

local png_start, png_end = "\137PNG\r\n\26\n", "\0\0\0\0IEND\174B`\130"
local png_header_size = #png_start + 25 -- the signature and the first chunk, IHDR

-- The chunk with the size of a PNG's pixels: 11811 per metre are 300 dpi. It ends with its CRC-32.
local png_density = "\0\0\0\9pHYs" .. (">I4I4B"):pack(11811, 11811, 1) .. (">I4"):pack(0x78a53f76)

-- Whether a picture is complete: on a full disk gnuplot ends without an error.
local function is_whole(picture)
  if picture:sub(1, #png_start) == png_start then return picture:sub(-#png_end) == png_end end
  if picture:find("<svg", 1, true) then return picture:find("</svg>%s*$") ~= nil end
  return picture ~= ""
end

local function with_density(picture)
  if picture:sub(1, #png_start) ~= png_start then return picture end
  return picture:sub(1, png_header_size) .. png_density .. picture:sub(png_header_size + 1)
end

-- Whether gnuplot runs: true | nil, message. For callers with long work before the first picture.
function gnuplot.is_here() return run { "gnuplot", "--version" } end

-- gnuplot writes a font's name and weight together as a name, which browsers do not find.
local function with_plain_fonts(picture)
  return (picture:gsub('font%-family="Sans:Bold"', 'font-family="sans-serif" font-weight="bold"')
    :gsub('font%-family="Sans"', 'font-family="sans-serif"'))
end

-- Runs the script, which writes to `output`. Returns the picture | nil, message.
local function picture_of(script, output)
  local ran, message = run({ "gnuplot", "-d", "/dev/stdin" },
    ("set encoding utf8\nset output %s\n%s\nunset output\nexit\n"):format(
      gnuplot.quote(output), script))
  if not ran then return nil, message end
  local picture, problem = file.read(output)
  if not picture then return nil, problem end
  if not is_whole(picture) then return nil, "gnuplot wrote no whole picture; is the disk full?" end
  return picture:find("^[^\n]*<%?xml") and with_plain_fonts(picture) or with_density(picture)
end

-- Draws the script's picture into `path`, which is replaced when the picture is complete. Returns true | nil,
-- message.
function gnuplot.draw(script, path)
  local folder <close> = scratch.folder("gentables-picture")
  local picture, problem = picture_of(script, folder.path .. "/picture")
  if not picture then return nil, ("%s: %s"):format(path, problem) end
  return file.write(path, picture)
end

-- Whether PNGs will have text: true | nil, message. Without a font gnuplot draws none, without an error.
function gnuplot.has_font()
  local folder <close> = scratch.folder("gentables-font")
  local written, blank = folder.path .. "/written.png", folder.path .. "/blank.png"
  local frame = "set terminal pngcairo size 60,40\nunset border\nunset tics\nunset key\n%s\n" ..
    "plot [0:1] [0:1] NaN\n"
  local label = frame:format('set label "WORD" at graph 0.1, 0.5')
  local done, problem = gnuplot.draw(label, written)
  if done then done, problem = gnuplot.draw(frame:format(""), blank) end
  local same = done and file.read(written) == file.read(blank)
  if not done then return nil, problem end
  if not same then return true end
  return nil, "there is no font, so pictures would have no text; install one (Debian: fonts-dejavu-core)"
end

return gnuplot
