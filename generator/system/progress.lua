-- A progress bar on a terminal, one line: the current work, the part that is done, the time left. In a pipe
-- there is none, or a line every ten seconds (in_lines). Other lines are printed with print(), which keeps
-- the bar below them. The bar never goes back, even if the number of steps grows.
local fail = require "base.fail"
local process = require "core.process"
local system = require "core.system"

local progress = {}
progress.__index = progress

local BAR, MIN_INTERVAL = 20, 0.05
local LINE_INTERVAL = 10 -- between lines in a pipe, in seconds

-- progress.new(total [, stream [, now]]): for `total` steps; nil: their number is an estimate, in `total`,
-- which may change. The default `stream` is io.stderr. `now`: the clock, in seconds (default: process.now).
function progress.new(total, stream, now)
  stream, now = stream or io.stderr, now or process.now
  local live = system.is_terminal(stream)
  return setmetatable({ total = total or 0, is_estimate = not total, done = 0, highest = 0, text = "",
    stream = stream, now = now, live = live,
    drawn_at = live and -math.huge or now(), started = now() }, progress)
end

-- In a pipe a line every ten seconds stands for the bar.
function progress:in_lines() self.has_lines = true end

-- From now on the bar shows the time since `began_at`, of at most `seconds`, in place of steps. With
-- `has_steps`, it shows the part of the steps or, if it is larger, of the time.
function progress:limit(began_at, seconds, has_steps)
  self.started, self.seconds, self.has_steps = began_at, seconds, has_steps
end

local function clock(seconds)
  seconds = math.ceil(seconds)
  local hours, minutes = seconds // 3600, seconds // 60
  if hours > 0 then return ("%d:%02d:%02d"):format(hours, minutes % 60, seconds % 60) end
  return ("%d:%02d"):format(minutes, seconds % 60)
end

-- The part that is done, from 0 to 1: never less than before.
local function share(self, now)
  local part = self.total > 0 and self.done / self.total or self.is_estimate and 0 or 1
  if self.seconds then
    part = math.max((now - self.started) / self.seconds, self.has_steps and part or 0)
  end
  self.highest = math.min(1, math.max(self.highest, part))
  return self.highest
end

-- The part that is done and the time left, as text.
local function state(self, now, part)
  if self.seconds and not self.has_steps then
    return ("%s of %s"):format(clock(part * self.seconds), clock(self.seconds))
  end
  local left = ""
  if part > 0 and part < 1 then left = ", " .. clock((now - self.started) / part * (1 - part)) .. " left" end
  if self.is_estimate then return ("%d %%%s"):format(math.floor(100 * part), left) end
  return ("%d/%d%s"):format(self.done, self.total, left)
end

-- The line that is drawn, at most `columns` wide.
function progress:line(now, columns)
  local part = share(self, now)
  local filled = math.floor(BAR * part + 1e-9)
  local bar = ("#"):rep(filled) .. ("."):rep(BAR - filled)
  return ("[%s] %s  %s"):format(bar, state(self, now, part), self.text):sub(1, columns - 1)
end

local function draw(self, at_once)
  local now = self.now()
  if self.live then
    if not at_once and now - self.drawn_at < MIN_INTERVAL then return end
    self.stream:write("\r\27[K", self:line(now, system.columns()))
  else
    if not self.has_lines or now - self.drawn_at < LINE_INTERVAL then return end
    self.stream:write(("gentables: %s: %s\n"):format(state(self, now, share(self, now)), self.text))
  end
  self.drawn_at = now
  self.stream:flush()
end

-- Shows `text` behind the bar.
function progress:show(text)
  self.text = text
  draw(self)
end

-- Counts a step as done. `left`: the number of steps that remain, if it has changed.
function progress:step(left)
  self.done = self.done + 1
  if left then self.total = self.done + left end
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
