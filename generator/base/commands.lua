-- A verb that has commands of its own: the module that verbs.lua takes. `list` has a row { name, help } for
-- each; its file is verbs/VERB/NAME.lua.
--
--   return require("base.commands").of(VERB, LIST)
local fail = require "base.fail"

local commands = {}

function commands.of(verb, list)
  local function usage()
    local out = { ("usage: gentables %s COMMAND [options]\n"):format(verb) }
    for _, row in ipairs(list) do out[#out + 1] = ("  %-12s %s"):format(row.name, row.help) end
    out[#out + 1] = ("\ngentables %s COMMAND --help shows its options and an example.\n"):format(verb)
    return table.concat(out, "\n")
  end
  -- The command that `argv` (not empty) begins with, which is taken off: its full name and its declaration.
  local function command(argv)
    local name = table.remove(argv, 1)
    for _, row in ipairs(list) do
      if row.name == name then return verb .. " " .. name, require("verbs." .. verb .. "." .. name) end
    end
    fail.input("%s has no command %q; gentables %s --help lists them", verb, name, verb)
  end
  return { commands = list, usage = usage, command = command }
end

return commands
