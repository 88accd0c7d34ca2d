-- The lines of a bench in `gentables tune`, checked: its candidates, the outcomes of trials, and the answers
-- of a pass. A line that the bench may not print raises, because a bench that is wrong in one line may be
-- wrong in others. Lines of no known kind are text that libraries print; they are ignored.
--
--   local pass = answers.of_pass(job, cells)     -- cells with `requests`, as sent
--   pass:take(kind, fields, line)                -- for each line
--   pass:finish()                                -- at the end: each request has an answer
local columns = require "lists.columns"
local epilogue_ways = require "tune.epilogue_ways"
local fail = require "base.fail"
local lists = require "lists.lists"
local numbers = require "base.numbers"
local protocol = require "conversation.protocol"
local sorted_keys = require("base.ordering").sorted_keys
local to_rows = require "tune.to_rows"

local answers = {}
answers.__index = answers

local function refuse(job, problem, line)
  local where = line and " in its line: " .. protocol.shown(line) or ""
  fail.work("%s: %s%s; build it and gentables from the same tree", job.program, problem, where)
end

-- The beginnings of lines that gentables needs. Such a line that cannot be parsed is damaged.
local needed = { "candidate name=", "libraries hash=", "trial strategy=", "row id=", "none id=",
  "pass total_us=" }

-- Raises if a line that is not of the protocol begins as one of the protocol.
function answers.check_text(job, line)
  for _, beginning in ipairs(needed) do
    if line:sub(1, #beginning) == beginning then refuse(job, "damaged fields", line) end
  end
end

-- ---- candidates -------------------------------------------------------------------------------

local function flag(text)
  if text == "1" then return true end
  if text == "0" then return false end
end

local function ops_of(text)
  local ops = {}
  for op in text:gmatch("[^,]+") do
    if not lists.find("ops", op) then return nil, ("%s is no op"):format(op) end
    ops[op] = true
  end
  return ops
end

local function candidate_of(fields)
  if not (fields.name or ""):find("^[%w_]+$") then return nil, "no name of a candidate" end
  local is_plugin, is_usual = flag(fields.plugin), flag(fields.usual)
  if is_plugin == nil or is_usual == nil then return nil, "plugin and usual must be 0 or 1" end
  if not fields.ops then return nil, "no ops" end
  local ops, problem = ops_of(fields.ops)
  if not ops then return nil, problem end
  return { name = fields.name, plugin = is_plugin, usual = is_usual, ops = ops, parameters = fields.reason }
end

-- The candidate of a `candidate` line: { name, plugin, usual, ops, parameters }. `known`: those before it, by
-- name.
function answers.candidate(job, known, fields, line)
  local row, problem = candidate_of(fields)
  if not row then refuse(job, problem, line) end
  if known[row.name] then refuse(job, ("a second candidate %s"):format(row.name), line) end
  return row
end

-- The hash of a `libraries` line.
function answers.libraries(job, fields, line)
  if not (fields.hash or ""):find("^%x+$") then refuse(job, "no hash of its libraries", line) end
  return fields.hash
end

-- ---- trials -----------------------------------------------------------------------------------

local outcomes = { passed = true, failed = true, uncalled = true }

-- Checks a `trial` line. Returns its `untried`, bytes or nil.
function answers.trial(job, fields, line)
  if not job.candidates[fields.strategy or ""] then refuse(job, "a candidate that it does not list", line) end
  if not outcomes[fields.status or ""] then refuse(job, "no outcome", line) end
  if fields.status ~= "passed" and not fields.reason then refuse(job, "no reason", line) end
  local untried = fields.untried and numbers.whole(fields.untried, 1, math.maxinteger)
  if fields.untried and not untried then refuse(job, "untried must be a number of bytes", line) end
  return untried
end

-- ---- a pass -----------------------------------------------------------------------------------

local optional_numbers = { "mean_of_max_us", "max_of_means_us", "mean_us", "op_us" }
local costs = { "total_us", "calls_us", "op_total_us", "op_calls_us" }
local ways_of_host = { "fused", "separate", "alone" }

-- The texts for which a cell has one answer each: candidate and epilogue on the host, candidate and fusion on
-- GPUs.
local function open_of(job, cell)
  local open = {}
  for _, request in ipairs(cell.requests) do
    local ways = cell.fusion and ways_of_host or { "none" }
    if job.backend ~= "host" then ways = { request.fusion or "NONE" } end
    for _, name in ipairs(request.names) do
      for _, way in ipairs(ways) do open[name .. " " .. way] = true end
    end
  end
  return open
end

-- The answers to the requests of these cells.
function answers.of_pass(job, cells)
  local open = {}
  for id, cell in ipairs(cells) do open[id] = open_of(job, cell) end
  return setmetatable({ job = job, cells = cells, open = open }, answers)
end

-- The entry of a `row` line; or nil, the error in it.
local function entry_of(cell, fields)
  local shape = setmetatable({ mode = to_rows.MODE }, { __index = cell })
  local record, problem = protocol.row_record(shape, fields)
  if not record then return nil, problem end
  local entry = { accumulate = record.accumulate, placement = record.placement, place = fields.place }
  for _, column in ipairs(columns) do
    if column.bench and not column.names then entry[column.key] = record[column.key] end
  end
  for _, key in ipairs(optional_numbers) do
    entry[key] = fields[key] and numbers.finite(fields[key])
    if fields[key] and not entry[key] then return nil, ("%s=%s"):format(key, fields[key]) end
  end
  local is_place = fields.place == nil or fields.place == "in" or fields.place == "out"
  return is_place and entry or nil, ("place=%s"):format(fields.place)
end

-- The cell that a line answers; its request is not open any more.
local function answered(self, fields, line)
  local id = numbers.whole(fields.id, 1, #self.cells)
  local of = ("%s %s"):format(fields.strategy, fields.epilogue or fields.fusion)
  local is_open = id and self.open[id][of]
  if is_open == nil then refuse(self.job, "an answer without a request", line) end
  if not is_open then refuse(self.job, "a second answer to a request", line) end
  self.open[id][of] = false
  return self.cells[id]
end

local function take_answer(self, kind, fields, line)
  local cell = answered(self, fields, line)
  local strategy, epilogue = fields.strategy, fields.epilogue
  if not epilogue then
    strategy, epilogue = epilogue_ways.kind(self.job, cell, fields.fusion, strategy)
  end
  if kind == "none" then
    if not fields.reason then refuse(self.job, "no reason", line) end
    table.insert(cell.fresh_no_time, { strategy = strategy, epilogue = epilogue, reason = fields.reason })
    return
  end
  local entry, problem = entry_of(cell, fields)
  if not entry then refuse(self.job, problem, line) end
  entry.strategy, entry.epilogue = strategy, epilogue
  table.insert(cell.fresh, entry)
end

local function take_cost(self, fields, line)
  self.cost = {}
  for _, key in ipairs(costs) do
    self.cost[key] = numbers.finite(fields[key])
    if not self.cost[key] then refuse(self.job, ("%s=%s"):format(key, tostring(fields[key])), line) end
  end
end

-- Takes a line of the pass: answers go to `fresh` and `fresh_no_time` of their cells, the cost of the pass to
-- `cost`.
function answers:take(kind, fields, line)
  if kind == "row" or kind == "none" then take_answer(self, kind, fields, line) end
  if kind == "pass" then take_cost(self, fields, line) end
end

-- Raises if a request has no answer after a pass that ended well.
function answers:finish()
  for id, cell in ipairs(self.cells) do
    for _, of in ipairs(sorted_keys(self.open[id])) do
      if self.open[id][of] then
        refuse(self.job, ("no answer for %s of %d bytes by %s"):format(cell.op, cell.size, of:match("^%S+")))
      end
    end
  end
  if not self.cost then refuse(self.job, "no line on the cost of the pass") end
end

return answers
