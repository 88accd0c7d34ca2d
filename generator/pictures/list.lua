-- The kinds of pictures, one row each; the file is plots/NAME.lua, which returns { model = function(slice)
-- -> the model of a template, or nil and why there is no picture }. Help, file names and --kinds are made
-- from this list.
--
-- How to add one: a file and a row. `documented`: it is drawn unless others are asked for.
local kinds = {
  { name = "heatmap", documented = true, help = "the time of every strategy" },
  { name = "best_strategy", documented = true, help = "which strategy is best where" },
  { name = "strategy_difference_heatmap", documented = true,
    help = "what every strategy takes more than the best" },
  { name = "time_vs_size", help = "time against message size, with intervals and bound" },
  { name = "crossover", help = "where the best strategy changes" },
  { name = "confidence", help = "how sure the choice is" },
  { name = "busbw", help = "bus bandwidth against message size" },
  { name = "scaling", help = "the best time over TP sizes; FILE once for each of them" },
}

local list = { kinds = kinds }

function list.names()
  local names = {}
  for i, kind in ipairs(kinds) do names[i] = kind.name end
  return names
end

function list.find(name)
  for _, kind in ipairs(kinds) do
    if kind.name == name then return kind end
  end
end

return list
