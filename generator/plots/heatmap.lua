-- The time of every strategy: a panel each, with one logarithmic colour bar for all.
local colours = require "pages.colours"
local geometry = require "pages.geometry"
local maps = require "pages.maps"
local quantities = require "base.quantities"

local function range_of(slice)
  local low, high = math.huge, 0
  for name in pairs(slice.rows) do
    for h = 1, #slice.hidden_sizes do
      for t = 1, #slice.num_tokens do
        local time_us = slice.time_at(name, h, t)
        if time_us then low, high = math.min(low, time_us), math.max(high, time_us) end
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
    panels[i] = { title = strategy.name, cell = function(h, t)
      local time_us, derived = slice.time_at(strategy.name, h, t)
      return time_us and { colour = colours.at(colours.time, math.log(time_us / low) / math.log(high / low)),
        text = (derived and "~" or "") .. quantities.three_digits(time_us) }
    end }
  end
  return maps.model(slice, {
    title = ("Time per strategy, %s, %s"):format(slice.placement, slice.fusion),
    panels = panels, text_is = "times", text_note = slice.note_of_derived,
    bar = { label = "time (µs)", scale = colours.time, low = low, high = high, log = true,
      ticks = geometry.log_ticks(low, high, 10) },
  })
end

return { model = model }
