-- One configuration: starts gentables-workload under a launcher, in its own processes, sends it the step and
-- reads its results. All messages go to a log.
--
--   local result, failure = configuration.measure { program =, launcher =, ranks =, text = (steps.text),
--     channels =, threads =, steps =, warm_up =, wait =, backend =, transport =, patience =,
--     path = (of traces), check = function(result so far) -> the reason to stop, or nil,
--     progress = function(done, of) }
--
-- `failure` is { reason, log, used, note }: one line, the log's lines, the { channels, threads } that were
-- accepted before it failed (nil: none), with a note on these; and refused = true if `check` returned the
-- reason. A signal to gentables ends the started processes; failure.signal is then its number.
local child_process = require "system.child_process"
local fail = require "base.fail"
local launcher = require "conversation.launcher"
local process = require "core.process"
local protocol = require "conversation.protocol"
local machines = require "machine.machines"
local numbers = require "base.numbers"
local result_fields = require "workload.result_fields"
local system = require "core.system"
local workers = require "system.workers"

local configuration = {}
configuration.__index = configuration

local PROTOCOL = "4"
local VERSION_PATIENCE, GRACE = 30, 10 -- seconds

-- ---- the program -------------------------------------------------------------------------------

local function program_of(given)
  return given or (system.program():gsub("[^/]*$", "gentables-workload"))
end

-- The number of GPUs that the program beside gentables, or `given`, can use; and the reason if it is 0 or 1.
function configuration.gpus(given)
  local ran = child_process.run({ program_of(given), "--gpus" }, { seconds = VERSION_PATIENCE })
  if ran.problem == "start" then return 0, ("no gentables-workload (%s)"):format(ran.reason) end
  local line = ran.lines[1]
  local kind, fields = protocol.parse(line or "")
  local count = kind == "gpus" and math.tointeger(tonumber(fields.count))
  if count then return count, fields.reason ~= "" and fields.reason or nil end
  return 0, ("gentables-workload --gpus has no valid answer (%s)"):format(line or ran.reason)
end

-- The program beside gentables, or `given`; and its hash from --version.
function configuration.identify(given)
  local program = program_of(given)
  local ran = child_process.run({ program, "--version" }, { seconds = VERSION_PATIENCE })
  if ran.problem == "start" then
    fail.input("no gentables-workload (%s); it is built where MPI is found: install Open MPI, build again",
      ran.reason)
  end
  local spoken, hash = (ran.lines[1] or ""):match("^gentables%-workload protocol=(%S+) program=(%S+)")
  if spoken ~= PROTOCOL then
    fail.input("%s --version does not print protocol %s; build it and gentables from the same tree", program,
      PROTOCOL)
  end
  return program, hash
end

-- The words of the launcher's command. If there is a core for each thread, ranks are not bound to a core, so
-- that the threads of a rank run on several.
local function command(options)
  local cores = workers.jobs()
  local words = launcher.command(options.ranks, cores, options.launcher)
  local threads = options.backend == "host" and math.min(options.threads, options.channels) or 0
  if cores < options.ranks * (1 + threads) then return words end
  for i = 1, #words - 1 do
    if words[i] == "--bind-to" and words[i + 1] == "core" then words[i + 1] = "none" end
  end
  return words
end

-- ---- conversation --------------------------------------------------------------------------------------

local function note(self, text) self.log[#self.log + 1] = text end

-- Adds the child's messages to the log, without rules and blank lines.
local function note_errors(self)
  for line in self.child:errors():gmatch("[^\n]+") do
    if line:find("%w") then note(self, "stderr: " .. line) end
  end
end

-- The rank that died and the cause: from the launcher; else from a rank that noticed it, without the cause
-- and the phase (steps of a workload have no phases); else a rank's own last message; nil if there is none.
local function last_words(errors)
  local message = errors:match("gentables%-%l+: ([^\n]+)")
  local gone = message and message:match("^rank (%d+) died, ")
  local rank, line = launcher.who_died(errors)
  if rank and (not message or gone == rank) then return line end
  return gone and ("rank %s died"):format(gone) or message or line
end

local function failed(self, problem, refused)
  local before = problem == "timeout" and last_words(self.child:errors())
  -- If a rank reports that another one died, the launcher has not yet reported the cause.
  if problem:find("^rank %d+ died, ") then problem = "end" end
  local ended = child_process.finish(self.child, problem, GRACE)
  launcher.remove_session_folder(ended.pid)
  note_errors(self)
  local reason = ended.reason
  if not ended.signal and problem == "timeout" then
    local cause = ended.stopped or before
    reason = ("no output for %g s%s"):format(self.patience, cause and "; " .. cause or "")
  elseif not ended.signal and problem == "end" then
    reason = last_words(ended.errors) or "it died: " .. ended.reason
  end
  note(self, "failed: " .. reason)
  return nil, { reason = (reason:gsub("%c", " ")), log = self.log, used = self.result.used,
    note = self.result.note, refused = refused, signal = ended.signal }
end

-- The next line as kind and fields; or nil, reason.
local function read(self)
  local line, problem = self.child:read_line(self.patience)
  if not line then return nil, problem end
  local kind, fields = protocol.parse(line)
  if kind ~= "progress" then note(self, line) end
  if not kind then return nil, "it sent an unknown line: " .. protocol.shown(line) end
  if kind == "error" then return nil, fields.reason or "error" end
  return kind, fields
end

-- ---- answers -----------------------------------------------------------------------------------

-- A whole number if the text is one, else a finite one; nil for any other text, or none.
local function number(text)
  return text and (numbers.whole(text, 0, math.maxinteger) or numbers.finite(text))
end

local function all_numbers(fields)
  local out = {}
  for name, text in pairs(fields) do
    if name ~= "name" and name ~= "number" then out[name] = number(text) end
  end
  return out
end

local function add_named(to, fields)
  if fields.name then to[fields.name] = all_numbers(fields) end
end

-- Adds the fields of each kind of line to the result.
local takes = {
  hello = function(result, fields)
    result.machine = { cpu = machines.facts("").cpu, cores = number(fields.cores), isa = fields.isa,
      core = fields.core, library = fields.library }
  end,
  accepted = function(result, fields)
    result.used = { channels = number(fields.channels), threads = number(fields.threads) }
    result.bytes, result.backend, result.clock = number(fields.bytes), fields.backend, fields.clock
    if fields.note and fields.note ~= "" then result.note = fields.note end
  end,
  used = function(result, fields)
    result.machine.device = fields.device or result.machine.device
    result.machine.engine = fields.library or result.machine.engine
  end,
  round = function(result, fields) table.insert(result.rounds, all_numbers(fields)) end,
  time = function(result, fields) add_named(result.times, fields) end,
  ratio = function(result, fields) add_named(result.ratios, fields) end,
  rank = function(result, fields) table.insert(result.ranks, all_numbers(fields)) end,
}

-- The result, if it is complete; else nil and the reason.
local function complete(result, options)
  result.seconds = 0 -- until the program has ended
  local lacking = result_fields.lacking(result, options.ranks, options.backend)
  if result.backend ~= options.backend then lacking = { "backend" } end
  if #lacking == 0 then return result end
  return nil, ("it sent no valid %s; build it and gentables from the same tree"):format(lacking[1])
end

local function listen(self, options)
  local result = self.result
  result.wait, result.backend = options.wait, options.backend
  while true do
    local kind, fields = read(self)
    if not kind then return nil, fields end
    if kind == "done" then return complete(result, options) end
    if kind == "progress" then
      local done, of = numbers.whole(fields.done, 0), numbers.whole(fields.of, 0)
      if not (done and of) then return nil, "it sent no valid progress" end
      if options.progress then options.progress(done, of) end
    elseif takes[kind] then
      takes[kind](result, fields)
      local why = kind ~= "round" and options.check and options.check(result)
      if why then return nil, why, true end
    else
      return nil, "it sent an unknown line: " .. protocol.shown(kind)
    end
    if process.interrupted() then return nil, "interrupted" end
  end
end

local function request(options)
  return protocol.line("run", { { "channels", options.channels }, { "threads", options.threads },
    { "steps", options.steps }, { "warm_up", options.warm_up }, { "wait", options.wait },
    { "backend", options.backend }, { "transport", options.transport },
    { "patience_ms", math.max(1, math.min(1000000000, math.floor(options.patience * 500))) },
    { "path", options.path or "" } }) .. "quit\n"
end

function configuration.measure(options)
  local words = command(options)
  words[#words + 1] = options.program
  local self = setmetatable({ log = { "$ " .. table.concat(words, " ") }, patience = options.patience,
    result = { machine = {}, times = {}, ratios = {}, ranks = {}, rounds = {} } }, configuration)
  local began = process.now()
  local child, problem = process.start(words)
  self.child = child
  if not child then
    note(self, "failed: " .. problem)
    return nil, { reason = "it cannot be started: " .. problem, log = self.log }
  end
  local request_text = request(options)
  note(self, "> " .. request_text:match("[^\n]*"))
  local written, result, refused
  written, problem = self.child:write(options.text .. request_text, self.patience)
  -- A program that died early does not read; its own messages come first.
  if written or problem == "end" then result, problem, refused = listen(self, options) end
  if not result then return failed(self, problem, refused) end
  self.child:close(GRACE)
  if process.interrupted() then return failed(self, "interrupted") end
  note_errors(self)
  result.seconds, result.log = process.now() - began, self.log
  return result
end

return configuration
