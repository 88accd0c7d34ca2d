-- The results of `gentables tune` as rows, in the form of a sweep's: each candidate of a cell without an
-- epilogue, and with it in its faster way, fused or separate. Files of rows and choice.lua use them.
local columns = require "lists.columns"
local lists = require "lists.lists"
local rows = require "core.rows"

local to_rows = {}

to_rows.MODE = "eager"

-- The name of a candidate in rows and tables.
function to_rows.name(job, name)
  return (job.candidates[name].plugin and lists.plugin_prefix or "") .. name
end

-- The entries of a cell that become rows: of an epilogue's two ways the faster one.
local function entries_of(cell)
  local entries, by_kind = {}, cell.by_kind
  for _, entry in ipairs(cell.ranked) do
    local other = entry.epilogue == "separate" and by_kind[entry.strategy .. " fused"]
      or entry.epilogue == "fused" and by_kind[entry.strategy .. " separate"]
    local is_first = not other or entry.time_us < other.time_us
      or entry.time_us == other.time_us and entry.epilogue == "fused"
    if is_first then entries[#entries + 1] = entry end
  end
  return entries
end

local function record_of(job, cell, entry)
  local first, by_kind = entry.first, cell.by_kind
  local has_epilogue = entry.epilogue == "fused" or entry.epilogue == "separate"
  local has_both = has_epilogue and by_kind[entry.strategy .. " fused"]
  local separate = has_both and by_kind[entry.strategy .. " separate"]
  local alone = has_epilogue and by_kind[entry.strategy .. " alone"]
  local record = { world_size = cell.world_size, dtype = cell.dtype, size = cell.size,
    op = cell.op, num_tokens = cell.num_tokens, hidden_size = cell.num_tokens and cell.hidden_size,
    strategy = to_rows.name(job, entry.strategy), fusion = has_epilogue and cell.fusion or "NONE",
    nodes = job.nodes > 1 and job.nodes or nil,
    ranks_per_node = job.nodes > 1 and cell.world_size // job.nodes or nil,
    mode = to_rows.MODE, launches = entry.launches, splits = cell.splits,
    separate_us = separate and separate.time_us or nil, alone_us = alone and alone.time_us or nil }
  for _, column in ipairs(columns) do
    if column.bench and record[column.key] == nil then record[column.key] = first[column.key] end
  end
  record.time_us, record.low_us, record.high_us = entry.time_us, entry.low_us, entry.high_us
  return record
end

-- Whether a row can hold the cell's size.
function to_rows.fits(cell) return cell.num_tokens ~= nil or cell.size < rows.HIDDEN_SIZE_NONE end

-- The rows of one number of ranks.
function to_rows.records(job, world_size)
  local records = {}
  for _, cell in ipairs(job.cells) do
    if cell.world_size == world_size and to_rows.fits(cell) then
      for _, entry in ipairs(entries_of(cell)) do records[#records + 1] = record_of(job, cell, entry) end
    end
  end
  return records
end

return to_rows
