-- Cells without rows in tables of rows that have no recorded grid (rows of other tools, or of earlier
-- versions): the numbers of cells with an interpolated choice, and without any. The verbs that make tables
-- print a sentence about them, and the artifacts contain the same sentence.
local derive = require "base.lazy" "choose.derive"
local fail = require "base.fail"
local lists = require "lists.lists"
local quantities = require "base.quantities"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"

local gaps = {}

-- Whether the sweep of a file of rows recorded its grid.
local function has_grid(entry)
  return not derive.is_foreign(entry) and (entry.provenance.spec.keys or entry.spec) ~= nil
end

-- The placements of a source (of rows_folder.read) that have rows without a recorded grid, as texts of
-- rank_placement.size.
local function placements_without_grid(source)
  return sequences.map(source.files, function(entry)
    return not has_grid(entry) and rank_placement.size(entry.tp, entry.nodes) or nil
  end)
end

-- The cells of a table (core.table) of a source at the placements that have rows without a recorded grid: {
-- tp = list, cells, measured, derived, unmeasured }; nil if all of these are measured.
function gaps.of(source, canonical)
  local found = { tp = placements_without_grid(source), cells = 0, derived = 0, unmeasured = 0 }
  if #found.tp == 0 then return nil end
  for b, block in ipairs(canonical:blocks()) do
    local placement = rank_placement.size_of(block)
    if lists.contains(found.tp, placement) then
      local tally = canonical:tally(b)
      for _, name in ipairs { "cells", "derived", "unmeasured" } do
        found[name] = found[name] + tally[name]
      end
    end
  end
  found.measured = found.cells - found.derived - found.unmeasured
  return found.derived + found.unmeasured > 0 and found or nil
end

-- The sentence about such cells (of gaps.of).
function gaps.words(found)
  return ("the rows of TP %s have no recorded grid: of %s %d %s measured, %d interpolated, %d unmeasured")
    :format(table.concat(found.tp, ", "), quantities.counted(found.cells, "cell"), found.measured,
    found.measured == 1 and "is" or "are", found.derived, found.unmeasured)
end

local function way_out(source)
  if #source.cells > 0 then return "rows of the other cells, or a smaller grid in spec.lua, are required" end
  return "put the spec.lua of their sweep beside them, or measure the other cells"
end

-- Prints the sentence for each of these sources (of model.load), and a way out, as a note on stderr.
function gaps.print(sources)
  for _, source in ipairs(sources) do
    local found = source.gaps
    if found then
      fail.note("%s: %s; %s", source.data_dir, gaps.words(found), way_out(source))
    end
    gaps.print(source.parts or {})
  end
end

return gaps
