-- The help of a verb and of the program, in at most 100 columns.
local help = {}

local WIDTH, INDENT = 100, 29 -- of the column of explanations

-- A text in lines of at most `width` bytes. Words that are longer have a line of their own; a line that
-- begins with blanks goes on two columns further.
local function wrapped(text, width)
  local out = {}
  for paragraph in (text .. "\n"):gmatch("(.-)\n") do
    local blanks, line = paragraph:match("^ *"), nil
    for word in paragraph:gmatch("%S+") do
      if line and #line + 1 + #word > width then
        out[#out + 1], line = line, blanks .. (blanks ~= "" and "  " or "") .. word
      else
        line = line and line .. " " .. word or blanks .. word
      end
    end
    out[#out + 1] = line or ""
  end
  return out
end

-- A name and its explanation, which begins in the column `indent`.
local function entry(left, text, indent)
  local lines = wrapped(text, WIDTH - indent)
  local first = ("  %-" .. indent - 3 .. "s "):format(left)
  if #first > indent then table.insert(lines, 1, "") end
  lines[1] = lines[1] == "" and first:gsub(" +$", "") or first .. lines[1]
  return table.concat(lines, "\n" .. (" "):rep(indent))
end

-- The rows of a list and their `help`, as lines of the explanation of an option.
function help.names(list)
  local out = {}
  for i, row in ipairs(list) do out[i] = ("  %s: %s"):format(row.name, row.help) end
  return table.concat(out, "\n")
end

-- The spelling of an option, with its value.
function help.spelling(option)
  local left = (option.short and "-" .. option.short .. ", " or "") .. "--" .. option.name
  return option.value and left .. " " .. option.value .. (option.list and "..." or "") or left
end

-- The explanation of an option, with its default.
function help.explanation(option)
  if option.required then return option.help .. " (required)" end
  if option.default == nil then return option.help end
  local default = option.list and table.concat(option.default, " ") or option.default
  return ("%s (default: %s)"):format(option.help, default)
end

-- The line of usage of a verb. If the positionals end with a command (`command` is set), its options follow
-- them, and those of the verb come first.
function help.usage(verb, name)
  local positional, words = verb.positional, { "gentables " .. name }
  if positional then words[2] = (positional.min > 0 and "%s" or "[%s]"):format(positional.name) end
  if verb.options and #verb.options > 0 then
    table.insert(words, positional and positional.command and 2 or #words + 1, "[options]")
  end
  return table.concat(words, " ")
end

-- Variables of the environment for gentables alone.
help.environment = {
  { name = "GENTABLES_LAUNCHER", help = "the default of --launcher" },
  { name = "GENTABLES_PROGRESS",
    help = "the file to which long verbs append their progress as lines of JSON; -: stderr, without a bar" },
}

-- The help of a verb.
function help.of_verb(verb, name)
  local summary = table.concat(wrapped(verb.summary, WIDTH), "\n")
  local out = { "usage: " .. help.usage(verb, name), "\n" .. summary }
  local positional = verb.positional
  if positional and positional.help then
    out[#out + 1] = "\n" .. entry(positional.name, positional.help, INDENT)
  end
  if verb.options and #verb.options > 0 then out[#out + 1] = "" end
  for _, option in ipairs(verb.options or {}) do
    out[#out + 1] = entry(help.spelling(option), help.explanation(option), INDENT)
  end
  if verb.example then out[#out + 1] = ("\nexample:\n  %s"):format(verb.example) end
  return table.concat(out, "\n") .. "\n"
end

-- The rows { name, help } of a list, one in a line.
function help.rows(list)
  local out = {}
  for i, row in ipairs(list) do out[i] = entry(row.name, row.help, 15) end
  return table.concat(out, "\n")
end

-- The help of a verb that has commands, { name, help }....
function help.of_commands(list, name)
  return ("usage: gentables %s COMMAND [options]\n\n%s\n\n"):format(name, help.rows(list))
    .. ("gentables %s COMMAND --help shows its options and an example.\n"):format(name)
end

-- The help of the program: the verbs, in the order of the groups { { name, help }... }. A verb without a
-- group is in the last one.
function help.of_program(list, groups)
  local out = { "usage: gentables VERB [options]" }
  for _, group in ipairs(groups) do
    local of_group = {}
    for _, verb in ipairs(list) do
      if (verb.group or groups[#groups].name) == group.name then of_group[#of_group + 1] = verb end
    end
    out[#out + 1] = ("\n%s:\n%s"):format(group.help, help.rows(of_group))
  end
  out[#out + 1] = "\nenvironment:\n" .. help.rows(help.environment)
  out[#out + 1] = "\ngentables VERB --help shows the options of a verb and an example.\n"
  return table.concat(out, "\n")
end

return help
