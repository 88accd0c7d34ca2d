-- The declarations of all verbs and commands, in the order of their lists, for texts about the command line.
--
--   for _, of in ipairs(declarations.of(verbs.list)) do print(of.name, of.help) end
local declarations = {}

-- The verbs of the list of verbs.lua, and after each its commands: { name = "trace merge", help, verb = its
-- declaration, commands = the rows of its commands, or nil }.
function declarations.of(list)
  local found = {}
  for _, row in ipairs(list) do
    local module = require("verbs." .. row.name)
    found[#found + 1] = { name = row.name, help = row.help, verb = module, commands = module.commands }
    for _, command in ipairs(module.commands or {}) do
      local name, of_command = module.command { command.name }
      found[#found + 1] = { name = name, help = command.help, verb = of_command }
    end
  end
  return found
end

-- The words of an option, as they are written: "-o", "--out".
function declarations.words(option)
  local words = { "--" .. option.name }
  if option.short then table.insert(words, 1, "-" .. option.short) end
  return words
end

-- The texts that completions offer for an option or for the arguments without a dash, in one text.
function declarations.values(of) return table.concat(of.one_of or of.values or {}, " ") end

-- Whether arguments without a dash may be files or folders. `positional`: nil if the verb has none.
function declarations.may_be_files(positional)
  if not positional or not positional.values then return true end
  local name = positional.name
  return name:find("FILE") ~= nil or name:find("DIR") ~= nil or name:find("INPUT") ~= nil
end

-- Whether a value is a folder ("folder"), one of a list ("word"), any file ("file"), or a text ("text").
function declarations.kind_of_value(option)
  if not option.value then return nil end
  if option.one_of or option.values and not option.value:find("FILE") then return "word" end
  if option.value == "DIR" then return "folder" end
  local is_file = option.value:find("FILE") or option.value:find("PATH") or option.value:find("CSV")
    or option.value:find("TABLE") or option.value:find("HEADER") or option.value:find("PROGRAM")
    or option.value:find("LIB")
  return is_file and "file" or "text"
end

return declarations
