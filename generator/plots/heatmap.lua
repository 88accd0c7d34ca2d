-- The time of every strategy: a panel each, with one logarithmic colour bar for all.
local colours = require "pages.colours"
local geometry = require "pages.geometry"
local maps = require "pages.maps"
local quantities = require "base.quantities"

local function range_of(slice)
  local low, high = math.huge, 0
  for _, grid in pairs(slice.rows) do
    for h = 1, #slice.hidden_sizes do
      for _, row in pairs(grid[h]) do
        low, high = math.min(low, row.time_us), math.max(high, row.time_us)
      end
    end
  end
  if low == high then low, high = low / 1.1, high * 1.1 end
  return low, high
end

local function model(slice)
  local low, high = range_of(slice)
  local panels = {}
  for i, strategy in ipairs(slice.strategies) do
    local grid = slice.rows[strategy.name]
    panels[i] = { title = strategy.name, cell = function(h, t)
      local row = grid[h][t]
      return row and { colour = colours.at(colours.time, math.log(row.time_us / low) / math.log(high / low)),
        text = quantities.three_digits(row.time_us) }
    end }
  end
  return maps.model(slice, {
    title = ("Time per strategy, TP %d, %s"):format(slice.tp, slice.fusion),
    panels = panels, text_is = "times",
    bar = { label = "time (µs)", scale = colours.time, low = low, high = high, log = true,
      ticks = geometry.log_ticks(low, high, 10) },
  })
end

return { model = model }
