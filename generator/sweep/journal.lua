-- The journal of an unfinished sweep: its cells, appended one by one and synced, so that the next sweep
-- resumes. One file per TP size beside the rows, `benchmark.tp{N}.{arch}.csv.part`.
--
-- Its lines are those of conversation/protocol.lua: a head with the fingerprint, then for every finished cell
--   cell op=... dtype=... fusion=... hidden_size=... num_tokens=... mode=... size=... launch=...
--     roundtrip_us=...               (one line)
--   row strategy=... time_us=...      one per strategy with a time
--   none strategy=... reason=...      one per strategy without
--   done
-- A cell counts if its `done` is there. A line that is cut off or cannot be read loses its own cell only.
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local file = require "core.file"
local protocol = require "conversation.protocol"
local system = require "core.system"

local journal = {}
journal.__index = journal

local VERSION = 2
local LOCK_PATIENCE = 5 -- seconds; the ranks of a killed sweep hold its lock until they end

local function head_of(fingerprint, fresh)
  return protocol.line("journal", { { "version", VERSION }, { "fingerprint", fingerprint },
    { "fresh", fresh and 1 or 0 } })
end

local function cell_of(world_size, fields)
  local hidden_size, num_tokens = math.tointeger(fields.hidden_size), math.tointeger(fields.num_tokens)
  local size, launch = math.tointeger(fields.size), math.tointeger(fields.launch)
  if not (hidden_size and num_tokens and size and launch and fields.mode) then return nil end
  return launch, tonumber(fields.roundtrip_us), { world_size = world_size, op = fields.op,
    dtype = fields.dtype, fusion = fields.fusion,
    hidden_size = hidden_size, num_tokens = num_tokens, mode = fields.mode, size = size,
    splits = fields.splits }
end

-- Adds one line to the open cell; returns the cell that is open after it. Calls finish(cell) for a complete
-- one.
local function take(open, world_size, kind, fields, finish)
  if kind == "cell" then
    local launch, roundtrip_us, cell = cell_of(world_size, fields)
    if not roundtrip_us then return nil end
    return { cell = cell, launch = launch, roundtrip_us = roundtrip_us, rows = {}, no_time = {} }
  elseif open and kind == "row" then
    local record = protocol.row_record(open.cell, fields)
    table.insert(open.rows, record)
    return record and open
  elseif open and kind == "none" and fields.strategy and fields.reason then
    table.insert(open.no_time, cell_records.record(open.cell, fields.strategy, { reason = fields.reason }))
    return open
  elseif open and kind == "done" then
    finish(open)
  end
  return nil
end

-- Reads the journal at `path`. Returns { fingerprint, fresh, cells = list of { cell, launch, roundtrip_us,
-- rows, no_time } }; nil without a journal of this version.
function journal.read(path, world_size)
  if not file.exists(path) then return nil end
  local text = fail.unless(file.read(path))
  local found, open
  for line in text:gmatch("([^\n]*)\n") do
    local kind, fields = protocol.parse(line)
    if not found then
      if kind ~= "journal" or fields.version ~= tostring(VERSION) then return nil end
      found = { fingerprint = fields.fingerprint, fresh = fields.fresh == "1", cells = {} }
    else
      open = take(open, world_size, kind, fields, function(cell) table.insert(found.cells, cell) end)
    end
  end
  return found
end

local function write_failure(path, message)
  fail.work("%s: cannot be written: %s; it keeps its cells, and the next sweep resumes there", path, message)
end

local function append(self, text)
  local _, message = self.file:write(text)
  if not message then _, message = system.sync(self.file) end
  if message then write_failure(self.path, message) end
end

-- Opens the journal at `path`, or makes an empty one, and locks it, before it is read. Raises if it cannot be
-- written, or if another sweep has locked it.
function journal.open(path)
  local handle, message = io.open(path, "ab")
  if not handle then fail.work("%s; the sweep needs to write there", message) end
  if not system.lock(handle, LOCK_PATIENCE) then
    fail.work("%s: another sweep is writing it; wait for that one to end", path)
  end
  return setmetatable({ file = handle, path = path }, journal)
end

-- Prepares the journal for `add`: empties it, or, with `continue`, keeps its cells.
function journal:begin(fingerprint, fresh, continue)
  if continue and self.file:seek("end") > 0 then
    append(self, "\n") -- ends a line that was cut off
  else
    fail.unless(io.open(self.path, "wb")):close()
    append(self, head_of(fingerprint, fresh))
  end
end

-- Appends the results of a cell in a launch of a regime ({ launch, roundtrip_us }): its records with a time,
-- and those without (with a reason).
function journal:add(cell, regime, rows, no_time)
  local head = { { "op", cell.op }, { "dtype", cell.dtype },
    { "fusion", cell.fusion }, { "hidden_size", cell.hidden_size }, { "num_tokens", cell.num_tokens },
    { "mode", cell.mode }, { "size", cell.size },
    { "launch", regime.launch }, { "roundtrip_us", ("%.4f"):format(regime.roundtrip_us) } }
  if cell.splits then head[#head + 1] = { "splits", cell.splits } end
  local lines = { protocol.line("cell", head) }
  for _, record in ipairs(rows) do
    lines[#lines + 1] = protocol.line("row", protocol.row_fields(record))
  end
  for _, record in ipairs(no_time) do
    local fields = { { "strategy", record.strategy }, { "reason", record.reason } }
    lines[#lines + 1] = protocol.line("none", fields)
  end
  lines[#lines + 1] = "done\n"
  append(self, table.concat(lines))
  self.holds_cells = true
end

-- Closes the journal, which stays for the next sweep.
function journal:close() self.file:close() end

-- Removes the journal while it is still locked.
function journal:remove()
  os.remove(self.path)
  self.file:close()
end

return journal
