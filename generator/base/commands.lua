-- A verb that has commands of its own, for verbs.lua. `list` has a row { name, help } for each command; its
-- file is verbs/VERB/NAME.lua.
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
  -- Removes the first word of `argv`, which is not empty; returns that command's full name and declaration.
  local function command(argv)
    local name = table.remove(argv, 1)
    for _, row in ipairs(list) do
      if row.name == name then return verb .. " " .. name, require("verbs." .. verb .. "." .. name) end
    end
    fail.input("%s has no command %q; for a list: gentables %s --help", verb, name, verb)
  end
  return { commands = list, usage = usage, command = command }
end

return commands
