-- One vocabulary for all verbs and commands: a thing has one documented name, which its earlier names stand
-- for; help has at most 100 columns, and the help of the program all verbs, in groups.
local file = require "core.file"
local help = require "reference.help"
local luaunit = require "luaunit"
local options = require "base.options"
local verbs = require "verbs"

local WIDTH = 100
-- The earlier names, and the documented one. `--ranks` also selects ranks of a trace.
local EARLIER = { ["num-ranks"] = "tp", patience = "timeout", program = "bench", format = "formats",
  ["output-dir"] = "out" }

-- The declarations of all verbs and commands by their full names.
local function declarations()
  local found = {}
  for _, row in ipairs(verbs.list) do
    local module = require("verbs." .. row.name)
    for _, command in ipairs(module.commands or {}) do
      local name, of_command = module.command { command.name }
      found[name] = of_command
    end
    if not module.commands then found[row.name] = module end
  end
  return found
end

local function check_lines(text, name)
  for line in text:gmatch("[^\n]+") do
    luaunit.assertTrue(utf8.len(line) <= WIDTH, ("%s: longer than %d columns: %s"):format(name, WIDTH, line))
  end
end

local tests = {}

function tests.test_a_thing_has_one_documented_name()
  for name, verb in pairs(declarations()) do
    for _, option in ipairs(verb.options or {}) do
      luaunit.assertNil(EARLIER[option.name], ("%s --%s"):format(name, option.name))
    end
  end
end

-- A value that the option accepts.
local function value_of(option)
  if option.one_of then return option.one_of[1] end
  return option.type and tostring(math.ceil(option.least or 1)) or "text"
end

function tests.test_earlier_names_are_read()
  local seen = {}
  for name, verb in pairs(declarations()) do
    for _, option in ipairs(verb.options or {}) do
      for _, alias in ipairs(options.aliases(verb, option)) do
        local of = { options = { option } }
        luaunit.assertEquals(options.parse(of, name, { "--" .. alias, value_of(option) }),
          options.parse(of, name, { "--" .. option.name, value_of(option) }))
        seen[alias] = option.name
      end
    end
  end
  for alias, name in pairs(EARLIER) do luaunit.assertEquals(seen[alias], name) end
  luaunit.assertEquals(seen.ranks, "tp")
end

function tests.test_no_verb_has_two_options_of_one_name()
  for name, verb in pairs(declarations()) do
    local seen = {}
    for _, option in ipairs(verb.options or {}) do
      for _, text in ipairs { option.name, option.short or option.name .. " ",
        table.unpack(options.aliases(verb, option)) } do
        luaunit.assertNil(seen[text], ("%s: %s twice"):format(name, text))
        seen[text] = true
      end
    end
  end
end

function tests.test_lists_and_folders_are_written_in_one_way()
  for name, verb in pairs(declarations()) do
    for _, option in ipairs(verb.options or {}) do
      local is_list = option.value and (option.value:find(",", 1, true) or option.value == "LIST")
      luaunit.assertTrue(not is_list or option.comma, ("%s --%s is no list"):format(name, option.name))
      if option.name == "hidden-size" then luaunit.assertEquals(option.type, "size") end
      if option.name == "data-dir" then luaunit.assertEquals(verb.positional.option, "data-dir") end
    end
  end
end

function tests.test_help_fits_a_terminal()
  for name, verb in pairs(declarations()) do
    if not verb.summary then error(name .. " has no summary") end
    check_lines(help.of_verb(verb, name), name)
  end
  check_lines(help.of_program(verbs.list, verbs.groups), "gentables")
end

function tests.test_help_has_every_verb_in_a_group()
  luaunit.assertStrContains(help.of_program({ { name = "added", help = "greets" } }, verbs.groups),
    "more:\n  added        greets\n")
  local text = help.of_program(verbs.list, verbs.groups)
  for _, row in ipairs(verbs.list) do luaunit.assertStrContains(text, "\n  " .. row.name .. " ") end
end

function tests.test_help_names_every_option()
  local names = help.names { { name = "n", help = "h" } }
  local text = help.of_verb({
    summary = "Does.",
    options = {
      { name = "data-dir", value = "DIR", help = "a folder", required = true },
      { name = "count", value = "N", help = "how many", default = "3" },
      { name = "filter", short = "f", value = "TEXT", list = true, help = "texts", default = { "a", "b" } },
      { name = "quick", short = "q", help = ("word "):rep(40) .. "\n" .. names },
      { name = "an-option-with-a-long-name", value = "VALUE", help = "long" },
    },
    positional = { name = "FILE", min = 0, max = 1, help = "a file" },
    example = "gentables do --data-dir x",
  }, "do")
  for _, part in ipairs { "usage: gentables do [FILE] [options]", "\n  --data-dir DIR             a fold",
    "(default: 3)", "-f, --filter TEXT...", "(default: a b)", "-q, --quick",
    "\n" .. (" "):rep(31) .. "n: h\n", "\n  gentables do --data-dir x",
    "  --an-option-with-a-long-name VALUE\n" .. (" "):rep(29) .. "long\n" } do
    luaunit.assertStrContains(text, part)
  end
  check_lines(text, "do")
end

function tests.test_sizes_and_data_types_have_short_forms()
  luaunit.assertEquals(require("tune.pass_input").read_sizes("1k,64M,2KiB,1g"),
    { 1 << 10, 2 << 10, 64 << 20, 1 << 30 })
  local small = assert(file.read(gentables.home .. "/workloads/small.lua"))
  assert(file.make_folder(os.getenv("WORK")))
  local path = os.getenv("WORK") .. "/bf16.lua"
  assert(file.write(path, (small:gsub('"float32",\n  tokens', '"bf16",\n  tokens'))))
  local workload = require("workload.description").load(path)
  luaunit.assertEquals(workload.dtype, { host = "bfloat16", cuda = "bfloat16" })
end

return require "suites" { { "vocabulary", tests } }
