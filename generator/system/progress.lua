-- The progress of a verb: the current work, the part that is done, the time left. On a terminal it is a bar
-- in one line; in a pipe there is none, or a line every ten seconds (in_lines). Other lines are printed with
-- print(), which keeps the bar below them. The bar never goes back, even if the number of steps grows.
--
-- For programs: with GENTABLES_PROGRESS=FILE, or - for stderr, each change is also a line of JSON (to_json),
-- at most one every JSON_INTERVAL seconds and at the last step; with - there is no bar.
local fail = require "base.fail"
local process = require "core.process"
local system = require "core.system"

local progress = {}
progress.__index = progress

local BAR, MIN_INTERVAL = 20, 0.05
local LINE_INTERVAL = 10 -- between lines in a pipe, in seconds
local LEAST_FIRST = 0.2 -- the least part after the first progress from which the time left is estimated
local JSON_INTERVAL = 0.1 -- between lines of JSON, in seconds

-- The file that GENTABLES_PROGRESS names, opened once; nil: none. Lines are appended, so that the parts of a
-- verb, or several verbs, follow each other.
local opened
local function file_for_programs()
  local path = os.getenv("GENTABLES_PROGRESS")
  if not path or path == "" then return nil end
  if path == "-" then return io.stderr end
  if not opened then
    local problem
    opened, problem = io.open(path, "a")
    if not opened then fail.input("GENTABLES_PROGRESS: %s; a file or - is required", problem) end
  end
  return opened
end

local verb_began -- by process.now, at the first bar

-- progress.new(total [, stream [, now]]): for `total` steps; nil: their number is an estimate, in `total`,
-- which may change. The default `stream` is io.stderr. `now`: the clock, in seconds (default: process.now).
function progress.new(total, stream, now)
  stream, now = stream or io.stderr, now or process.now
  verb_began = verb_began or process.now()
  local programs = file_for_programs()
  local live = system.is_terminal(stream) and programs ~= stream
  return setmetatable({ total = total or 0, is_estimate = not total, done = 0, inner = 0, highest = 0,
    text = "", stream = stream, programs = programs, reported_at = -math.huge, now = now, live = live,
    drawn_at = live and -math.huge or now(), began = verb_began, started = now() }, progress)
end

-- Declares that steps follow each other, so that the rate can be measured from the end of the first progress:
-- the time before has the start of programs in it. Else, with several steps at once, it is since the start.
function progress:in_turn() self.is_in_turn = true end

-- In a pipe a line every ten seconds stands for the bar.
function progress:in_lines() self.has_lines = self.programs ~= self.stream end

-- From now on the bar shows the part of the steps or, if it is larger, of the time since `began_at`, which is
-- limited to `seconds`.
function progress:limit(began_at, seconds) self.started, self.seconds = began_at, seconds end

-- From now on `seconds_left()` is the time left, in seconds, and the part that is done follows from it; where
-- it returns nil, both follow from the steps. It is called when a line is written.
function progress:expect(seconds_left) self.seconds_left = seconds_left end

local function clock(seconds)
  seconds = math.ceil(seconds - 1e-6)
  local hours, minutes = seconds // 3600, seconds // 60
  if hours > 0 then return ("%d:%02d:%02d"):format(hours, minutes % 60, seconds % 60) end
  return ("%d:%02d"):format(minutes, seconds % 60)
end

-- The part that is done, from 0 to 1: never less than before; and the same by what is expected now.
local function share(self, now)
  local part = self.is_estimate and not self.is_finished and 0 or 1
  if self.total > 0 and not self.is_finished then part = (self.done + self.inner) / self.total end
  local rest = (part < 1 or self.waits) and self.seconds_left and self.seconds_left()
  self.is_expected = rest
  if self.waits and not rest then part = self.highest end
  if rest then part = (now - self.started) / (now - self.started + rest) end
  if self.seconds then part = math.max((now - self.started) / self.seconds, part) end
  part = math.min(1, part)
  self.highest = math.max(self.highest, part)
  if self.is_in_turn and not (rest or self.first) and part > 0 then self.first = { at = now, part = part } end
  return self.highest, part
end

-- The seconds that are left: those that are expected, else those at the mean rate so far; nil: too little is
-- done. `part`: by what is expected now.
local function left(self, now, part)
  if self.waits and not self.is_expected then return nil end
  local elapsed = now - self.started
  local first = not self.seconds and not self.is_expected and self.first
  if first and part > first.part then return (now - first.at) / (part - first.part) * (1 - part) end
  if part == 0 or first and part < LEAST_FIRST then return nil end
  return elapsed / part * (1 - part)
end

-- The part that is done and the time left, as text.
local function state(self, now)
  local part, present = share(self, now)
  local rest = part < 1 and left(self, now, present)
  rest = rest and (", %s left"):format(clock(rest)) or ""
  if self.is_estimate then return ("%d %%%s"):format(math.floor(100 * part), rest) end
  return ("%d/%d%s"):format(self.done, self.total, rest)
end

-- The line that is drawn, at most `columns` wide.
function progress:line(now, columns)
  local part = share(self, now)
  local filled = math.floor(BAR * part + 1e-9)
  local bar = ("#"):rep(filled) .. ("."):rep(BAR - filled)
  return ("[%s] %s  %s"):format(bar, state(self, now), self.text):sub(1, columns - 1)
end

-- A text as JSON.
local function quoted(text)
  return '"' .. fail.short(text):gsub('[%c"\\]', function(sign) return ("\\u%04x"):format(sign:byte()) end)
    .. '"'
end

-- The same as JSON: {"elapsed_s": since the first bar, "part": from 0 to 1, "left_s": or null, "text"}.
function progress:to_json(now)
  local part, present = share(self, now)
  local rest = left(self, now, present)
  return ('{"elapsed_s": %.3f, "part": %.4f, "left_s": %s, "text": %s}'):format(now - self.began, part,
    rest and ("%.3f"):format(rest) or "null", quoted(self.text))
end

local function report(self, now, at_once)
  if not self.programs or not at_once and now - self.reported_at < JSON_INTERVAL then return end
  self.reported_at = now
  local written, problem = self.programs:write(self:to_json(now), "\n")
  if written then written, problem = self.programs:flush() end
  if written then return end
  self.programs = nil
  fail.note("GENTABLES_PROGRESS: %s; no more progress is written", problem)
end

local function draw(self, at_once, is_last)
  local now = self.now()
  report(self, now, is_last)
  if self.live then
    if not at_once and now - self.drawn_at < MIN_INTERVAL then return end
    self.stream:write("\r\27[K", self:line(now, system.columns()))
  else
    if not self.has_lines or now - self.drawn_at < LINE_INTERVAL then return end
    self.stream:write(("gentables: %s: %s\n"):format(state(self, now), self.text))
  end
  self.drawn_at = now
  self.stream:flush()
end

-- Shows `text` behind the bar.
function progress:show(text)
  self.text = text
  draw(self)
end

-- Counts a step as done. `rest`: the number of steps that remain, if it has changed.
function progress:step(rest)
  self.done, self.inner = self.done + 1, 0
  if rest then self.total = self.done + rest end
  draw(self, self.done == self.total, self.done == self.total)
end

-- Shows `text` for a stage of which neither steps nor a limit are known: where seconds_left() returns nil, so
-- is the time left, and the part that is done waits.
function progress:wait(text, seconds_left)
  self.text, self.waits, self.seconds_left, self.seconds = text, true, seconds_left, nil
  draw(self, true, true)
end

-- Shows that all is done, unless the last step did: for verbs with an estimated number of steps.
function progress:finish()
  if self.highest == 1 then return end
  self.is_finished = true
  draw(self, true, true)
end

-- Counts `done` of `of` parts of the present step as done, and shows `text`.
function progress:within(done, of, text)
  self.inner, self.text = of > 0 and math.min(1, done / of) or 0, text
  draw(self)
end

-- Removes the bar, until its next change.
function progress:clear()
  if not self.live then return end
  self.drawn_at = -math.huge
  self.stream:write("\r\27[K")
  self.stream:flush()
end

-- Writes a whole line to stderr, above the bar.
function progress:print(text)
  self:clear()
  self.stream:write(fail.short(text), "\n")
  if self.live then draw(self, true) end
end

return progress
