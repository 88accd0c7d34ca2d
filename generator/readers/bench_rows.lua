-- A transcript of gentables-bench --serve: requests and answers (bench/protocol/protocol.h). verify.sh writes
-- one on a machine that has only the bench. A file that was cut off has the rows up to the cut.
local backends = require "conversation.backends"
local cell_records = require "rows.cell_records"
local lists = require "lists.lists"
local protocol = require "conversation.protocol"

local NAMES_OF_REQUEST = { op = "ops", dtype = "dtypes", fusion = "fusions", mode = "modes" }
-- The fields of the greeting that identify a bench and its machine.
local FACTS = { "bench", "isa", "compiler", "library" }

-- The cell of a request, without the number of ranks.
local function cell_of(source, line, fields)
  local cell = { hidden_size = source:whole(line, "hidden_size", fields.hidden_size),
    num_tokens = source:whole(line, "num_tokens", fields.num_tokens) }
  for name, kind in pairs(NAMES_OF_REQUEST) do cell[name] = source:name(line, kind, name, fields[name]) end
  cell.size = cell.hidden_size * cell.num_tokens * lists.find("dtypes", cell.dtype).bytes
  return cell
end

local function greet(source, line, fields, out)
  if not protocol.reads[fields.protocol or ""] then
    source:fail(line, "has protocol %s; protocol 2 or %d is required", tostring(fields.protocol),
      protocol.version)
  end
  out.world_size = source:world_size(source:whole(line, "world_size", fields.world_size), line)
  out.ranks = source:placement(line, out.world_size, source:whole(line, "nodes", fields.nodes or "1"))
  for _, name in ipairs(FACTS) do out.facts[name] = fields[name] end
  out.facts.machine = backends.gpu(fields.library or "")
end

-- The cell of an answer.
local function cell_of_answer(source, line, fields, out)
  local cell = out.cells[fields.id or ""]
  if not out.world_size then source:fail(line, "an answer before the greeting (hello)") end
  if not cell then source:fail(line, "an answer without a request: id=%s", tostring(fields.id)) end
  for name, value in pairs(out.ranks) do cell[name] = value end
  return cell
end

local take = {}

function take.measure(source, line, fields, out)
  out.cells[fields.id or ""] = cell_of(source, line, fields)
end

take.hello = greet

function take.device(_, _, fields, out) table.insert(out.devices, fields) end

function take.row(source, line, fields, out)
  local cell = cell_of_answer(source, line, fields, out)
  fields.strategy = source:name(line, "strategies", "strategy", fields.strategy)
  local record, problem = protocol.row_record(cell, fields)
  if not record then source:fail(line, "a row with %s", problem) end
  record.line = line
  out.rows[#out.rows + 1] = record
end

function take.none(source, line, fields, out)
  local cell = cell_of_answer(source, line, fields, out)
  out.no_time[#out.no_time + 1] =
    cell_records.record(cell, fields.strategy, { reason = fields.reason or "no reason given" })
end

return function(source)
  local out = { rows = {}, no_time = {}, facts = {}, devices = {}, cells = {} }
  local is_whole = source.text:sub(-1) == "\n"
  local _, count = source.text:gsub("\n", "\n")
  for line, text in source:lines(true) do
    local kind, fields = protocol.parse(text)
    if line > count and not is_whole then
      source:leave_out("a line that is cut off")
    elseif kind and take[kind] then
      take[kind](source, line, fields, out)
    end
  end
  if not out.world_size then source:fail(nil, "has no greeting of gentables-bench --serve (hello)") end
  return out
end
