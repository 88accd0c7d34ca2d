-- The time of every strategy beyond the fastest one's at the shape, in percent: a panel each, from white to
-- red. AUTO and other strategies that may not be chosen never count as fastest; where one of them is faster,
-- its cell is blue and has the word "faster" in place of a negative number.
local colours = require "pages.colours"
local lists = require "lists.lists"
local maps = require "pages.maps"
local sequences = require "base.sequences"

-- Larger differences have the darkest red, so that colours mean the same in every picture.
local MOST = 100
local FASTER = { colour = "#9ecae1", text = "faster" }
local FASTER_ENTRY = { colour = FASTER.colour, text = "faster than every strategy that may be chosen" }

local function in_text(percent)
  if percent >= 99999.5 then return ("%.0fk"):format(percent / 1000) end
  if percent >= 999.95 then return ("%.0f"):format(percent) end
  return ("%.1f"):format(percent)
end

-- The least time at a shape, of what may be chosen; nil without one.
local function least_at(slice, h, t)
  local least
  for _, strategy in ipairs(slice.strategies) do
    local time_us = lists.may_win(strategy.name) and slice.time_at(strategy.name, h, t)
    if time_us and (not least or time_us < least) then least = time_us end
  end
  return least
end

-- Whether a strategy is faster than the fastest anywhere.
local function is_any_faster(slice)
  return sequences.any(slice.strategies, function(strategy)
    for h = 1, #slice.hidden_sizes do
      for t = 1, #slice.num_tokens do
        local time_us = slice.time_at(strategy.name, h, t)
        local least = time_us and least_at(slice, h, t)
        if least and time_us < least then return true end
      end
    end
    return false
  end)
end

local function model(slice)
  local panels = {}
  for i, strategy in ipairs(slice.strategies) do
    panels[i] = { title = strategy.name, cell = function(h, t)
      local time_us, derived = slice.time_at(strategy.name, h, t)
      local least = time_us and least_at(slice, h, t)
      if not least then return nil end
      local percent = 100 * (time_us - least) / least
      if percent < 0 then return FASTER end
      return { colour = colours.at(colours.loss, percent / MOST),
        text = (derived and "~" or "") .. in_text(percent) }
    end }
  end
  local ticks = {}
  for value = 0, MOST, 20 do
    ticks[#ticks + 1] = { value = value, text = (value == MOST and "≥ %d" or "%d"):format(value) }
  end
  return maps.model(slice, {
    title = ("Difference to the fastest strategy, %s, %s"):format(slice.placement, slice.fusion),
    legend = is_any_faster(slice) and { FASTER_ENTRY } or nil,
    panels = panels, text_is = "differences", text_note = slice.note_of_derived,
    bar = { label = "more than the fastest (%)", scale = colours.loss, low = 0, high = MOST, ticks = ticks },
  })
end

return { model = model, needs_best = true }
