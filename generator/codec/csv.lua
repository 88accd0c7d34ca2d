-- CSV tables with a header, for Lua: small ones, whose columns are found by name. Rows of benchmarks are
-- read in C (rows/rows_reading.c).
--
--   local table = csv.read(path)      nil, message where it cannot be read
--   table.rows[1].rank                texts, by the header's names; table.line[1]: the row's line in the file
local file = require "core.file"

local csv = {}

-- The cell that begins at `at`: its text and where it ends (at a comma, a line end or behind the text);
-- nil where a quote is broken.
local function cell_at(text, at)
  if text:sub(at, at) ~= '"' then
    local stop = text:find("[,\r\n]", at) or #text + 1
    return text:sub(at, stop - 1), stop
  end
  local from = at + 1
  while true do
    local quote = text:find('"', from, true)
    if not quote then return nil end
    if text:sub(quote + 1, quote + 1) ~= '"' then
      if not text:find("^[,\r\n]", quote + 1) and quote < #text then return nil end
      return text:sub(at + 1, quote - 1):gsub('""', '"'), quote + 1
    end
    from = quote + 2
  end
end

-- The line that begins at `at`: its cells, and where the next one begins; nil where a quote is broken.
local function line_at(text, at)
  local cells = {}
  while true do
    local cell, stop = cell_at(text, at)
    if not cell then return nil end
    cells[#cells + 1] = cell
    if text:sub(stop, stop) ~= "," then
      return cells, text:match("^\r?\n?()", stop)
    end
    at = stop + 1
  end
end

local function count_newlines(text, from, to) return select(2, text:sub(from, to):gsub("\n", "")) end

-- Reads text; `name` stands in messages. Returns { columns = names, rows = { { name = text }... }, line =
-- numbers }.
function csv.parse(text, name)
  text = text:gsub("^\239\187\191", "")
  local out, at, line = { rows = {}, line = {} }, 1, 1
  while at <= #text do
    local cells, next_at = line_at(text, at)
    if not cells then
      return nil, ("%s:%d: a quote that is not closed, or text behind one"):format(name, line)
    end
    if not out.columns then
      out.columns = cells
    elseif #cells > 1 or cells[1] ~= "" then
      if #cells ~= #out.columns then
        return nil, ("%s:%d: %d cells; the header has %d"):format(name, line, #cells, #out.columns)
      end
      local row = {}
      for i, column in ipairs(out.columns) do row[column] = cells[i] end
      out.rows[#out.rows + 1] = row
      out.line[#out.rows] = line
    end
    line = line + count_newlines(text, at, next_at - 1)
    at = next_at
  end
  if not out.columns then return nil, name .. ": is empty; a header would be right" end
  return out
end

function csv.read(path)
  local text, message = file.read(path)
  if not text then return nil, message end
  return csv.parse(text, path)
end

return csv
