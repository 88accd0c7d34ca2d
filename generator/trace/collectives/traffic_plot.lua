-- The picture of a CSV nccl_all2allv_traffic of trace collectives: the MB from each rank to each.
local colours = require "pages.colours"
local csv = require "codec.csv"
local fail = require "base.fail"
local file = require "core.file"
local geometry = require "pages.geometry"
local gnuplot = require "pages.gnuplot"
local numbers = require "base.numbers"
local sequences = require "base.sequences"
local template = require "codec.template"

local traffic_plot = {}

local NAME = "all2allv_traffic"
local MOST_TEXTS, MOST_TICKS = 12, 32 -- ranks with numbers in their cells, and in an axis
local SIZE = { width = 7, height = 6 } -- in inches
local DARK = 0.55 -- the share of the largest number from which texts are white

-- The rank of a column "to rank N (MB)", or nil.
local function receiver_of(column) return math.tointeger(tonumber(column:match("^to rank (%d+) %(MB%)$"))) end

-- Whether a table of codec/csv.lua is of this kind.
local function is_traffic(of) return of.columns[1] == "rank" and receiver_of(of.columns[2] or "") ~= nil end

-- The table of the file if it is a CSV of this kind, else nil. Raises if it cannot be read.
function traffic_plot.read(path)
  local of = fail.unless(csv.read(path))
  return is_traffic(of) and of or nil
end

-- Ticks at the positions of ranks, from 0.
local function ticks(ranks)
  local all = sequences.map(ranks, function(rank, i) return { at = i - 1, text = tostring(rank) } end)
  return geometry.thin(all, MOST_TICKS)
end

-- The number in a cell, in MB; nil: it is empty.
local function cell_of(of, row, column, path)
  local text = of.rows[row][column]
  if text == "" then return nil end
  local value = numbers.finite(text)
  if value and value >= 0 then return value end
  fail.input("%s:%d: %s: %q is not a size", path, of.line[row], column, text)
end

local function model_of(of, path)
  local names = table.move(of.columns, 2, #of.columns, 1, {})
  local receivers = sequences.map(names, function(name)
    return receiver_of(name) or fail.input('%s:1: column "%s" is not of a receiving rank', path, name)
  end)
  local model = { title = "all_to_allv: MB from each rank to each", rows = {}, texts = {}, largest = 0,
    columns = #receivers, x_ticks = ticks(receivers), y_ticks = ticks(sequences.field(of.rows, "rank")) }
  local cells = {}
  for row = 1, #of.rows do
    cells[row] = sequences.map(names, function(name) return cell_of(of, row, name, path) or 0 / 0 end)
    for _, value in ipairs(cells[row]) do
      if value == value then model.largest = math.max(model.largest, value) end
    end
    model.rows[row] = table.concat(sequences.map(cells[row], function(value)
      return value == value and gnuplot.number(value) or "NaN"
    end), " ")
  end
  if model.largest == 0 then model.largest = 1 end
  if math.max(#of.rows, #receivers) > MOST_TEXTS then return model end
  for row, values in ipairs(cells) do
    for i, value in ipairs(values) do
      local colour = value > DARK * model.largest and "#ffffff" or "#000000"
      if value == value then
        table.insert(model.texts, { i - 1, row - 1, ("%.3g"):format(value), colours.number(colour) })
      end
    end
  end
  return model
end

-- Draws the picture of a table of traffic_plot.read into a folder, which is made. Returns its path.
function traffic_plot.draw(of, path, out)
  if #of.rows == 0 then fail.input("%s: has no row to draw", path) end
  local model = model_of(of, path)
  fail.unless_done(gnuplot.is_here())
  fail.unless_done(gnuplot.has_font())
  fail.unless_done(file.make_folder(out))
  model.terminal = gnuplot.png(SIZE.width, SIZE.height)
  local picture = ("%s/%s.png"):format(out, NAME)
  local script = template.load(gentables.home .. "/templates/plots/traffic.gp.tmpl")(model)
  fail.unless_done(gnuplot.draw(script, picture))
  return picture
end

return traffic_plot
