-- The command line of a verb: read it, and print its help, from one declaration.
--
-- A verb declares
--   options = { { name = "data-dir", value = "DIR", help = "...", default = "...", required = true }, ... }
--     without `value` an option is a flag; with `many = true` it may be repeated and gives a list
--   positional = { name = "FILE", min = 0, max = 1, help = "..." }
--   summary, example
-- and gets a table keyed by the name with underscores (args.data_dir); positionals are args[1], args[2]...
local fail = require "fail"

local options = {}

local function find(verb, name)
  for _, option in ipairs(verb.options or {}) do
    if option.name == name then return option end
  end
end

local function store(args, option, value)
  local key = option.name:gsub("-", "_")
  if option.many then
    args[key] = args[key] or {}
    table.insert(args[key], value)
  elseif args[key] ~= nil then
    fail.input("--%s is given twice; once would be right", option.name)
  else
    args[key] = value
  end
end

local function check(verb, name, args)
  for _, option in ipairs(verb.options or {}) do
    local key = option.name:gsub("-", "_")
    if args[key] == nil then args[key] = option.default end
    if args[key] == nil and option.required then
      fail.input("%s needs --%s %s; see gentables %s --help", name, option.name, option.value, name)
    end
  end
  local positional = verb.positional or { min = 0, max = 0 }
  if #args < positional.min or #args > positional.max then
    fail.input("%s takes %s; see gentables %s --help", name,
      positional.max == 0 and "no argument without a dash" or positional.name, name)
  end
end

-- Reads `argv` (a list of texts) for the verb called `name`. Wrong use raises with exit code 2.
function options.parse(verb, name, argv)
  local args, i, only_positional = {}, 1, false
  while i <= #argv do
    local word = argv[i]
    if word == "--" and not only_positional then
      only_positional = true
    elseif word:sub(1, 2) == "--" and not only_positional then
      local key, value = word:match("^%-%-([^=]+)=(.*)$")
      key = (key or word:sub(3)):gsub("_", "-")
      local option = find(verb, key)
      if not option then fail.input("%s has no option --%s; see gentables %s --help", name, key, name) end
      if option.value and not value then
        i = i + 1
        value = argv[i]
        if not value then fail.input("--%s needs a value: --%s %s", key, key, option.value) end
      elseif value and not option.value then
        fail.input("--%s takes no value", key)
      end
      store(args, option, value or true)
    elseif word:find("^%-.") and not only_positional then
      fail.input("%s has no option %s; see gentables %s --help", name, word, name)
    else
      table.insert(args, word)
    end
    i = i + 1
  end
  check(verb, name, args)
  return args
end

-- Whether the command line asks for help.
function options.wants_help(argv)
  for _, word in ipairs(argv) do
    if word == "--" then return false end
    if word == "--help" or word == "-h" then return true end
  end
  return false
end

-- The help text of a verb.
function options.help(verb, name)
  local out = { ("usage: gentables %s"):format(name) }
  local function add(...) out[#out + 1] = string.format(...) end
  local positional = verb.positional
  if positional then out[1] = out[1] .. (positional.min > 0 and " %s" or " [%s]"):format(positional.name) end
  if verb.options and #verb.options > 0 then out[1] = out[1] .. " [options]" end
  add("\n%s", verb.summary)
  if positional and positional.help then add("\n  %-26s %s", positional.name, positional.help) end
  if verb.options and #verb.options > 0 then add("") end
  for _, option in ipairs(verb.options or {}) do
    local left = "--" .. option.name .. (option.value and " " .. option.value or "")
    local note = option.required and " (required)" or ""
    if option.default ~= nil then note = (" (default: %s)"):format(option.default) end
    add("  %-26s %s%s", left, option.help, note)
  end
  if verb.example then add("\nexample:\n  %s", verb.example) end
  return table.concat(out, "\n") .. "\n"
end

return options
