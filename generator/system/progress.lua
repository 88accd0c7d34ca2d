-- A progress bar on a terminal, one line: the current work, the steps done, the time left. Nothing is drawn
-- in a pipe. Other lines are printed with say(), which keeps the bar below them.
local process = require "core.process"
local system = require "core.system"

local progress = {}
progress.__index = progress

local BAR, MIN_INTERVAL = 20, 0.05

-- progress.new(total [, stream]): for `total` steps; the default `stream` is io.stderr.
function progress.new(total, stream)
  stream = stream or io.stderr
  return setmetatable({ total = total, done = 0, text = "", stream = stream, drawn_at = -math.huge,
    live = system.is_terminal(stream), started = process.now() }, progress)
end

local function clock(seconds)
  seconds = math.ceil(seconds)
  local hours, minutes = seconds // 3600, seconds // 60
  if hours > 0 then return ("%d:%02d:%02d"):format(hours, minutes % 60, seconds % 60) end
  return ("%d:%02d"):format(minutes, seconds % 60)
end

-- The line that is drawn, at most `columns` wide.
function progress:line(now, columns)
  local filled = self.total > 0 and BAR * self.done // self.total or BAR
  local left = ""
  if self.done > 0 and self.done < self.total then
    left = ", " .. clock((now - self.started) / self.done * (self.total - self.done)) .. " left"
  end
  local bar = ("#"):rep(filled) .. ("."):rep(BAR - filled)
  return ("[%s] %d/%d%s  %s"):format(bar, self.done, self.total, left, self.text):sub(1, columns - 1)
end

local function draw(self, at_once)
  local now = process.now()
  if not self.live or (not at_once and now - self.drawn_at < MIN_INTERVAL) then return end
  self.drawn_at = now
  self.stream:write("\r\27[K", self:line(now, system.columns()))
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

-- Removes the bar.
function progress:clear()
  if not self.live then return end
  self.stream:write("\r\27[K")
  self.stream:flush()
end

-- Writes a whole line to stderr, above the bar.
function progress:say(text)
  self:clear()
  self.stream:write(text, "\n")
  draw(self, true)
end

return progress
