-- Runs gentables with its arguments on a clock of its own: each line of this kind from a program takes a
-- second, and the first one sixty, as the start of programs does. So the rate is steady on any machine.
--
--   gentables lua lib_steady.lua KIND VERB ARGUMENT...
local process = require "core.process"
local protocol = require "conversation.protocol"

local START_S = 60
local kind_of_steps = table.remove(arg, 1)
local now = 0
function process.now() return now end

local parse, has_started = protocol.parse, false
function protocol.parse(line)
  local kind, fields = parse(line)
  if kind == kind_of_steps then
    now = now + (has_started and 1 or START_S)
    has_started = true
  end
  return kind, fields
end

local code = require("verbs").main(table.unpack(arg))
if code ~= 0 then os.exit(code) end
