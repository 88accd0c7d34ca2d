-- Foreign files as rows and tables: runs a reader, and writes the cells of a foreign table as table.csv.
local rank_placement = require "lists.rank_placement"
local readers = require "reading.list"
local sequences = require "base.sequences"
local source = require "reading.source"

local foreign = {}

local TABLE_HEADER = "arch,world_size,fusion,dtype,op,mode,hidden_size,num_tokens,strategy,time (us)," ..
  "runner_up,margin,state,confidence,expected loss,worst loss (us),basis"

-- The result of a reader (a row of reading/list.lua) for a source (reading/source.lua): { tables } or { rows,
-- no_time, facts }. Raises on wrong input.
function foreign.read(reader, of_file) return require("readers." .. reader.file)(of_file) end

-- The same of a text, by the reader's name, as if it were the file at `path`.
function foreign.read_text(name, text, path, options)
  return foreign.read(readers.find(name), source.new(path, text, options or {}))
end

-- Whether a cell of these is of several nodes.
local function span_nodes(cells)
  return sequences.any(cells, function(cell) return rank_placement.spans(cell.nodes) end)
end

-- The text of table.csv for cells in its order.
function foreign.table_text(arch, cells)
  local has_nodes = span_nodes(cells)
  local out = { TABLE_HEADER .. (has_nodes and ",nodes\n" or "\n") }
  for _, cell in ipairs(cells) do
    out[#out + 1] = ("%s,%d,%s,%s,%s,%s,%d,%d,%s,,,,,,,,%s\n"):format(arch, cell.world_size, cell.fusion,
      cell.dtype, cell.op, cell.mode, cell.hidden_size, cell.num_tokens, cell.strategy or "unmeasured",
      has_nodes and "," .. (cell.nodes or 1) or "")
  end
  return table.concat(out)
end

return foreign
