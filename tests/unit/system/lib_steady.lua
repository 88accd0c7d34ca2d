-- Runs gentables with its arguments on a clock of its own: each line of this kind from a program takes a
-- second, and the first one sixty, as the start of programs does. So the rate is steady on any machine.
-- KIND=SECONDS: with four ranks a line takes that long.
--
--   gentables lua lib_steady.lua KIND[=SECONDS] VERB ARGUMENT...
local process = require "core.process"
local protocol = require "conversation.protocol"

local START_S = 60
local kind_of_steps, slow_s = table.remove(arg, 1):match("^(%a+)=?(%d*)$")
local now, step_s = 0, 1
function process.now() return now end

local parse, has_started = protocol.parse, false
function protocol.parse(line)
  local kind, fields = parse(line)
  if kind == "hello" and fields.world_size == "4" then step_s = tonumber(slow_s) or 1 end
  if kind == kind_of_steps or kind == "hello" then
    now = now + (not has_started and START_S or kind == "hello" and 0 or step_s)
    has_started = true
  end
  return kind, fields
end

local code = require("verbs").main(table.unpack(arg))
if code ~= 0 then os.exit(code) end
