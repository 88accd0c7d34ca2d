-- Prints the events of core.trace, one a line: dump.lua FILE
local lib = require "unit.trace.reader.lib"
local dump, why = lib.dump(arg[1])
io.stderr:write(why and "gentables: " .. why .. "\n" or "")
io.stdout:write(dump or "")
return dump and 0 or 2
