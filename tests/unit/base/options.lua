-- options.lua: the options of a command line.
local failure = require "failure"
local luaunit = require "luaunit"
local options = require "base.options"

local tests = {}

local verb = {
  summary = "Does.",
  options = {
    { name = "data-dir", value = "DIR", help = "a folder", required = true },
    { name = "label", value = "L", help = "labels", many = true },
    { name = "count", value = "N", help = "how many", default = "3" },
    { name = "fast", help = "a flag" },
    { name = "filter", short = "f", value = "TEXT", list = true, help = "texts", default = { "a", "b" } },
    { name = "quick", short = "q", help = "a flag" },
  },
  positional = { name = "FILE", min = 0, max = 1, help = "a file" },
  example = "gentables do --data-dir x",
}

local function parse(...) return options.parse(verb, "do", { ... }) end

-- The message with which `of` rejects these arguments.
local function refusal(of, ...)
  local message, code = failure(options.parse, of, of == verb and "do" or "count", { ... })
  luaunit.assertEquals(code, 2)
  return message
end

function tests.test_values_come_after_a_space_or_an_equals_sign()
  luaunit.assertEquals(parse("--data-dir", "a").data_dir, "a")
  luaunit.assertEquals(parse("--data-dir=a=b").data_dir, "a=b")
end

function tests.test_underscores_read_as_dashes()
  luaunit.assertEquals(parse("--data_dir", "a").data_dir, "a")
end

function tests.test_defaults_flags_and_lists()
  local args = parse("--data-dir", "a", "--label", "x", "--fast", "--label=y", "file")
  luaunit.assertEquals(args.count, "3")
  luaunit.assertTrue(args.fast)
  luaunit.assertEquals(args.label, { "x", "y" })
  luaunit.assertEquals(args[1], "file")
end

function tests.test_an_option_may_have_a_name_after_one_dash()
  local args = parse("--data-dir", "a", "-q", "-fx")
  luaunit.assertTrue(args.quick)
  luaunit.assertEquals(args.filter, { "x" })
  luaunit.assertEquals(parse("--data-dir", "a").filter, { "a", "b" })
end

local typed = {
  summary = "Counts.",
  options = {
    { name = "samples", value = "N", type = "whole", most = 100, default = "20", help = "how many" },
    { name = "warm-up", value = "N", type = "whole", least = 0, default = 5, help = "before these" },
    { name = "tp", value = "N,N...", type = "whole", least = 2, most = 16, comma = true, help = "ranks" },
    { name = "share", value = "X", type = "number", least = 0, most = 1, help = "of the time" },
    { name = "timeout", value = "SECONDS", type = "number", above = 0, help = "how long" },
    { name = "limit", value = "X", type = "number", least = 0, most = 9, one_of = { "none" }, help = "most" },
    { name = "sync", value = "HOW", one_of = { "pass", "op" }, default = "pass", help = "when" },
  },
}

function tests.test_typed_options_are_numbers()
  local args = options.parse(typed, "count",
    { "--tp", "8,2,8", "--share=0.5", "--timeout", "1e3", "--sync=op" })
  luaunit.assertEquals(args, { samples = 20, warm_up = 5, tp = { 8, 2 }, share = 0.5, timeout = 1000.0,
    sync = "op" })
  luaunit.assertEquals(math.type(args.samples), "integer")
  luaunit.assertEquals(options.parse(typed, "count", { "--limit", "none" }).limit, "none")
  luaunit.assertEquals(options.parse(typed, "count", { "--limit", "3" }).limit, 3.0)
  luaunit.assertEquals(refusal(typed, "--limit", "x"), '--limit: "x" is not a number from 0 to 9 or none')
end

function tests.test_values_of_another_type_are_refused()
  for _, text in ipairs { "0", "101", "x", "1.5", "", "0x10", " 1", "-1", "1e2", "99999999999999999999" } do
    luaunit.assertEquals(refusal(typed, "--samples", text),
      ('--samples: "%s" is not a whole number from 1 to 100'):format(text))
  end
  luaunit.assertEquals(refusal(typed, "--warm-up=-1"), '--warm-up: "-1" is not a whole number of at least 0')
  luaunit.assertEquals(refusal(typed, "--tp", "2,,4"), '--tp: "" is not a whole number from 2 to 16')
  luaunit.assertEquals(refusal(typed, "--share", "1.1"), '--share: "1.1" is not a number from 0 to 1')
  for _, text in ipairs { "nan", "inf", "1e999", "0", "-1", "1 s" } do
    luaunit.assertEquals(refusal(typed, "--timeout", text),
      ('--timeout: "%s" is not a number above 0'):format(text))
  end
  luaunit.assertEquals(refusal(typed, "--sync", "both"), '--sync: "both" is not one of pass, op')
end

function tests.test_sizes_may_have_a_unit()
  local of = { options = { { name = "size", value = "N", type = "size", least = 16, most = 1 << 24 } } }
  local sizes = { ["4096"] = 4096, ["4K"] = 4096, ["4k"] = 4096, ["1MiB"] = 1 << 20, ["8kb"] = 8192 }
  for text, size in pairs(sizes) do
    luaunit.assertEquals(options.parse(of, "do", { "--size", text }).size, size)
  end
  for _, text in ipairs { "4Q", "K", "64i", "64B", "1.5K", "8", "1G", "99999999999999G" } do
    luaunit.assertEquals(refusal(of, "--size", text),
      ('--size: "%s" is not a size such as 64 or 4K from 16 to 16777216'):format(text))
  end
end

function tests.test_a_list_ends_at_the_next_option()
  local args = parse("file", "-f", "x", "y", "--data-dir", "a", "--filter=z")
  luaunit.assertEquals(args.filter, { "x", "y", "z" })
  luaunit.assertEquals(args[1], "file")
  luaunit.assertEquals(parse("-f", "x", "--data-dir", "a", "--", "file")[1], "file")
end

function tests.test_two_dashes_end_the_options()
  luaunit.assertEquals(parse("--data-dir", "a", "--", "--fast")[1], "--fast")
end

function tests.test_wrong_use_lists_valid_values()
  luaunit.assertStrContains(refusal(verb), "do needs --data-dir DIR")
  luaunit.assertStrContains(refusal(verb, "--data-dir"), "--data-dir needs a value: --data-dir DIR")
  luaunit.assertStrContains(refusal(verb, "--data-dir", "a", "--slow"), "do has no option --slow")
  luaunit.assertStrContains(refusal(verb, "--data-dir", "a", "-x"), "do has no option -x")
  luaunit.assertStrContains(refusal(verb, "--data-dir", "a", "-f"), "-f needs a value: -f TEXT")
  luaunit.assertStrContains(refusal(verb, "--data-dir", "a", "-qx"), "-q takes no value")
  luaunit.assertStrContains(refusal(verb, "--data-dir", "a", "--fast=yes"), "--fast takes no value")
  luaunit.assertStrContains(refusal(verb, "--data-dir", "a", "--data-dir", "b"), "--data-dir is given twice")
  luaunit.assertStrContains(refusal(verb, "--data-dir", "a", "b", "c"), "do takes FILE")
end

function tests.test_aliases_are_the_same_option()
  local of = { options = { { name = "timeout", aliases = { "patience", "wait" }, value = "S", help = "" } } }
  for _, name in ipairs { "--timeout", "--patience", "--wait" } do
    luaunit.assertEquals(options.parse(of, "do", { name, "3" }).timeout, "3")
  end
  luaunit.assertStrContains(refusal(of, "--wait", "3", "--patience=3"), "--timeout is given twice")
end

function tests.test_a_near_name_is_named()
  luaunit.assertStrContains(refusal(verb, "--data-dri", "a"), "--data-dri (did you mean --data-dir?)")
  luaunit.assertStrContains(refusal(verb, "--lab", "a"), "(did you mean --label?)")
  luaunit.assertNotStrContains(refusal(verb, "--nothing-near", "a"), "did you mean")
  luaunit.assertNotStrContains(refusal(verb, ("--data-dir"):rep(100), "a"), "did you mean")
  local of = { options = { { name = "backend", value = "B", one_of = { "host", "cuda" } } } }
  luaunit.assertStrContains(refusal(of, "--backend", "coda"), 'of host, cuda (did you mean "cuda"?)')
end

function tests.test_values_with_commas_may_be_words()
  local of = { options = { { name = "tp", value = "N,N...", type = "whole", comma = true },
    { name = "fast" } } }
  luaunit.assertEquals(options.parse(of, "do", { "--tp", "2", "4,8", "--fast" }).tp, { 2, 4, 8 })
  of.positional = { name = "FILE", min = 0, max = 1 }
  local args = options.parse(of, "do", { "--tp", "2,4", "file" })
  luaunit.assertEquals({ args.tp, args[1] }, { { 2, 4 }, "file" })
  luaunit.assertEquals(options.parse(of, "do", { "--tp", "2 4, 8", "--tp=8,16" }).tp, { 2, 4, 8, 16 })
end

function tests.test_beside_arguments_a_list_takes_the_words_that_are_its_values()
  local of = { positional = { name = "FILE", min = 0, max = 1 }, options = {
    { name = "tp", value = "N,N...", type = "whole", comma = true },
    { name = "formats", value = "LIST", one_of = { "c", "table" }, comma = true },
    { name = "ranks", value = "N", list = true, pattern = "^%d[%d,-]*$" } } }
  for _, words in ipairs { { "--tp", "2", "4,8", "file" }, { "file", "--tp", "2", "4", "8" } } do
    local args = options.parse(of, "do", words)
    luaunit.assertEquals({ args.tp, args[1] }, { { 2, 4, 8 }, "file" })
  end
  local args = options.parse(of, "do", { "--formats", "c", "table", "file", "--ranks", "0-3", "7" })
  luaunit.assertEquals({ args.formats, args.ranks, args[1] }, { { "c", "table" }, { "0-3", "7" }, "file" })
  luaunit.assertEquals(options.parse(of, "do", { "--ranks", "0-3", "7", "file" })[1], "file")
  luaunit.assertStrContains(refusal(of, "--formats", "tabel"), '(did you mean "table"?)')
end

function tests.test_an_argument_may_be_the_value_of_an_option()
  local of = { positional = { name = "DIR", min = 0, max = 2, option = "data-dir" }, options = {
    { name = "data-dir", value = "DIR", required = true, many = true } } }
  for _, words in ipairs { { "a", "b" }, { "--data-dir", "a", "--data-dir=b" } } do
    luaunit.assertEquals(options.parse(of, "do", words), { data_dir = { "a", "b" } })
  end
  luaunit.assertStrContains(refusal(of, "a", "--data-dir", "b"), "a is taken as --data-dir, which is given")
  of.positional.when = function(args) return #args == 1 end
  luaunit.assertEquals(options.parse(of, "do", { "a", "b", "--data-dir", "c" })[2], "b")
end

function tests.test_former_names_are_names_of_every_verb_with_the_option()
  local function of(...)
    local list = {}
    for i, name in ipairs { ... } do list[i] = { name = name, value = "X" } end
    return { options = list }
  end
  local verbs = of("timeout", "bench", "tp", "formats")
  luaunit.assertEquals(options.parse(verbs, "do",
    { "--patience", "3", "--program", "p", "--num_ranks", "2", "--format", "c" }),
    { timeout = "3", bench = "p", tp = "2", formats = "c" })
  luaunit.assertEquals(options.parse(of("tp", "ranks"), "do", { "--ranks", "2" }), { ranks = "2" })
end

return require "suites" { { "options", tests } }
