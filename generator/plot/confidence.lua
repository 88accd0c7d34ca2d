-- Where the choice is shaky: what the runner-up takes more, and how likely the choice is to be right, where rows
-- have intervals. Orange is in doubt.
local colours = require "plot.colours"
local lists = require "lists"
local maps = require "plot.maps"
local summary = require "summary"

local SURE_MARGIN = 25 -- percent, from which on all is as pale
local LEAST_CONFIDENCE = 50 -- percent: the toss of a coin

local function margin_panel(slice)
  return { title = "margin over the runner-up, %", cell = function(h, t)
    local best = slice.best[h][t]
    if not best or not best.margin then return nil end
    local percent = 100 * best.margin
    local mark = lists.find("strategies", best.strategy).mark
    return { colour = colours.at(colours.doubt, percent / SURE_MARGIN),
      text = mark .. (percent >= 99.95 and " %.0f" or " %.1f"):format(percent) }
  end, bar = { label = "margin (%)", scale = colours.doubt, low = 0, high = SURE_MARGIN, ticks = {
    { value = 0, text = "0" }, { value = 5, text = "5" }, { value = 10, text = "10" }, { value = 15, text = "15" },
    { value = 20, text = "20" }, { value = 25, text = "≥ 25" } } } }
end

local function confidence_text(percent)
  if percent >= 99.95 then return "> 99.9" end
  return ("%.1f"):format(percent)
end

local function confidence_panel(slice)
  return { title = "probability that the choice is right, %", cell = function(h, t)
    local best = slice.best[h][t]
    if not best or not best.confidence then return nil end
    local percent = 100 * best.confidence
    return { colour = colours.at(colours.doubt, (percent - LEAST_CONFIDENCE) / (100 - LEAST_CONFIDENCE)),
      text = confidence_text(percent) }
  end, bar = { label = "confidence (%)", scale = colours.doubt, low = LEAST_CONFIDENCE, high = 100, ticks = {
    { value = 50, text = "≤ 50" }, { value = 60, text = "60" }, { value = 70, text = "70" },
    { value = 80, text = "80" }, { value = 90, text = "90" }, { value = 100, text = "100" } } } }
end

local function count_doubtful(slice)
  local doubtful, cells = 0, 0
  for h = 1, #slice.hidden_sizes do
    for _, cell in pairs(slice.best[h]) do
      cells = cells + 1
      if summary.is_doubtful(cell) then doubtful = doubtful + 1 end
    end
  end
  return doubtful, cells
end

local function model(slice)
  local panels, doubtful, cells = { margin_panel(slice) }, count_doubtful(slice)
  local notes = { ("%d of %d choices are in doubt: %s. The letters are the winner's; alone, it has no margin.")
    :format(doubtful, cells, slice.has_interval
      and ("less than %.0f %% likely to be right"):format(100 * summary.least_confidence)
      or ("a margin below %.0f %%"):format(100 * summary.least_margin)) }
  if slice.has_interval then
    panels[2] = confidence_panel(slice)
  else
    notes[2] = "These rows have no intervals, so how likely a choice is to be right is not known."
  end
  return maps.model(slice, {
    title = ("How sure the choice is, TP %d, %s"):format(slice.tp, slice.fusion),
    panels = panels, notes = notes, text_is = "numbers", missing_is = "unmeasured, or nothing to compare with",
  })
end

return { model = model }
