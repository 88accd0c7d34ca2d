-- The conversation with gentables-replay, which computes and times: starts it, sends ops one by one, and
-- starts it again if an op ended it.
--
--   runner.start({ program, backend (host, cuda or nil), threads, tries_all, patience }) -> runner | nil,
--     reason; patience: seconds until each line of the greeting (nil: 60)
--   runner.backend, runner.device, runner.threads, runner.libraries = { { name, version... }... },
--     runner.absent = { text... }
--   runner:replay(line, seconds) -> { by, kernel, computed, note, warm, cold, is_partial (gradients were
--     left out), empty_us, algorithms, fastest, gain = { median, low, high, samples } } | nil, reason;
--     empty_us: of an empty kernel, if the device has one; algorithms: the number of timed algorithms, if
--     the library has several; fastest and gain: if they were compared
--   runner:stop()
--
-- A signal to gentables (process.interrupted) ends the child; it is then the reason why the current op has no
-- answer.
local child_process = require "system.child_process"
local numbers = require "base.numbers"
local process = require "core.process"
local protocol = require "conversation.protocol"

local runner = {}
runner.__index = runner

local PROTOCOL, START_PATIENCE, WRITE_PATIENCE, GRACE = "1", 60, 10, 1

local function unexpected(line)
  return "gentables-replay sent an unexpected line: " .. protocol.shown(line)
end

-- The next line as kind, fields, line; or nil, the problem.
local function read(self, seconds)
  local line, problem = self.child:read_line(seconds)
  if not line then return nil, problem end
  local kind, fields = protocol.parse(line)
  if not kind then return nil, unexpected(line) end
  return kind, fields, line
end

local function greet(self, seconds)
  local kind, fields, line = read(self, seconds)
  if not kind then return nil, fields end
  if kind == "error" then return nil, fields.reason or unexpected(line) end
  if kind ~= "hello" or fields.protocol ~= PROTOCOL then
    return nil, "its version differs; build it and gentables from the same tree"
  end
  if not fields.device or not numbers.whole(fields.threads) then return nil, unexpected(line) end
  self.backend, self.device, self.threads = fields.backend, fields.device, fields.threads
  self.libraries, self.absent = {}, {}
  while true do
    kind, fields, line = read(self, seconds)
    if kind == "ready" then return self end
    if not kind then return nil, fields end
    if kind == "present" and fields.name then
      self.libraries[#self.libraries + 1] = fields
    elseif kind == "absent" and fields.reason then
      self.absent[#self.absent + 1] = fields.reason
    else
      return nil, unexpected(line)
    end
  end
end

local function no_answer(seconds)
  return ("no answer within %g s"):format(seconds < 10 and seconds or math.floor(seconds + 0.5))
end

local function launch(self)
  local argv = { self.program, "--serve" }
  if self.tries_all then argv[#argv + 1] = "--try-all" end
  if self.wanted_backend then table.move({ "--device", self.wanted_backend }, 1, 2, #argv + 1, argv) end
  if self.wanted_threads then table.move({ "--threads", self.wanted_threads }, 1, 2, #argv + 1, argv) end
  local child, message = process.start(argv)
  if not child then return nil, message end
  self.child = child
  local seconds = self.patience or START_PATIENCE
  local greeted, why = greet(self, seconds)
  if greeted then return self end
  local ended = child_process.finish(child, why, GRACE)
  self.child = nil
  if why == "timeout" then return nil, no_answer(seconds) end
  if why == "end" then return nil, "it ended before it was ready: " .. ended.reason end
  return nil, why
end

function runner.start(options)
  local self = setmetatable({ program = options.program, wanted_threads = options.threads,
    wanted_backend = options.backend, tries_all = options.tries_all, patience = options.patience }, runner)
  local started, why = launch(self)
  if not started then return nil, ("%s: %s"):format(options.program, why) end
  return self
end

local function summary_of(fields, name)
  local out = { samples = numbers.whole(fields[name .. "_samples"]) }
  for _, key in ipairs { "mean", "median", "low", "high" } do
    out[key] = numbers.finite(fields[("%s_%s_us"):format(name, key)])
    if not out[key] then return nil end
  end
  return out.samples and out
end

-- The gain of the fastest of a library's algorithms over the library's own choice.
local function gain_of(fields)
  local out = {}
  for _, key in ipairs { "median", "low", "high" } do out[key] = numbers.finite(fields["gain_" .. key]) end
  out.samples = numbers.whole(fields.gain_samples)
  if not (out.median and out.low and out.high and out.samples) then return nil end
  return numbers.whole(fields.fastest, 0), out
end

local function answer_of(fields, line)
  local warm, cold = summary_of(fields, "warm"), summary_of(fields, "cold")
  if not warm or not cold or not fields.by then return nil, unexpected(line) end
  local fastest, gain = gain_of(fields)
  return { by = fields.by, kernel = fields.kernel, computed = fields.computed, note = fields.note,
    warm = warm, cold = cold, is_partial = fields.partial == "1", empty_us = numbers.finite(fields.empty_us),
    algorithms = numbers.whole(fields.algorithms, 0), fastest = fastest, gain = gain }
end

-- Ends a child that does not answer any more, or must stop; the next op gets a new one.
local function give_up(self, problem, seconds)
  local ended = child_process.finish(self.child, problem, GRACE)
  self.child = nil
  if problem == "timeout" then return nil, no_answer(seconds) end
  if problem == "end" then return nil, "the library ended the process: " .. ended.reason end
  return nil, problem
end

function runner:replay(line, seconds)
  if not self.child then
    local started, why = not self.lost, self.lost
    if started then started, why = launch(self) end
    if not started then
      self.lost = why -- a start that fails may take its whole patience: there is one
      return nil, "gentables-replay cannot be started again: " .. why
    end
  end
  local written, problem = self.child:write(line .. "\n", WRITE_PATIENCE)
  if not written then return give_up(self, problem, WRITE_PATIENCE) end
  local kind, fields, answer = read(self, seconds)
  if not kind then return give_up(self, fields, seconds) end
  if kind == "replayed" then return answer_of(fields, answer) end
  if kind == "none" and fields.reason then
    if fields.lost == "1" then give_up(self, "end", 0) end -- the next op gets a new process
    return nil, fields.reason
  end
  if kind == "error" and fields.reason then
    give_up(self, "end", 0)
    return nil, "gentables-replay rejected the request: " .. fields.reason
  end
  return give_up(self, unexpected(answer), seconds)
end

function runner:stop()
  if not self.child then return end
  self.child:write("quit\n", WRITE_PATIENCE)
  self.child:close(GRACE)
  self.child = nil
end

return runner
