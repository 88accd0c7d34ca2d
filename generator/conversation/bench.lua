-- The generator's side of the conversation with the bench: starts it under a launcher, sends requests, checks
-- every answer, ends it.
--
-- If the bench dies, hangs or breaks the protocol, the result is a failure { reason, detail, strategy,
-- is_final }: `reason` may be written to a file, `detail` (the last lines of stderr) is for the terminal
-- only, `strategy` is the one that ran, if the bench named it. `is_final`, at a start: another start would
-- fail likewise. A signal to gentables ends the bench and raises with 128 + its number. protocol.lua has the
-- lines.
local cell_records = require "rows.cell_records"
local child_process = require "system.child_process"
local fail = require "base.fail"
local launcher = require "conversation.launcher"
local lists = require "lists.lists"
local process = require "core.process"
local protocol = require "conversation.protocol"

local bench = {}
bench.__index = bench

-- Seconds. A launcher that ends its ranks on a busy machine takes some, and leaves files if it is cut off.
local VERSION_PATIENCE, GRACE = 30, 10
local TURN_S = 0.01 -- to wait for a line, before other benches get their turn
-- Seconds of NCCL for its first communicator: FIRST_S of bench/cuda/communicator.c.
local FIRST_COMMUNICATOR = 60

-- Runs `program --version`, without a launcher. Returns { protocol, hash, isa, compiler }, and its library.
function bench.identify(program)
  local ran = child_process.run({ program, "--version" }, { seconds = VERSION_PATIENCE })
  if ran.problem == "start" then
    local where = program:find("-cuda", 1, true) and "CUDA and NCCL are found: build again"
      or "MPI is found: install Open MPI, build again"
    fail.input("no bench (%s); it is built where %s", ran.reason, where)
  end
  local line = ran.lines[1]
  local _, fields = protocol.parse(((line or ""):gsub("^gentables%-bench", "bench")))
  if not ran.well then
    fail.input("%s --version: %s: %s", program, ran.reason, child_process.last_line(ran.errors) or
      "no message; if the next run fails likewise, build it and gentables from the same tree")
  end
  if not fields or not (fields.protocol and fields.bench and fields.library) then
    fail.input("%s --version prints no bench's line (%s); build it and gentables from the same tree", program,
      line or "no line")
  end
  return { protocol = math.tointeger(fields.protocol) or 0, hash = fields.bench,
    isa = fields.isa or "unknown", compiler = fields.compiler or "unknown" }, fields.library
end

-- ---- failures ---------------------------------------------------------------------------------

-- The cause of the end, from stderr, in one line: the bench's own message, else the launcher's about a node
-- or a rank, else the first paragraph that Open MPI puts under a rule, else the last lines.
local function last_words(errors)
  local lines = {}
  for line in errors:gmatch("[^\n]+") do
    line = line:gsub("%c", " ")
    local own = line:match("^gentables%-bench: (.+)")
    if own then return own end
    if line:find("%w") and not launcher.is_warning(line) then lines[#lines + 1] = line end
  end
  return launcher.cause(errors) or table.concat(lines, " / ", math.max(1, #lines - 2))
end

-- Waits for the end of all its processes, or ends them, as child_process.finish does, and returns the same.
local function close(self, problem)
  local ended = child_process.finish(self.child, problem, GRACE)
  self.has_ended = true
  launcher.remove_segments(self.segments)
  if not ended.well then launcher.remove_session_folder(self.child:pid()) end
  child_process.raise_if_interrupted("to resume, run the same command")
  return ended
end

-- Ends the bench. Returns nil and the failure.
local function failure(self, problem)
  local ended = close(self, problem)
  local reasons = {
    ["end"] = ("the bench died: %s"):format(ended.reason),
    timeout = ("the bench did not answer within %g s"):format(self.waited),
  }
  return nil, { reason = reasons[problem] or problem, detail = ended.stopped or last_words(ended.errors) }
end

local RULE, MESSAGE_LINES = "^%-%-%-%-%-+$", 20

-- The failure of a launcher with a message among the output of its ranks, as Open MPI's daemons print it: a
-- rule, lines, and another rule.
local function launcher_failure(self)
  local words = {}
  while #words < MESSAGE_LINES do
    local line = self.child:read_line(1)
    if not line or line:find(RULE) then break end
    words[#words + 1] = line:match("%S.*")
  end
  local _, what = failure(self, "the launcher failed")
  if what.detail == "" then what.detail = protocol.shown(table.concat(words, " ")) end
  return nil, what
end

-- `line`: one that no bench prints.
local function nonsense(self, line)
  if line:find(RULE) then return launcher_failure(self) end
  return failure(self, ("the bench wrote a line that protocol %d does not have: %s"):format(protocol.version,
    protocol.shown(line)))
end

-- The next line of a child. In a coroutine, as of sweep/concurrent_groups.lua, others go on while it has
-- none.
local function next_line(child, seconds)
  if not coroutine.isyieldable() then return child:read_line(seconds) end
  local ends_at = process.now() + seconds
  local line, problem
  repeat
    line, problem = child:read_line(TURN_S)
    if line or problem ~= "timeout" then return line, problem end
    coroutine.yield()
  until process.now() > ends_at
  return nil, problem
end

-- The next line as kind, fields, line; or nil and a failure.
local function read(self, seconds)
  self.waited = seconds
  local line, problem = next_line(self.child, seconds)
  if not line then return failure(self, problem) end
  local kind, fields = protocol.parse(line)
  if not kind then return nonsense(self, line) end
  if kind == "error" then
    local _, what = failure(self, "the bench reports: " .. (fields.reason or "error"))
    what.strategy, what.is_final = fields.strategy, true
    return nil, what
  end
  return kind, fields, line
end

-- ---- start ------------------------------------------------------------------------------------

-- The failure of a bench with another protocol or identity than expected.
local function mismatch(self, text)
  local _, what = failure(self, text)
  what.is_final = true
  return nil, what
end

local function nodes_of(count) return count == "1" and "1 node" or (count or "?") .. " nodes" end

local function check_hello(self, fields, line)
  if fields.protocol ~= tostring(protocol.version) then
    return mismatch(self, ("the bench has protocol %s, gentables %d; build both from the same tree")
      :format(fields.protocol or "?", protocol.version))
  end
  if fields.bench ~= self.identity.hash then
    return mismatch(self, ("the launcher started bench %s, and not %s"):format(fields.bench or "?",
      self.identity.hash))
  end
  if fields.world_size ~= tostring(self.world_size) then
    return mismatch(self, ("the launcher started %s ranks, not %d"):format(fields.world_size or "?",
      self.world_size))
  end
  if fields.nodes ~= tostring(self.nodes) then
    return mismatch(self, ("the launcher placed %d ranks on %s, not on %d; --launcher can place them by "
      .. "{nodes}, {ranks_per_node} and {hosts}"):format(self.world_size, nodes_of(fields.nodes), self.nodes))
  end
  self.roundtrip_us = protocol.roundtrip_us(fields)
  if not lists.has("placements", fields.placement) or not self.roundtrip_us then
    return nonsense(self, line)
  end
  self.placement = fields.placement
  return true
end

local function take_strategy(self, fields, line)
  if fields.status == "available" then
    self.unavailable[fields.name] = nil
  elseif fields.status == "unavailable" and fields.reason then
    self.unavailable[fields.name] = "unavailable: " .. fields.reason
  else
    return nonsense(self, line)
  end
  return true
end

local function greet(self)
  local kind, fields, line = read(self, self.start_patience)
  if kind == "segments" then
    self.segments = fields
    kind, fields, line = read(self, self.start_patience)
  end
  if not kind then return nil, fields end
  if kind ~= "hello" then return nonsense(self, line) end
  local ok, problem = check_hello(self, fields, line)
  while ok do
    kind, fields, line = read(self, self.start_patience)
    if not kind then return nil, fields end
    if kind == "ready" then return self end
    if kind == "device" and not fields.at_end then
      table.insert(self.devices, fields)
    elseif kind ~= "strategy" or not fields.name then
      return nonsense(self, line)
    else
      ok, problem = take_strategy(self, fields, line)
    end
  end
  return nil, problem
end

-- Starts a bench of `world_size` ranks: { command = the launcher's words, program, world_size, nodes (where
-- the ranks must be; nil: 1), identity (of bench.identify), arguments (of the program, or nil), patience
-- (seconds to wait for an answer beyond the time that a request allows; ranks wait half as long for each
-- other, so that they can name the rank that hangs), start_patience (seconds to wait for each line of the
-- start), strategies (that requests may name), environment ("NAME=VALUE"..., or nil) }. Returns it, with
-- `placement`, `roundtrip_us`, `devices` and `unavailable` (strategy -> reason); or nil and a failure.
function bench.start(options)
  local argv = table.move(options.command, 1, #options.command, 1, {})
  local timeout = ("%.17g"):format(options.patience / 2)
  table.move({ options.program, "--serve", "--timeout", timeout }, 1, 4, #argv + 1, argv)
  local arguments = options.arguments or {}
  table.move(arguments, 1, #arguments, #argv + 1, argv)
  local child, message = process.start(argv, options.environment)
  if not child then
    return nil, { reason = "cannot be started: " .. message, detail = "", is_final = true }
  end
  local self = setmetatable({ child = child, world_size = options.world_size, nodes = options.nodes or 1,
    identity = options.identity, patience = options.patience, start_patience = options.start_patience,
    unavailable = {}, devices = {} }, bench)
  for _, strategy in ipairs(options.strategies) do
    self.unavailable[strategy] = "unavailable: the bench does not have it"
  end
  return greet(self)
end

-- ---- cells ------------------------------------------------------------------------------------

-- Takes an answer into `result`; returns true, or nil and the error in it.
local function take_answer(result, cell, kind, fields)
  local strategy = fields.strategy
  if not strategy or not result.open[strategy] then return nil, "a strategy that was not requested" end
  if kind == "row" then
    local record, problem = protocol.row_record(cell, fields)
    if not record then return nil, problem end
    table.insert(result.rows, record)
  elseif fields.reason then
    table.insert(result.no_time, cell_records.record(cell, strategy, { reason = fields.reason }))
  else
    return nil, "no reason"
  end
  result.open[strategy] = nil
  return true
end

-- The seconds to wait for each answer to a request. The first one that names NCCL may take longer.
local function answer_seconds(self, strategies, limits)
  local seconds = limits.cell_us / 1e6 + self.patience
  if self.has_nccl then return seconds end
  for _, strategy in ipairs(strategies) do
    self.has_nccl = self.has_nccl or strategy:find("^NCCL") ~= nil
  end
  return seconds + (self.has_nccl and FIRST_COMMUNICATOR or 0)
end

-- Sends the request to measure `strategies` in `cell` with `limits` (of protocol.request); bench:answers must
-- follow. Returns true; or nil and a failure, after which this bench has ended.
function bench:send(id, cell, strategies, limits)
  local seconds = answer_seconds(self, strategies, limits)
  self.asked = { id = id, cell = cell, strategies = strategies, seconds = seconds }
  self.waited = seconds
  local written, problem = self.child:write(protocol.request(id, cell, strategies, limits), self.patience)
  if not written then return failure(self, problem) end
  return true
end

-- Reads the answers to the last request. Calls on_row(record) as rows come. Returns { rows, no_time }, each
-- strategy in one of them, and updates self.roundtrip_us; or nil and a failure, after which this bench has
-- ended.
function bench:answers(on_row)
  local asked, result = self.asked, { rows = {}, no_time = {}, open = {} }
  local cell = asked.cell
  for _, strategy in ipairs(asked.strategies) do result.open[strategy] = true end
  while true do
    local kind, fields, line = read(self, asked.seconds)
    if not kind then return nil, fields end
    if fields.id ~= tostring(asked.id) then return nonsense(self, line) end
    if kind == "done" then
      self.roundtrip_us = protocol.roundtrip_us(fields)
      if not self.roundtrip_us then return nonsense(self, line) end
      break
    end
    if kind ~= "row" and kind ~= "none" then return nonsense(self, line) end
    local taken, wrong = take_answer(result, cell, kind, fields)
    if not taken then
      return failure(self, ("the bench sent an invalid answer: %s in: %s"):format(wrong,
        protocol.shown(line)))
    end
    if kind == "row" then on_row(result.rows[#result.rows]) end
  end
  local missing = next(result.open)
  if missing then return failure(self, "the bench gave no answer for " .. missing) end
  return result
end

-- Sends a request and reads its answers, as above.
function bench:measure(id, cell, strategies, limits, on_row)
  local sent, what = self:send(id, cell, strategies, limits)
  if not sent then return nil, what end
  return self:answers(on_row)
end

-- ---- end --------------------------------------------------------------------------------------

-- Reads the bench's last lines on its devices into `at_end` of each. Returns whether it closed its output in
-- time.
local function hear_out(self)
  local ends_at = process.now() + GRACE
  while process.now() < ends_at do
    local line, problem = self.child:read_line(ends_at - process.now())
    if not line then return problem ~= "timeout" end
    local kind, fields = protocol.parse(line)
    for _, device in ipairs(kind == "device" and self.devices or {}) do
      if device.rank == fields.rank then device.at_end, fields.rank = fields, nil end
    end
  end
  return false
end

-- Ends a bench after its last request, unless a failure has ended it. Returns true; or nil and a failure if
-- it did not end well, which does not affect its results.
function bench:stop()
  if self.has_ended then return true end
  self.child:write("quit\n", GRACE)
  local in_time = hear_out(self) and self.child:ends_within(GRACE)
  local ended = close(self, in_time and "end" or "timeout")
  if ended.well then return true end
  return nil, { reason = in_time and ended.reason or ("it did not within %g s"):format(GRACE),
    detail = ended.stopped or last_words(ended.errors) }
end

return bench
