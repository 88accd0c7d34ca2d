-- Draws pictures of rows: one, or all of a folder at once, several gnuplots side by side. plots/ has the
-- kinds of pictures, picture_slices.lua the rows.
--
--   local pictures, picture_slices = require "pictures.draw", require "pictures.picture_slices"
--   local rows = picture_slices.of_files { "benchmark.tp2.sm90.csv" }
--   assert(pictures.draw("heatmap", rows, { tp = 2, fusion = "NONE", path = "heatmap.png" }))
local fail = require "base.fail"
local file = require "core.file"
local gnuplot = require "pages.gnuplot"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"
local template = require "codec.template"
local workers = require "system.workers"

local pictures = {}

pictures.formats = { png = gnuplot.png, svg = gnuplot.svg } -- by the ending of the file's name

-- The model of a picture | nil, the reason why there is none.
local function model_of(kind, rows, of)
  local module = require("plots." .. kind)
  if not module.over_tp_sizes then
    local slice = rows:slice(of.tp, of.fusion)
    if not slice then return nil, ("TP %s has no rows of %s"):format(of.tp, of.fusion) end
    if module.needs_best and not slice.has_best then
      return nil, ("TP %s has no time of a strategy that may be chosen"):format(of.tp)
    end
    return module.model(slice)
  end
  return module.model(sequences.map(rows.tp_sizes, function(tp)
    local slice = rows:slice(tp, of.fusion)
    return slice and slice.has_best and slice or nil
  end))
end

-- Draws one picture of `rows` (of picture_slices.lua): of = { tp =, fusion =, path = that ends in .png or
-- .svg }. Returns true | nil, message, and "empty" if there is nothing to draw.
function pictures.draw(kind, rows, of)
  local terminal = pictures.formats[of.path:match("%.(%w+)$") or ""]
  if not terminal then return nil, of.path .. ": neither .png nor .svg" end
  local model, reason = model_of(kind, rows, of)
  if not model then return nil, reason, "empty" end
  model.terminal = terminal(model.width, model.height)
  local path = ("%s/templates/plots/%s.gp.tmpl"):format(gentables.home, model.template or "maps")
  return gnuplot.draw(template.load(path)(model), of.path)
end

-- The path of a picture; `placement`: one of rows.placements, or nil for a picture over all of them.
local function path_of(out, rows, kind, placement, fusion, format)
  local base = placement and rank_placement.file_name(placement.world_size, placement.nodes, rows.arch)
    or "benchmark." .. rows.arch
  return ("%s/viz/%s/%s_%s.%s"):format(out, fusion, base, kind, format)
end

-- All pictures of these kinds (rows of list.lua) and formats, as { kind, tp, fusion, path }.
function pictures.entries(rows, out, kinds, formats)
  local entries = {}
  for _, kind in ipairs(kinds) do
    local over_tp_sizes = require("plots." .. kind.name).over_tp_sizes
    for _, fusion in ipairs(rows.fusions) do
      for _, placement in ipairs(over_tp_sizes and { false } or rows.placements) do
        for _, format in ipairs(formats) do
          table.insert(entries, { kind = kind.name, tp = placement and placement.size or nil,
            fusion = fusion, path = path_of(out, rows, kind.name, placement, fusion, format) })
        end
      end
    end
  end
  return entries
end

-- The answer of the process of one picture: "", or a line with the reason why there is no picture.
local function draw_in_child(rows, entry)
  local drawn, problem, why = pictures.draw(entry.kind, rows, entry)
  if drawn then return "" end
  if why == "empty" then return ("%s, %s: %s; no picture"):format(entry.kind, entry.fusion, problem) end
  fail.work("%s", problem)
end

-- Draws entries. Returns the number of pictures, and a line for each reason why others are missing. Raises a
-- failure after the other pictures are drawn.
function pictures.draw_all(rows, entries, progress)
  local folders = sequences.map(entries, function(entry) return entry.path:match("^(.*)/") end)
  for _, folder in ipairs(sequences.distinct(folders)) do fail.unless_done(file.make_folder(folder)) end
  rows:table() -- once, and not in every child
  local results = workers.map(entries, function(entry) return draw_in_child(rows, entry) end,
    { progress = progress, title = "pictures" })
  local count, left_out, failed = 0, {}, nil
  for _, result in ipairs(results) do
    if not result.ok then
      failed = failed or result
    elseif result.value == "" then
      count = count + 1
    else
      left_out[#left_out + 1] = result.value
    end
  end
  if failed and type(progress) == "table" then progress:clear() end
  if failed then fail.with(failed.code, "%s", failed.value) end
  return count, sequences.distinct(left_out)
end

return pictures
