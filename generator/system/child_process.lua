-- Child processes from their start to their end: run() runs a command to its end. A caller that exchanges
-- lines with a child of core.process ends it by finish().
--
--   local ran = child_process.run({ "mpirun", "--version" }, { seconds = 30 })
--   if not ran.well then fail.work("mpirun: %s", ran.reason) end
--
-- An end is { well, reason, problem, errors, stopped, signal, pid }:
--   well     whether the child ended by itself, with exit code 0
--   reason   how it ended, in one line: "exit code 1", "killed by SIGSEGV (...)", "did not end within 30 s",
--            "interrupted by SIGINT"; or why it could not be started
--   problem  "start" (it could not be started), "timeout", "interrupted", a message of read_line; nil if it
--            closed its stdout by itself
--   errors   the end of its stderr, at most 4 KiB
--   stopped  after a timeout: a text that lists its stopped processes, or nil
--   signal   the number of the signal that gentables caught, or nil
--   pid      the process id that it had; nil if it could not be started
local fail = require "base.fail"
local process = require "core.process"

local child_process = {}

local SIGTERM = 15
local GRACE, FOREVER = 1, 1e9 -- seconds
local MOST_LINES, MOST_BYTES = 1000000, 1 << 28 -- of a command that run() runs
local TOO_MUCH = ("it printed more than %d lines or %d MiB"):format(MOST_LINES, MOST_BYTES >> 20)

-- If gentables caught a signal, raises with exit code 128 + its number. `advice`: the end of the message, or
-- nil.
function child_process.raise_if_interrupted(advice)
  local number, name = process.interrupted()
  if number then fail.with(128 + number, "interrupted by %s%s", name, advice and "; " .. advice or "") end
end

-- Ends a child. `problem`: why no more of its lines are read, as its read_line or write returned it. After
-- "end" it has `grace` seconds to end by itself; else it gets SIGTERM at once. After `grace` seconds it gets
-- SIGTERM, again, and after as many more SIGKILL. Returns its end.
function child_process.finish(child, problem, grace)
  local ended = { pid = child:pid(), problem = problem ~= "end" and problem or nil }
  if problem == "timeout" then ended.stopped = child:stopped() end
  if problem ~= "end" or process.interrupted() then child:kill(SIGTERM) end
  local how, well = child:close(grace)
  local number, name = process.interrupted()
  ended.signal, ended.errors = number, child:errors()
  ended.well = well and problem == "end" and not number
  ended.reason = number and "interrupted by " .. name or ended.problem or how
  return ended
end

-- Reads the lines of a child. Returns why there are no more, or are not read.
local function read_all(child, options, on_line)
  local count, bytes = 0, 0
  local ends_at = process.now() + (options.seconds or FOREVER)
  local line, problem = child:write(options.input or "", ends_at - process.now())
  if not line and problem ~= "end" then return problem end
  repeat -- a child that does not read all of its input may have printed why
    line, problem = child:read_line(options.silence or ends_at - process.now())
    count, bytes = count + 1, bytes + #(line or "")
    if count > MOST_LINES or bytes > MOST_BYTES then return TOO_MUCH end
    if line then on_line(line) end
  until not line
  return problem
end

-- Runs a command, a list of words, to its end, or until it has printed far more than any should. Options, all
-- of which may be nil:
--   seconds            until its end, else it is ended
--   silence            the same between two lines, in place of `seconds`
--   input              text for its stdin, which then stays open: mpirun 4.1.4 sometimes crashes when it
--                      passes on the end of its stdin
--   environment        { "NAME=VALUE"... }, added to that of gentables
--   rights             "limited": it has 2 GiB of memory, and files of 256 MiB; "confined": it can neither
--                      write files nor reach the network or other processes
--   on_line            on_line(line): called for each line of stdout; else `lines` of the result has them
--   grace              seconds for its end, after its last line or after SIGTERM (default 1)
--   returns_on_signal  if gentables caught a signal, return, in place of the error of raise_if_interrupted
-- Returns its end, with `lines`.
function child_process.run(argv, options)
  local lines = {}
  local started, message = process.start(argv, options.environment, options.rights)
  if not started then return { lines = lines, problem = "start", reason = message, errors = "" } end
  local child <close> = started
  local on_line = options.on_line or function(line) lines[#lines + 1] = line end
  local ended = child_process.finish(child, read_all(child, options, on_line), options.grace or GRACE)
  if not options.returns_on_signal then child_process.raise_if_interrupted() end
  ended.lines = lines
  if ended.problem == "timeout" then
    ended.reason = (options.silence and "no answer within %g s" or "did not end within %g s"):format(
      options.silence or options.seconds)
  end
  return ended
end

-- The last line with a letter or digit in what a child wrote to stderr; nil if there is none.
function child_process.last_line(errors)
  local last
  for line in errors:gmatch("[^\n]+") do
    if line:find("%w") then last = line end
  end
  return last
end

return child_process
