-- The best strategy's time over TP sizes: a panel for each of a few hidden sizes, a line for each of a few
-- token counts. Unlike the other kinds it takes the slices of all TP sizes; of each TP size it shows the one
-- with the fewest nodes.
local colours = require "pages.colours"
local geometry = require "pages.geometry"
local lines = require "pages.lines"
local lists = require "lists.lists"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local MOST_PANELS, MOST_LINES = 4, 7

-- At most `most` of a list, evenly spaced, first and last among them.
local function evenly_spaced(list, most)
  if #list <= most then return list end
  local out = {}
  for i = 1, most do out[i] = list[math.floor((i - 1) * (#list - 1) / (most - 1) + 1.5)] end
  return out
end

-- The values that every slice has, ascending; if they have none in common, those of any slice.
local function common(slices, name)
  local counts, all, shared = {}, {}, {}
  for _, slice in ipairs(slices) do
    for _, value in ipairs(slice[name]) do counts[value] = (counts[value] or 0) + 1 end
  end
  for value, count in pairs(counts) do
    all[#all + 1] = value
    if count == #slices then shared[#shared + 1] = value end
  end
  table.sort(all)
  table.sort(shared)
  return #shared > 0 and shared or all
end

local function best_at(slice, hidden_size, num_tokens)
  local h = sequences.indices(slice.hidden_sizes)[hidden_size]
  local t = sequences.indices(slice.num_tokens)[num_tokens]
  return h and t and slice.best[h][t] or nil
end

local function series_of(slices, hidden_size, num_tokens, share, index)
  local series = { colour = colours.at(colours.sequence, share), point = lines.point(index), points = {},
    text_points = true, text = ("%d %s"):format(num_tokens, num_tokens == 1 and "token" or "tokens") }
  for _, slice in ipairs(slices) do
    local best = best_at(slice, hidden_size, num_tokens)
    if best and best.time_us then
      local strategy = lists.find("strategies", best.strategy)
      table.insert(series.points, { slice.tp, best.time_us, text = strategy.mark, strategy = strategy.name })
    end
  end
  return series
end

-- The strategies that win at a point, with their marks.
local function marks_in_words(panels)
  local points = sequences.join(sequences.field(sequences.join(sequences.field(panels, "series")), "points"))
  local seen = sequences.set(sequences.field(points, "strategy"))
  local out = sequences.map(lists.strategies, function(strategy)
    return seen[strategy.name] and strategy.mark .. " " .. strategy.name or nil
  end)
  return "The best strategy stands above each point: " .. table.concat(out, ", ") .. "."
end

local function oversubscribed_in_words(slices)
  local sizes = sequences.map(slices, function(slice)
    return slice.oversubscribed and tostring(slice.tp) or nil
  end)
  return #sizes > 0 and "More ranks than cores at TP " .. table.concat(sizes, ", ") .. "." or nil
end

-- The slice with the fewest nodes of each TP size, ascending; `slices`: ascending by nodes.
local function one_of_each_size(slices)
  local of_size = ordering.groups(slices, function(slice) return slice.tp end)
  return ordering.sort(sequences.field(of_size, 1), ordering.by "tp")
end

-- The placements on several nodes, as a note; nil: none.
local function nodes_in_words(slices)
  local placements = sequences.map(slices, function(slice)
    return slice.nodes > 1 and slice.placement or nil
  end)
  return #placements > 0 and table.concat(placements, ", ") .. "." or nil
end

-- The notes below the picture.
local function notes_of(panels, slices)
  local notes = { marks_in_words(panels) }
  notes[#notes + 1] = oversubscribed_in_words(slices)
  notes[#notes + 1] = nodes_in_words(slices)
  return notes
end

-- `slices`: of one fusion, in the order of rank_placement.before, with at least two TP sizes.
local function model(slices)
  slices = one_of_each_size(slices)
  if #slices < 2 then return nil, "there is one TP size only" end
  local hidden_sizes = evenly_spaced(common(slices, "hidden_sizes"), MOST_PANELS)
  local num_tokens = evenly_spaced(common(slices, "num_tokens"), MOST_LINES)
  local panels = {}
  for p, hidden_size in ipairs(hidden_sizes) do
    local panel = { title = ("hidden size %d"):format(hidden_size), series = {} }
    for i, tokens in ipairs(num_tokens) do
      local share = #num_tokens > 1 and (i - 1) / (#num_tokens - 1) or 1
      panel.series[i] = series_of(slices, hidden_size, tokens, share, i)
    end
    panels[p] = panel
  end
  local first = sequences.merged(slices[1], { oversubscribed = false }) -- a note lists all TP sizes
  return lines.model(first, { title = ("Scaling over TP sizes, %s"):format(slices[1].fusion), panels = panels,
    legend = { table.unpack(panels[1].series) },
    notes = notes_of(panels, slices),
    x = { label = "TP size", values = sequences.field(slices, "tp") },
    y = { label = "time of the best strategy (µs)", ticks = geometry.log_ticks } })
end

return { model = model, over_tp_sizes = true }
