-- judge(source, old, new, lookup) gives a table with two more fields in its cells: old_loss and new_loss, the
-- losses of the choices of two tables by the rows of a source (of model.load), over the bins of the new table
-- and a lookup (nil: the nearest size).
local choices = require "core.choose"
local fail = require "base.fail"
local model = require "formats.model"
local sequences = require "base.sequences"

return function(source, old, new, lookup)
  local options = model.options_of(source, lookup or "nearest")
  options.cells = sequences.filter(new:blocks(), function(block) return not block.sizes_only end)
  options.only_cells, options.same_bits_as = true, nil
  options.judged, options.least = { old, new }, true
  return fail.unless(choices.select(source.rows, options))
end
