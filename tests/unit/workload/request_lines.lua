-- Prints the request lines of a step, of the workload FILE on RANKS ranks: request_lines.lua FILE RANKS.
local description = require "workload.description"
local steps = require "workload.steps"

io.stdout:write(steps.text(steps.of(description.load(arg[1]), tonumber(arg[2]), "host")))
