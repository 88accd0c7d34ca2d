-- The kinds of pictures, one row each. Help, file names and --kinds are made from this list.
--
-- How to add a picture: a row here, and a file generator/plots/NAME.lua that returns { model =
-- function(slice) }: the model of a template, or nil and the reason why there is no picture. plots/busbw.lua
-- is a short example; pictures/picture_slices.lua describes a slice. Optional fields beside `model`:
-- needs_best (slices without choices have no picture) and over_tp_sizes (model takes the slices of all TP
-- sizes). `documented`: drawn by default.
local sequences = require "base.sequences"
local kinds = {
  { name = "heatmap", documented = true, help = "the time of every strategy" },
  { name = "best_strategy", documented = true, help = "the best strategy of each cell" },
  { name = "strategy_difference_heatmap", documented = true,
    help = "how much longer every strategy takes than the fastest" },
  { name = "time_vs_size", help = "time against message size, with intervals and bound" },
  { name = "crossover", help = "borders between regions with different best strategies" },
  { name = "confidence", help = "margin and confidence of each choice" },
  { name = "busbw", help = "bus bandwidth against message size" },
  { name = "scaling", help = "the best time over TP sizes; requires a FILE for each of several" },
}

local list = { kinds = kinds }

function list.names()
  return sequences.field(kinds, "name")
end

function list.find(name)
  return sequences.named(kinds, name)
end

return list
