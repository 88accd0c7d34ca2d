-- How much longer every strategy takes than the best one, in percent: a panel each, from white to red. AUTO
-- and other strategies that may not be chosen never count as best; if one is faster, its difference is
-- negative, and white.
local colours = require "pages.colours"
local maps = require "pages.maps"

-- Larger differences have the darkest red, so that colours mean the same in every picture.
local MOST = 100

local function in_text(percent)
  if percent >= 99999.5 then return ("%.0fk"):format(percent / 1000) end
  if percent >= 999.95 then return ("%.0f"):format(percent) end
  local text = ("%.1f"):format(percent)
  return text == "-0.0" and "0.0" or text
end

local function model(slice)
  local panels = {}
  for i, strategy in ipairs(slice.strategies) do
    local grid = slice.rows[strategy.name]
    panels[i] = { title = strategy.name, cell = function(h, t)
      local row, best = grid[h][t], slice.best[h][t]
      if not row or not best then return nil end
      local percent = 100 * (row.time_us - best.time_us) / best.time_us
      return { colour = colours.at(colours.loss, percent / MOST), text = in_text(percent) }
    end }
  end
  local ticks = {}
  for value = 0, MOST, 20 do
    ticks[#ticks + 1] = { value = value, text = (value == MOST and "≥ %d" or "%d"):format(value) }
  end
  return maps.model(slice, {
    title = ("Difference to the best strategy, TP %d, %s"):format(slice.tp, slice.fusion),
    panels = panels, text_is = "differences",
    bar = { label = "more than the best (%)", scale = colours.loss, low = 0, high = MOST, ticks = ticks },
  })
end

return { model = model, needs_best = true }
