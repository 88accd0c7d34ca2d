-- The common part of the readers of Open MPI's rules: the names of coll/tuned's algorithms, and which rules
-- hold for a number of ranks.
local lists = require "lists.lists"
local ranges = require "reading.ranges"
local sequences = require "base.sequences"

local ompi_config = {}

-- Algorithm 0 is the decision that is built in.
local BUILT_IN = "MPI"

-- The strategy of an algorithm's number.
function ompi_config.strategy(source, line, number)
  if number == 0 then return BUILT_IN end
  for _, row in ipairs(lists.strategies) do
    if row.ompi_algorithm == number then return row.name end
  end
  source:fail(line, "unknown algorithm %d of an allreduce; valid: 0 to 6", number)
end

-- The number of an algorithm's name, as 6.0 has it.
function ompi_config.number(source, line, name)
  if name == "ignore" then return 0 end
  for _, row in ipairs(lists.strategies) do
    if row.ompi_algorithm and row.name:lower() == "mpi_" .. name then return row.ompi_algorithm end
  end
  source:fail(line, "unknown algorithm %s of an allreduce", source.shown(name))
end

-- The table of all numbers of ranks, and `rules_of`. `sizes`: those that the file names, ascending;
-- rules_of(size) gives the rules { from, to, strategy }, of which the first that matches counts.
function ompi_config.cells(source, sizes, rules_of)
  local cells, before = {}, nil
  for _, size in ipairs(source.options.tp or sizes) do
    local rules = rules_of(size)
    if not rules then source:fail(nil, "has no rules for %d ranks", size) end
    sequences.append(cells, size ~= before and ranges.cells(source, rules, size) or {})
    before = size
  end
  return { tables = { { arch = "host", cells = cells } }, rules_of = rules_of }
end

return ompi_config
