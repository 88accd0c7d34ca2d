-- Ends a metric the documented way: the line that other tools print for such input, then one line of ours
-- with the way out; exit code 1.
local fail = require "base.fail"

-- fail_as_documented("Error: results_json directory not found", "DIR has no results_json; ..."). Does not
-- return.
return function(documented_line, way_out, ...)
  io.stderr:write(documented_line, "\n")
  fail.work(way_out, ...)
end
