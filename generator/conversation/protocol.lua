-- The lines that sweep and bench exchange, protocol 3: a line is a kind and `name=value` fields with one
-- space between; a field named reason, library, device, note or folder comes last and takes the rest of the
-- line. After `quit` the bench may print its devices once more, in their last state. The sweep's journal has
-- the same lines. This module is about text only; bench.lua has the process.
local cell_records = require "rows.cell_records"
local columns = require "lists.columns"
local lists = require "lists.lists"
local numbers = require "base.numbers"
local rows = require "core.rows"
local system = require "core.system"

-- `reads`: the versions of stored answers that can be read; those of 2 are of ranks on one node.
local protocol = { version = 3, reads = { ["2"] = true, ["3"] = true } }

local takes_the_rest = { reason = true, library = true, device = true, note = true,
  folder = true }

-- line -> kind, fields (texts); or nil where it is not of that form.
function protocol.parse(line)
  local kind, at = line:match("^(%l[%l_]*)()")
  if not kind then return nil end
  local fields = {}
  while at <= #line do
    local name, start = line:match("^ ([%l_][%l%d_]*)=()", at)
    if not name or fields[name] then return nil end
    if takes_the_rest[name] then
      fields[name], at = line:sub(start), #line + 1
    else
      fields[name], at = line:match("^([^ ]*)()", start)
    end
  end
  return kind, fields
end

local SHOWN = 160 -- bytes

-- A line of a bench for messages: its beginning, without bytes that a terminal may interpret.
function protocol.shown(line) return (line:sub(1, SHOWN):gsub("[%c\128-\255]", "?")) end

-- The round trip in fields of the bench, in microseconds; nil without a valid one.
function protocol.roundtrip_us(fields)
  local number = numbers.finite(fields.roundtrip_us)
  return number and number >= 0 and number <= rows.TIME_MOST_US and number + 0.0 or nil
end

local function in_one_line(text) return (tostring(text):gsub("%c+", " ")) end

-- Builds a line, with its newline. `fields` is a list of { name, value }.
function protocol.line(kind, fields)
  local out = { kind }
  for i, field in ipairs(fields) do out[i + 1] = field[1] .. "=" .. in_one_line(field[2]) end
  return table.concat(out, " ") .. "\n"
end

-- The seed of a cell's data: always the same, so that the bits of results can be compared between launches.
local function seed_of(cell)
  return tonumber(system.hash(cell_records.key(cell_records.record(cell))):sub(1, 8), 16)
end

-- The reason for strategies without a time when a request's left_us were over.
protocol.BUDGET_SPENT = "budget spent"

-- The request to measure `strategies` in `cell`, which has a hidden size and tokens, or only a count of
-- elements (of the larger buffer). `limits` has min_samples, max_samples, cell_us and precision, and, with a
-- budget, left_us: the time until the answer at most.
function protocol.request(id, cell, strategies, limits)
  local by_bytes = cell.count and { "count", cell.count }
  local fields = {
    { "id", id }, { "op", cell.op }, { "dtype", cell.dtype }, { "fusion", cell.fusion },
    by_bytes or { "hidden_size", cell.hidden_size }, not by_bytes and { "num_tokens", cell.num_tokens },
    { "mode", cell.mode },
    { "min_samples", limits.min_samples }, { "max_samples", limits.max_samples },
    { "budget_us", limits.cell_us }, { "precision", limits.precision }, { "seed", seed_of(cell) },
    { "strategies", table.concat(strategies, ",") },
  }
  if by_bytes then table.remove(fields, 6) end
  if cell.splits then table.insert(fields, 3, { "splits", cell.splits }) end
  if limits.left_us then table.insert(fields, #fields, { "left_us", limits.left_us }) end
  return protocol.line("measure", fields)
end

-- The columns of a `row` line of the bench, apart from cell and strategy: numbers, and names.
local row_numbers, row_names = {}, {}
for _, column in ipairs(columns) do
  if column.bench then table.insert(column.names and row_names or row_numbers, column) end
end

local BITS_DIGITS = 16
local MOST_COUNT = 1 << 27 -- so many in each of rows.LAUNCHES_MAX launches fit in a row

local function read_number(column, text)
  if column.whole then return numbers.whole(text, column.least, MOST_COUNT) end
  local number = numbers.finite(text)
  local least = column.above and rows.TIME_LEAST_US or 0
  return number and number >= least and number <= rows.TIME_MOST_US and number + 0.0 or nil
end

-- The record of a `row` line about `cell`; or nil, the error in it.
function protocol.row_record(cell, fields)
  local record = cell_records.record(cell, fields.strategy, { size = cell.size })
  for _, column in ipairs(row_numbers) do
    local key = column.key
    record[key] = read_number(column, fields[key])
    local is_left_out = column.bench == "sometimes" and fields[key] == nil
    if not record[key] and not is_left_out then return nil, ("%s=%s"):format(key, tostring(fields[key])) end
  end
  for _, column in ipairs(row_names) do
    local name = fields[column.key]
    if not lists.has(column.names, name) then return nil, ("%s=%s"):format(column.key, tostring(name)) end
    record[column.key] = name
  end
  if not (fields.bits or ""):find("^%x+$") or #fields.bits > BITS_DIGITS then
    return nil, "bits=" .. tostring(fields.bits)
  end
  record.bits = fields.bits:find("^0+$") and "varies" or fields.bits
  if record.mode ~= cell.mode then return nil, "mode=" .. record.mode end
  if record.low_us > record.time_us or record.high_us < record.time_us then
    return nil, "a median outside its interval"
  end
  return record
end

-- The fields of such a line, for protocol.line.
function protocol.row_fields(record)
  local fields = { { "strategy", record.strategy } }
  for _, column in ipairs(row_numbers) do
    local value = record[column.key]
    if value then fields[#fields + 1] = { column.key, column.whole and value or ("%.4f"):format(value) } end
  end
  fields[#fields + 1] = { "bits", record.bits ~= "varies" and record.bits or "0" }
  for _, column in ipairs(row_names) do fields[#fields + 1] = { column.key, record[column.key] } end
  return fields
end

return protocol
