-- judge(source, old, new, lookup) gives a table with two more fields in its cells: old_loss and new_loss, the
-- losses of the choices of two tables by the rows of a source (of model.load), over the bins of the new table
-- and a lookup (nil: the nearest size).
local choices = require "core.choose"
local fail = require "base.fail"
local model = require "formats.model"

return function(source, old, new, lookup)
  local options = model.options_of(source, lookup or "nearest")
  options.cells, options.only_cells, options.same_bits_as = {}, true, nil
  options.judged, options.least = { old, new }, true
  for _, block in ipairs(new:blocks()) do
    if not block.sizes_only then table.insert(options.cells, block) end
  end
  return fail.unless(choices.select(source.rows, options))
end
