-- Foreign files as rows and tables: runs a reader, and writes the cells of a foreign table as table.csv.
local readers = require "reading.list"
local source = require "reading.source"

local foreign = {}

local TABLE_HEADER = "arch,world_size,fusion,dtype,op,mode,hidden_size,num_tokens,strategy,time (us)," ..
  "runner_up,margin,state,confidence,expected loss,worst loss (us),basis\n"

-- The result of a reader (a row of reading/list.lua) for a source (reading/source.lua): { tables } or { rows,
-- no_time, facts }. Raises on wrong input.
function foreign.read(reader, of_file) return require("readers." .. reader.file)(of_file) end

-- The same of a text, by the reader's name, as if it were the file at `path`.
function foreign.read_text(name, text, path, options)
  return foreign.read(readers.find(name), source.new(path, text, options or {}))
end

-- The text of table.csv for cells in its order.
function foreign.table_text(arch, cells)
  local out = { TABLE_HEADER }
  for _, cell in ipairs(cells) do
    out[#out + 1] = ("%s,%d,%s,%s,%s,%s,%d,%d,%s,,,,,,,,\n"):format(arch, cell.world_size, cell.fusion,
      cell.dtype, cell.op, cell.mode, cell.hidden_size, cell.num_tokens, cell.strategy or "unmeasured")
  end
  return table.concat(out)
end

return foreign
