-- Reads the command line of a verb, from its declaration; reference/help.lua prints its help.
--
-- A verb declares
--   options = { { name = "data-dir", value = "DIR", help = "...", default = "...", required = true }, ... }
--   positional = { name = "FILE", min = 0, max = 1, help = "...", command = true (they end with a command) }
--   summary, example
-- and gets a table with a field for each option, its name with underscores (args.data_dir); positionals are
-- args[1], args[2]... An option
--   without `value`      is a flag
--   many = true          may be repeated and gives a list
--   list = true          may be repeated, and takes words as `comma` does; gives a list of words
--   short = "d"          has this name after one dash, too
--   aliases = { ... }    has these names, too, which the help does not show
--   arguments = false    goes only with command lines without arguments (true: with some); a default of
--                        gentables.lua does not apply to the others
--   with = "base"        goes only with this other option; without = { "base" }: with none of these. A
--                        default of gentables.lua does not apply to other command lines
--   trusted = true       starts a program or gives rights, so that gentables.lua must not set it
--   type = "whole"       is a whole number, from `least` (default 1) to `most` (default 2147483647)
--   type = "size"        is the same, and may end in K, M or G: 4K is 4096
--   type = "number"      is a finite number of at least `least`, or above `above`, and at most `most`
--   one_of = { ... }     is one of these texts; with `type`, a number or one of them
--   comma = true         has several values, with commas or blanks between them, or as words, and may be
--                        repeated; gives a list, each value once. It takes the words up to the next option;
--                        if the verb has arguments without a dash, only those that are values of its type
--                        or one_of
--   pattern = "^%d+$"    a list of texts: beside arguments it takes only words of this pattern
--   values = { ... }     completions offer these texts, and others are values, too; also of `positional`
-- positional.option = "data-dir": arguments without a dash are values of this option. `positional.when`: only
-- if when(args) is true.
-- A value of another kind ends with exit code 2 and a message that gives the kind. options.check_value is for
-- values with limits that depend on other options.
local fail = require "base.fail"
local numbers = require "base.numbers"
local sequences = require "base.sequences"
local text = require "base.text"

local options = {}

-- The field of an option in the table of its values.
local function key_of(name) return (name:gsub("-", "_")) end

-- A verb's own options, and then those that several verbs share.
function options.with(shared, own)
  local all = table.move(own, 1, #own, 1, {})
  return table.move(shared, 1, #shared, #all + 1, all)
end

-- The former names of options, which every verb with the option still takes.
local FORMER = { timeout = { "patience" }, bench = { "program" }, tp = { "ranks", "num-ranks" },
  formats = { "format" } }

-- The other names of an option of a verb, which its help does not show.
function options.aliases(verb, option)
  local former = sequences.filter(FORMER[option.name] or {}, function(name)
    return not sequences.named(verb.options, name)
  end)
  return sequences.distinct(sequences.join { option.aliases or {}, former })
end

-- The option with this name or alias.
local function find_long(verb, name)
  return sequences.find(verb.options or {}, function(option)
    return option.name == name
      or sequences.any(options.aliases(verb, option), function(alias) return alias == name end)
  end)
end

-- The option of this name, with dashes; nil and the end of a message that names a near one.
function options.find(verb, name)
  local option = find_long(verb, name)
  if option then return option, "" end
  return nil, text.did_you_mean(name, sequences.field(verb.options or {}, "name"), "--%s")
end

local function find_short(verb, letter)
  return sequences.find(verb.options or {}, function(option) return option.short == letter end)
end

local NOUNS = { whole = "a whole number", size = "a size such as 64 or 4K", number = "a number" }

-- The values that an option takes, for messages.
local function kind_of(option)
  local texts = table.concat(option.one_of or {}, ", ")
  if not option.type then return "one of " .. texts end
  local limits = {}
  local least = option.least or option.type ~= "number" and 1 or nil
  if least then limits[#limits + 1] = ("of at least %.14g"):format(least) end
  if option.above then limits[#limits + 1] = ("above %.14g"):format(option.above) end
  if option.most then limits[#limits + 1] = ("at most %.14g"):format(option.most) end
  if least and option.most then limits = { ("from %.14g to %.14g"):format(least, option.most) } end
  local noun = NOUNS[option.type]
  return noun .. (#limits > 0 and " " or "") .. table.concat(limits, " and ")
    .. (texts ~= "" and " or " or "") .. texts
end

local function number_of(option, given)
  local whole = option.type == "whole" and numbers.whole or option.type == "size" and numbers.size
  if whole then return whole(given, option.least, option.most) end
  local number = numbers.finite(given)
  if not number or option.above and number <= option.above then return nil end
  return number >= (option.least or number) and number <= (option.most or number) and number or nil
end

-- The end of a message about a value that is none of the option's.
local function hint_of(option, value) return text.did_you_mean(value, option.one_of or {}, '"%s"') end

-- The value of a text by `option`; nil: it is none.
local function value_of(option, given)
  if not option.type and not option.one_of then return given end
  local is_known = sequences.any(option.one_of or {}, function(known) return given == known end)
  return is_known and given or option.type and number_of(option, given) or nil
end

-- The value of a text by `option`, a table with name, and type, least, most and above, or one_of. `where`: in
-- place of --NAME in the message.
function options.check_value(option, given, where)
  local value = value_of(option, given)
  if value then return value end
  fail.input('%s: "%s" is not %s%s', where or "--" .. option.name, given, kind_of(option),
    hint_of(option, given))
end

-- The texts in a text with commas or blanks between them.
local function parts_of(given)
  local parts = {}
  given = given:gsub("^%s+", ""):gsub("%s+$", ""):gsub("%s*,%s*", ","):gsub("%s+", ",")
  for part in (given .. ","):gmatch("([^,]*),") do parts[#parts + 1] = part end
  return parts
end

-- The values of a text with commas or blanks between them.
local function check_values(option, given)
  return sequences.map(parts_of(given), function(part) return options.check_value(option, part) end)
end

local function store(args, option, value)
  local key = key_of(option.name)
  if option.comma then
    args[key] = sequences.distinct(sequences.append(args[key] or {}, check_values(option, value)))
    return
  end
  if option.value then value = options.check_value(option, value) end
  if option.many or option.list then
    args[key] = args[key] or {}
    table.insert(args[key], value)
  elseif args[key] ~= nil then
    fail.input("--%s is given twice; give it once", option.name)
  else
    args[key] = value
  end
end

local function check(verb, name, args)
  for _, option in ipairs(verb.options or {}) do
    local key = key_of(option.name)
    if args[key] == nil and option.default ~= nil then
      if option.list then args[key] = option.default else store(args, option, option.default) end
    end
    if args[key] == nil and option.required then
      fail.input("%s needs --%s %s; see gentables %s --help", name, option.name, option.value, name)
    end
  end
end

-- Raises for too few or too many arguments without a dash.
local function check_count(verb, name, args)
  local positional = verb.positional or { min = 0, max = 0 }
  if #args < positional.min or #args > positional.max then
    fail.input("%s takes %s; see gentables %s --help", name,
      positional.max == 0 and "no argument without a dash" or positional.name, name)
  end
end

-- Removes and returns the next argument; nil at the end.
local function take(line)
  line.at = line.at + 1
  return line.words[line.at]
end

local function is_option(word) return word:find("^%-.") ~= nil end

-- Whether the next word is one more value of a list.
local function is_next_of(line, option)
  local word = line.words[line.at + 1]
  if not word or is_option(word) then return false end
  if not line.verb.positional then return true end
  if option.pattern then return word:find(option.pattern) ~= nil end
  if not option.type and not option.one_of then return option.list end
  return sequences.all(parts_of(word), function(part) return value_of(option, part) end)
end

-- Stores the value of an option, or its values: `value` if it was in the same word, else from the next words.
-- `shown` is the option as it was written.
local function enter(line, option, shown, value)
  if not option.value then
    if value then fail.input("%s takes no value", shown) end
    return store(line.args, option, true)
  end
  value = value or take(line)
  if not value then fail.input("%s needs a value: %s %s", shown, shown, option.value) end
  while option.comma and is_next_of(line, option) do value = value .. "," .. take(line) end
  store(line.args, option, value)
  while option.list and is_next_of(line, option) do store(line.args, option, take(line)) end
end

-- --NAME, --NAME VALUE, --NAME=VALUE
local function enter_long(line, word)
  local key, value = word:match("^%-%-([^=]+)=(.*)$")
  key = (key or word:sub(3)):gsub("_", "-")
  local option, hint = options.find(line.verb, key)
  if not option then
    fail.input("%s has no option --%s%s; see gentables %s --help", line.name, key, hint, line.name)
  end
  enter(line, option, "--" .. key, value)
end

-- -X, -X VALUE, -XVALUE
local function enter_short(line, word)
  local option = find_short(line.verb, word:sub(2, 2))
  if not option then
    fail.input("%s has no option %s; see gentables %s --help", line.name, word, line.name)
  end
  enter(line, option, word:sub(1, 2), #word > 2 and word:sub(3) or nil)
end

-- The options and positionals of `words`, without defaults.
local function read_words(verb, name, words)
  local line = { verb = verb, name = name, words = words, at = 0, args = {} }
  local only_positional = false
  for word in take, line do
    if only_positional or not is_option(word) then
      table.insert(line.args, word)
    elseif word == "--" then
      only_positional = true
    elseif word:sub(1, 2) == "--" then
      enter_long(line, word)
    else
      enter_short(line, word)
    end
  end
  return line.args
end

-- Whether a default of an option goes with a command line.
local function default_applies(option, args)
  if args[key_of(option.name)] ~= nil then return false end
  if option.arguments ~= nil and option.arguments ~= (#args > 0) then return false end
  if option.with and args[key_of(option.with)] == nil then return false end
  return not sequences.any(option.without or {}, function(name) return args[key_of(name)] ~= nil end)
end

-- Makes the arguments without a dash values of the option that they stand for, if they do.
local function move_positional(verb, args)
  local positional = verb.positional or {}
  if not positional.option or #args == 0 or positional.when and not positional.when(args) then return end
  local option = options.find(verb, positional.option)
  if args[key_of(option.name)] ~= nil then
    fail.input("%s is taken as --%s, which is given, too; leave out one", args[1], option.name)
  end
  for i = 1, #args do store(args, option, args[i]) end
  for i = #args, 1, -1 do args[i] = nil end
end

-- Reads `argv` (a list of texts) for the verb called `name`. `defaults`: words that set the options which
-- `argv` leaves out, or nil; they apply in the order of the verb's options. Wrong use raises an error with
-- exit code 2.
function options.parse(verb, name, argv, defaults)
  local args, given = read_words(verb, name, argv), read_words(verb, name, defaults or {})
  check_count(verb, name, args)
  move_positional(verb, args)
  for _, option in ipairs(verb.options or {}) do
    local key = key_of(option.name)
    if given[key] ~= nil and default_applies(option, args) then args[key] = given[key] end
  end
  check(verb, name, args)
  return args
end

-- Whether the command line has --help or -h.
function options.wants_help(argv)
  for _, word in ipairs(argv) do
    if word == "--" then return false end
    if word == "--help" or word == "-h" then return true end
  end
  return false
end

return options
