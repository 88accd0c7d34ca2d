-- Completions for bash, zsh and fish, from the declarations of all verbs.
local declarations = require "reference.declarations"
local sequences = require "base.sequences"

local completion = {}

-- A text as one word of a shell: bash and zsh, and fish, which also reads a backslash in it.
local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end
local function quoted_for_fish(text) return "'" .. text:gsub("\\", "\\\\"):gsub("'", "\\'") .. "'" end

local function first_line(text) return text:match("^[^\n]*") end

-- Adds formatted lines to a list.
local function writer()
  local lines = {}
  return lines, function(format, ...)
    lines[#lines + 1] = select("#", ...) > 0 and format:format(...) or format
  end
end

-- The words that may follow a verb or command: its commands, or its options.
local function words_of(of)
  if of.commands then return sequences.field(of.commands, "name") end
  local words = { "--help" }
  for _, option in ipairs(of.verb.options or {}) do sequences.append(words, declarations.words(option)) end
  return words
end

-- ---- bash and zsh -------------------------------------------------------------------------------

-- The cases of `"$key $previous"` for values: words, folders or files.
local function add_values(add, all)
  for _, of in ipairs(all) do
    for _, option in ipairs(of.verb.options or {}) do
      local kind = declarations.kind_of_value(option)
      local patterns = sequences.map(declarations.words(option), function(word)
        return quoted(of.name .. " " .. word)
      end)
      local values = quoted(declarations.values(option))
      if kind then add("    %s) kind=%s values=%s ;;", table.concat(patterns, " | "), kind, values) end
    end
  end
end

-- The settings for the arguments without a dash.
local function arguments_of(positional)
  local values = positional and declarations.values(positional) or ""
  local settings = values ~= "" and " arguments=" .. quoted(values) or ""
  return settings .. (declarations.may_be_files(positional) and "" or " files=no")
end

-- Sets `words`, `arguments` and `files` from `key` (the verb, or verb and command), and `kind` and `values`
-- from the word before.
local function add_cases(add, list, all)
  add "    case $key in"
  add("    '') words=%s ;;", quoted(table.concat(sequences.field(list, "name"), " ") .. " --help --version"))
  for _, of in ipairs(all) do
    add("    %s) words=%s%s ;;", quoted(of.name), quoted(table.concat(words_of(of), " ")),
      of.commands and "" or arguments_of(of.verb.positional))
  end
  add "    esac"
  add "    case \"$key $previous\" in"
  add_values(add, all)
  add "    esac"
end

-- The words of each shell for the same beginning: the variables, the number of words before the present one,
-- and the words of the verb and its command.
local BASH = { name = "bash",
  variables = "word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}", before = "COMP_CWORD",
  verb = "${COMP_WORDS[1]}", command = "${COMP_WORDS[2]}" }
local ZSH = { name = "zsh", variables = "previous=${words[CURRENT-1]} line=(\"${words[@]}\")",
  before = "CURRENT - 1", verb = "${line[2]}", command = "${line[3]}" }

-- The beginning of the function of a shell, with add_cases.
local function add_beginning(add, shell, list)
  local all = declarations.of(list)
  local with_commands = sequences.filter(all, function(of) return of.commands end)
  add("# Completions of gentables for %s; rendered by: gentables completion %s", shell.name, shell.name)
  add "_gentables() {"
  add("    local %s key='' kind='' values='' arguments='' files=''", shell.variables)
  add("    if ((%s > 1)); then key=%s; fi", shell.before, shell.verb)
  add("    if ((%s > 2)); then", shell.before)
  add("        case $key in %s) key+=\" %s\" ;; esac",
    table.concat(sequences.field(with_commands, "name"), " | "), shell.command)
  add "    fi"
  add "    local words=''" -- of zsh: those before it are in `line`
  add_cases(add, list, all)
end

function completion.bash(list)
  local lines, add = writer()
  add_beginning(add, BASH, list)
  add "    COMPREPLY=()"
  add "    case $kind in"
  add "    word) mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\") ;;"
  add "    folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$word\") ;;"
  add "    file)"
  add "        compopt -o filenames"
  add "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\"; compgen -f -- \"$word\")"
  add "        ;;"
  add "    text) ;;"
  add "    *)"
  add "        if [[ $word == -* || $key == '' || $words != --* ]]; then"
  add "            mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")"
  add "        else"
  add "            [[ $files == no ]] || compopt -o filenames"
  add "            mapfile -t COMPREPLY < <(compgen -W \"$arguments\" -- \"$word\""
  add "                [[ $files == no ]] || compgen -f -- \"$word\")"
  add "        fi"
  add "        ;;"
  add "    esac"
  add "} 2>/dev/null"
  add "complete -F _gentables gentables"
  return table.concat(lines, "\n") .. "\n"
end

function completion.zsh(list)
  local lines, add = writer()
  add "#compdef gentables"
  add_beginning(add, ZSH, list)
  add "    case $kind in"
  add "    word) compadd -- ${=values} ;;"
  add "    folder) _files -/ ;;"
  add "    file) compadd -- ${=values}; _files ;;"
  add "    text) ;;"
  add "    *)"
  add "        if [[ $PREFIX == -* || $key == '' || $words != --* ]]; then"
  add "            compadd -- ${=words}"
  add "        else"
  add "            compadd -- ${=arguments}"
  add "            [[ $files == no ]] || _files"
  add "        fi"
  add "        ;;"
  add "    esac"
  add "}"
  add "if [[ ${funcstack[1]} == _gentables ]]; then _gentables \"$@\"; else compdef _gentables gentables; fi"
  return table.concat(lines, "\n") .. "\n"
end

-- ---- fish ---------------------------------------------------------------------------------------

-- A line for an option of a verb or command.
local function fish_option(of, option)
  local line = ("complete -c gentables -n '__gentables_is %s' -l %s"):format(of.name, option.name)
  if option.short then line = line .. " -s " .. option.short end
  local kind = declarations.kind_of_value(option)
  if kind == "word" then
    line = line .. " -x -a " .. quoted_for_fish(declarations.values(option))
  elseif kind == "folder" then
    line = line .. " -x -a '(__fish_complete_directories)'"
  elseif kind then
    line = line .. (kind == "file" and " -r -F" or " -x")
    if option.values then line = line .. " -a " .. quoted_for_fish(declarations.values(option)) end
  end
  return line .. " -d " .. quoted_for_fish(first_line(option.help))
end

-- A line for the arguments without a dash of a verb or command; nil: they have no values.
local function fish_arguments(of)
  local positional = of.verb and of.verb.positional
  if not positional or not positional.values then return nil end
  return ("complete -c gentables -n '__gentables_is %s'%s -a %s"):format(of.name,
    declarations.may_be_files(positional) and "" or " -f", quoted_for_fish(declarations.values(positional)))
end

function completion.fish(list)
  local lines, add = writer()
  add "# Completions of gentables for fish; rendered by: gentables completion fish"
  add "function __gentables_is"
  add "    set -l tokens (commandline -opc)"
  add "    test (count $tokens) -gt (count $argv); or return 1"
  add "    for i in (seq (count $argv))"
  add "        test $argv[$i] = $tokens[(math $i + 1)]; or return 1"
  add "    end"
  add "end"
  add "function __gentables_needs"
  add "    set -l tokens (commandline -opc)"
  add "    test (count $tokens) -eq (math (count $argv) + 1); and __gentables_is $argv"
  add "end"
  local function add_names(condition, rows)
    for _, row in ipairs(rows) do
      add("complete -c gentables -f -n '%s' -a %s -d %s", condition, row.name, quoted_for_fish(row.help))
    end
  end
  add_names("test (count (commandline -opc)) -eq 1", list)
  for _, of in ipairs(declarations.of(list)) do
    if of.commands then add_names("__gentables_needs " .. of.name, of.commands) end
    local arguments = fish_arguments(of)
    if arguments then add("%s", arguments) end
    for _, option in ipairs(of.verb.options or {}) do add("%s", fish_option(of, option)) end
  end
  return table.concat(lines, "\n") .. "\n"
end

return completion
