-- The journal of an unfinished sweep: its cells, appended one by one and synced, so that the next sweep
-- resumes. Each file of rows has one beside it, such as `benchmark.tp{N}.{arch}.csv.part`.
--
-- Its lines are those of conversation/protocol.lua: a head with the fingerprint, then for every finished cell
--   cell op=... dtype=... fusion=... hidden_size=... num_tokens=... mode=... size=... launch=...
--     roundtrip_us=...               (one line)
--   row strategy=... time_us=...      one per strategy with a time
--   none strategy=... reason=...      one per strategy without
--   done sum=...                      a hash of the lines before, from `cell` on
-- A record without its `done`, with other lines than those of its sum, or with values that no sweep writes is
-- damaged: it does not count, and the others do. The head has a sum too.
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local file = require "core.file"
local limits = require "core.rows"
local lists = require "lists.lists"
local numbers = require "base.numbers"
local protocol = require "conversation.protocol"
local splits = require "lists.splits"
local system = require "core.system"

local journal = {}
journal.__index = journal

local VERSION = 3
local MOST_LAUNCHES = 1000000
local LOCK_PATIENCE = 5 -- seconds; the ranks of a killed sweep hold its lock until they end

local function with_sum(kind, text) return text .. protocol.line(kind, { { "sum", system.hash(text) } }) end

local function head_of(fingerprint, fresh)
  return with_sum("begin", protocol.line("journal", { { "version", VERSION }, { "fingerprint", fingerprint },
    { "fresh", fresh and 1 or 0 } }))
end

-- ---- reading ----------------------------------------------------------------------------------

-- An iterator over the lines of `text` that have an end: line, position of its start, position after its end.
local function lines_of(text)
  local at = 1
  return function()
    local from, stop = at, text:find("\n", at, true)
    if not stop then return nil end
    at = stop + 1
    return text:sub(from, stop - 1), from, at
  end
end

-- The head of a journal, and the position after it; nil and the reason why the journal cannot be used.
local function read_head(text)
  local first, sum = text:match("^([^\n]*\n)([^\n]*\n)")
  local kind, fields = protocol.parse((first or ""):sub(1, -2))
  if kind ~= "journal" then return nil, "not used, because it does not begin as a journal" end
  if fields.version ~= tostring(VERSION) then
    return nil, ("not used, because it is of version %s, and not %d"):format(fields.version or "?", VERSION)
  end
  if first .. sum ~= with_sum("begin", first) then
    return nil, "not used, because its first lines are damaged"
  end
  return { fingerprint = fields.fingerprint, fresh = fields.fresh == "1", cells = {} }, #first + #sum + 1
end

-- The cell of a `cell` line; nil if there is no such cell.
local function cell_of(ranks, fields)
  local cell = cell_records.record(ranks, nil, { op = fields.op, dtype = fields.dtype, fusion = fields.fusion,
    hidden_size = numbers.whole(fields.hidden_size, 1, limits.SHAPE_MOST),
    num_tokens = numbers.whole(fields.num_tokens, 1, limits.SHAPE_MOST), mode = fields.mode,
    size = numbers.whole(fields.size, 1, math.maxinteger), splits = fields.splits })
  local is_listed = lists.has("ops", cell.op) and lists.has("dtypes", cell.dtype)
    and lists.has("fusions", cell.fusion) and lists.has("modes", cell.mode)
  local is_shaped = cell.hidden_size and cell.num_tokens and (not cell.splits or splits.read(cell.splits))
  if not (is_listed and is_shaped) then return nil end
  local size = cell.hidden_size * cell.num_tokens * lists.find("dtypes", cell.dtype).bytes
  return cell.size == size and cell or nil
end

-- The cell of a `cell` line as an entry without results; nil if its values are not of one cell.
local function entry_of(ranks, fields)
  local cell, roundtrip_us = cell_of(ranks, fields), protocol.roundtrip_us(fields)
  local launch = numbers.whole(fields.launch, 1, MOST_LAUNCHES)
  if not (cell and launch and roundtrip_us) then return nil end
  return { cell = cell, launch = launch, roundtrip_us = roundtrip_us, rows = {}, no_time = {}, seen = {} }
end

-- Adds a line to the entry; returns it, or nil if the line cannot be read, or is the second one of a
-- strategy.
local function add_line(entry, kind, fields)
  local strategy = fields.strategy
  if not lists.has("strategies", strategy) or entry.seen[strategy] then return nil end
  entry.seen[strategy] = true
  if kind == "row" then
    local record = protocol.row_record(entry.cell, fields)
    table.insert(entry.rows, record)
    return record and entry
  elseif kind == "none" and fields.reason then
    table.insert(entry.no_time, cell_records.record(entry.cell, strategy, { reason = fields.reason }))
    return entry
  end
end

-- The entry of a record's lines; nil if one cannot be read.
local function entry_from(ranks, text)
  local entry
  for line, from in lines_of(text) do
    local kind, fields = protocol.parse(line)
    if from == 1 then
      entry = kind == "cell" and entry_of(ranks, fields)
    else
      entry = add_line(entry, kind, fields or {})
    end
    if not entry then return nil end
  end
  return entry
end

-- Reads the journal at `path`, of these ranks: { world_size, nodes and ranks_per_node (nil on one node) }.
-- Returns { fingerprint, fresh, cells = list of { cell, launch, roundtrip_us, rows, no_time }, damaged = the
-- number of records that do not count }; nil without a file or with an empty one; nil and the reason if it is
-- no journal of this version. The time is proportional to its length.
function journal.read(path, ranks)
  local text = file.exists(path) and fail.unless(file.read(path)) or ""
  if text == "" then return nil end
  local found, at = read_head(text)
  if not found then return nil, at end
  text = text:sub(at)
  local begin, after -- positions: the start of the unfinished record; the end of the last line
  found.damaged, after = 0, 1
  for line, from, to in lines_of(text) do
    local starts, ends = line:find("^cell "), line:find("^done")
    if begin and starts then found.damaged, begin = found.damaged + 1, from end
    if not begin and line ~= "" then begin = from end
    if begin and ends then
      local record = text:sub(begin, from - 1)
      local entry = text:sub(begin, to - 1) == with_sum("done", record) and entry_from(ranks, record)
      if entry then table.insert(found.cells, entry) else found.damaged = found.damaged + 1 end
      begin = nil
    end
    after = to
  end
  if begin or after <= #text then found.damaged = found.damaged + 1 end
  return found
end

-- ---- writing ----------------------------------------------------------------------------------

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
  append(self, with_sum("done", table.concat(lines)))
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
