-- gentables.lua in the current folder: a project's defaults of options, as data.
--
--   return { sweep = { budget = 120, tp = { 2, 4 } }, ["trace merge"] = { gzip = true } }
--
-- It runs as specs do (codec/lua_data.lua), so it can call nothing. It may come with files of others:
-- therefore it sets no option that starts a program or gives rights (`trusted` in the option's declaration),
-- and its paths lead to nothing outside the folder.
local declarations = require "reference.declarations"
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local lua_data = require "codec.lua_data"
local core_text = require "core.text"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local text = require "base.text"

local project_file = {}

project_file.NAME = "gentables.lua"
local MOST_VALUES = 256 -- of an option
local KINDS = { string = "a text", number = "a number", boolean = "true or false", table = "a table" }

local function reject(...) fail.input("%s: %s", project_file.NAME, string.format(...)) end

-- The kind of a value, with its article.
local function kind_of(value) return KINDS[type(value)] or "a " .. type(value) end

-- The text of a value on the command line; nil: it is none.
local function text_of(value)
  if type(value) == "string" then return value end
  return type(value) == "number" and core_text.shortest(value) or nil
end

-- The real path of the longest part of `path`, from its beginning, that exists; nil: it ends at a link that
-- leads to nothing, or at something that cannot be read.
local function real_start(path)
  local real = file.real_path(path)
  if real then return real end
  local parent, name = path:match("^(.-)/*([^/]+)/*$")
  if lists.contains(file.list(parent) or {}, name) then return nil end
  return real_start(parent)
end

-- Whether a path leads out of the current folder, or a symbolic link in it does.
local function leads_out(path)
  if path:find("^/") or ("/" .. path .. "/"):find("/../", 1, true) then return true end
  local here, start = fail.unless(file.real_path(".")):gsub("/*$", "/"), real_start("./" .. path)
  return not start or (start .. "/"):sub(1, #here) ~= here
end

-- The texts of a value, which may be a list.
local function texts_of(where, value)
  local texts = {}
  if type(value) == "table" and #value > MOST_VALUES then
    reject("%s has %d values; at most %d are allowed", where, #value, MOST_VALUES)
  end
  for i, item in ipairs(type(value) == "table" and value or { value }) do
    texts[i] = text_of(item)
    if not texts[i] then
      reject("%s is %s; a text, a number or a list of these is required", where, kind_of(item))
    end
    if leads_out(texts[i]) then reject("%s: %s is outside this folder", where, texts[i]) end
  end
  if #texts == 0 then reject("%s is empty; a list of values is required", where) end
  return texts
end

-- Adds the words of the command line that set an option.
local function add_words(words, where, option, value)
  if option.trusted then
    reject("%s starts a program or gives rights; give it on the command line", where)
  elseif not option.value then
    if type(value) ~= "boolean" then reject("%s is %s; true or false is required", where, kind_of(value)) end
    if value then words[#words + 1] = "--" .. option.name end
    return
  end
  local texts = texts_of(where, value)
  if option.comma then texts = { table.concat(texts, ",") } end
  for _, item in ipairs(texts) do words[#words + 1] = ("--%s=%s"):format(option.name, item) end
end

-- Raises unless all entries have names, which are texts: other keys cannot be sorted with texts. `form`: of a
-- right entry.
local function check_keys(where, found, form)
  for key in pairs(found) do
    if type(key) ~= "string" then
      reject("%s has an entry without a name; each entry is %s", where, form)
    end
  end
end

local function check_verbs(found, list)
  check_keys("the table", found, "VERB = { OPTION = VALUE }")
  local names = sequences.set(sequences.field(declarations.of(list), "name"))
  for _, name in ipairs(sorted_keys(found)) do
    if not names[name] then
      reject("there is no verb %q%s", name, text.did_you_mean(name, sorted_keys(names)))
    elseif type(found[name]) ~= "table" then
      reject("%s is %s; a table of options is required", name, kind_of(found[name]))
    end
    check_keys(name, found[name], "OPTION = VALUE")
  end
end

-- The words of the command line that gentables.lua stands for, for the verb or command `name`; {} without
-- such a file, or if it has none. `list`: of all verbs; `find(key)`: an option of this one, or nil and a
-- hint.
function project_file.words(name, list, find)
  local content = file.exists(project_file.NAME) and fail.unless(file.read(project_file.NAME))
  if not content then return {} end
  local found = lua_data.run(project_file.NAME, content)
  check_verbs(found, list)
  local words = {}
  for _, key in ipairs(sorted_keys(found[name] or {})) do
    local where = ("%s.%s"):format(name, key)
    local option, hint = find((key:gsub("_", "-")))
    if not option then reject("%s is no option%s; see gentables %s --help", where, hint, name) end
    add_words(words, where, option, found[name][key])
  end
  return words
end

return project_file
