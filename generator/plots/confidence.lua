-- The margin over the runner-up, and, if rows have launches, the probability that the choice loses at most
-- 2 %. Orange is uncertain.
local colours = require "pages.colours"
local lists = require "lists.lists"
local maps = require "pages.maps"
local summary = require "formats.summary"

local SURE_MARGIN = 25 -- percent; larger margins have the same colour
local LEAST_CONFIDENCE = 50 -- percent, the end of the scale

-- Ticks at these values, and at the end of the scale.
local function ticks(values, sign, last)
  local out = { { value = last, text = sign .. last } }
  for _, value in ipairs(values) do out[#out + 1] = { value = value, text = tostring(value) } end
  return out
end

local function margin_panel(slice)
  return { title = "margin over the runner-up, %", cell = function(h, t)
    local best = slice.best[h][t]
    if not best or not best.margin then return nil end
    local percent = 100 * best.margin
    local mark = lists.find("strategies", best.strategy).mark
    return { colour = colours.at(colours.certainty, percent / SURE_MARGIN),
      text = mark .. (percent >= 99.95 and " %.0f" or " %.1f"):format(percent) }
  end, bar = { label = "margin (%)", scale = colours.certainty, low = 0, high = SURE_MARGIN,
    ticks = ticks({ 0, 5, 10, 15, 20 }, "≥ ", SURE_MARGIN) } }
end

local function confidence_text(percent)
  if percent >= 99.95 then return "> 99.9" end
  return ("%.1f"):format(percent)
end

local function confidence_panel(slice)
  return { title = "probability of a loss up to 2 %, %", cell = function(h, t)
    local best = slice.best[h][t]
    if not best or not best.confidence then return nil end
    local percent = 100 * best.confidence
    return { colour = colours.at(colours.certainty, (percent - LEAST_CONFIDENCE) / (100 - LEAST_CONFIDENCE)),
      text = confidence_text(percent) }
  end, bar = { label = "confidence (%)", scale = colours.certainty, low = LEAST_CONFIDENCE, high = 100,
    ticks = ticks({ 60, 70, 80, 90, 100 }, "≤ ", LEAST_CONFIDENCE) } }
end

-- The number of uncertain choices, of all, and whether launches show a confidence.
local function count_uncertain(slice)
  local uncertain, cells, has_confidence = 0, 0, false
  for h = 1, #slice.hidden_sizes do
    for _, cell in pairs(slice.best[h]) do
      cells, has_confidence = cells + 1, has_confidence or cell.confidence ~= nil
      if summary.is_uncertain(cell) then uncertain = uncertain + 1 end
    end
  end
  return uncertain, cells, has_confidence
end

local function model(slice)
  local panels, uncertain, cells, has_confidence = { margin_panel(slice) }, count_uncertain(slice)
  local notes = { ("%d of %d shapes have an uncertain choice: %s."):format(uncertain, cells,
    summary.uncertain_in_words(has_confidence)) }
  if has_confidence then
    panels[2] = confidence_panel(slice)
  else
    notes[#notes + 1] = "Rows without launches have no confidence."
  end
  return maps.model(slice, {
    title = ("Margin and confidence, %s, %s"):format(slice.placement, slice.fusion),
    panels = panels, notes = notes, text_is = "numbers", text_note = "The letters are the winner's.",
    missing_is = "unmeasured, or nothing to compare with",
  })
end

return { model = model, needs_best = true }
