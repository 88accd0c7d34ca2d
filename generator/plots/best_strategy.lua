-- The best strategy of each cell, by its colour, hatch and mark; the legend has the number of cells in which
-- each strategy wins.
local lists = require "lists.lists"
local maps = require "pages.maps"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local summary = require "formats.summary"

local best_strategy = { needs_best = true }

-- The winners of a slice, most first: { { strategy = row of lists.strategies, count =, share = }... },
-- and the number of cells that have one.
function best_strategy.distribution(slice)
  local counts, cells = {}, 0
  for h = 1, #slice.hidden_sizes do
    for _, cell in pairs(slice.best[h]) do
      counts[cell.strategy] = (counts[cell.strategy] or 0) + 1
      cells = cells + 1
    end
  end
  local out = sequences.map(lists.strategies, function(strategy)
    local count = counts[strategy.name]
    return count and { strategy = strategy, count = count, share = count / cells } or nil
  end)
  return ordering.falling(out, function(of) return of.count end), cells
end

-- The legend of the strategies that win in any cell.
function best_strategy.legend(slice)
  local distribution, cells = best_strategy.distribution(slice)
  return sequences.map(distribution, function(entry)
    local strategy = entry.strategy
    return { colour = strategy.colour, hatched = strategy.hatched,
      text = ("%s %s: %d of %d cells, %.1f %%"):format(strategy.mark, strategy.name, entry.count, cells,
        100 * entry.share) }
  end)
end

-- The cell for pages/maps.lua, or nil if it is unmeasured.
function best_strategy.cell(slice, h, t)
  local best = slice.best[h][t]
  if not best then return nil end
  local strategy = lists.find("strategies", best.strategy)
  return { colour = strategy.colour, hatched = strategy.hatched,
    text = strategy.mark .. (best.derived and "~" or "") .. (summary.is_uncertain(best) and "?" or "") }
end

-- The note for the marks behind strategies; nil if there are none.
function best_strategy.mark_note(slice)
  local uncertain, derived, has_confidence
  for h = 1, #slice.hidden_sizes do
    for _, cell in pairs(slice.best[h]) do
      uncertain, derived = uncertain or summary.is_uncertain(cell), derived or cell.derived
      has_confidence = has_confidence or cell.confidence ~= nil
    end
  end
  local notes = { uncertain and "?: uncertain: " .. summary.uncertain_in_words(has_confidence) .. "." or nil }
  if derived then notes[#notes + 1] = "~: chosen by an interpolated time." end
  return #notes > 0 and table.concat(notes, " ") or nil
end

function best_strategy.model(slice)
  return maps.model(slice, {
    title = ("Best strategy, %s, %s"):format(slice.placement, slice.fusion),
    panels = { { cell = function(h, t) return best_strategy.cell(slice, h, t) end } },
    legend = best_strategy.legend(slice), text_is = "marks",
    text_note = best_strategy.mark_note(slice),
    missing_is = "unmeasured",
  })
end

return best_strategy
