-- CSV tables with a header, for Lua; codec/csv_lua.c reads them.
--
--   local table = csv.read(path)      nil, message on failure
--   table.rows[1].rank                texts, by the header's names; table.line[1]: the row's line in the file
local core = require "core.csv"
local file = require "core.file"

local csv = { parse = core.parse }

function csv.read(path)
  local text, message = file.read(path)
  if not text then return nil, message end
  return csv.parse(text, path)
end

return csv
