-- gentables trace: reports, comparisons and merged timelines of what a profiler wrote. What can be asked for
-- is trace/list.lua; each command is a file of trace/ that looks like a verb's.
local fail = require "fail"
local list = require "trace.list"

local function usage()
  local out = { "usage: gentables trace COMMAND [options]\n" }
  for _, row in ipairs(list) do out[#out + 1] = ("  %-12s %s"):format(row.name, row.help) end
  out[#out + 1] = "\ngentables trace COMMAND --help shows its options and an example.\n"
  return table.concat(out, "\n")
end

local function find(name)
  for _, row in ipairs(list) do
    if row.name == name then return row end
  end
  fail.input("trace has no command %q; gentables trace --help lists them", name)
end

return {
  commands = list,
  usage = usage,
  -- The command that `argv` (not empty) begins with, which is taken off: its full name and its declaration.
  command = function(argv)
    local row = find(table.remove(argv, 1))
    return "trace " .. row.name, require("trace." .. row.name)
  end,
}
