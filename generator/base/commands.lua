-- A verb that has commands of its own, for verbs.lua. `list` has a row { name, help } for each command; its
-- file is verbs/VERB/NAME.lua.
--
--   return require("base.commands").of(VERB, LIST)
local fail = require "base.fail"
local sequences = require "base.sequences"
local text = require "base.text"

local commands = {}

function commands.of(verb, list)
  -- Removes the first word of `argv`, which is not empty; returns that command's full name and declaration.
  local function command(argv)
    local name = table.remove(argv, 1)
    for _, row in ipairs(list) do
      if row.name == name then return verb .. " " .. name, require("verbs." .. verb .. "." .. name) end
    end
    fail.input("%s has no command %q%s; for a list: gentables %s --help", verb, name,
      text.did_you_mean(name, sequences.field(list, "name")), verb)
  end
  return { commands = list, command = command }
end

return commands
